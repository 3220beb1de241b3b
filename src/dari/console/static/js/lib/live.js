// The one connection: MCP over a WebSocket, with topics. It comes back by itself and subscribes again.

// The stateless revision says with each request what its client can do.
const ASKS_NOTHING = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "console", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};
const RETRY_MS = [300, 700, 1500, 3000, 5000];
const PAGE_KEY = "dari.pageKey";

/** The log-in puts the page key behind the `#`; it belongs to this origin, which the cookie does not. */
function pageKey() {
  const given = location.hash.slice(1);
  if (/^[\w-]{43}$/.test(given)) {
    localStorage.setItem(PAGE_KEY, given);
    history.replaceState(null, "", location.pathname + location.search);
  }
  return localStorage.getItem(PAGE_KEY);
}

export class ToolError extends Error {
  constructor({ code, name, message, hint }, result) {
    super(message);
    this.code = code;
    this.name = name || "error";
    this.hint = hint || "";
    this.result = result;
  }
}

class Live {
  state = "connecting";
  #socket = null;
  #id = 0;
  #waiting = new Map();
  #progress = new Map();
  #topics = new Map();
  #handlers = new Map();
  #stateListeners = new Set();
  #noticeListeners = new Set();
  #tries = 0;
  #ready = null;
  #isReady = null;
  #tools = null;
  #timer = 0;

  constructor() {
    this.#renew();
    this.onNotice((method) => {
      if (method === "notifications/tools/list_changed") this.#tools = null;
    });
  }

  #renew() {
    this.#ready = new Promise((resolve) => (this.#isReady = resolve));
  }

  connect() {
    clearTimeout(this.#timer);
    const key = pageKey();
    if (!key) return this.#setState("logged-out");
    const socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}/live`, ["dari", key]);
    this.#socket = socket;
    socket.onopen = () => this.#greet(socket);
    socket.onmessage = (event) => this.#receive(JSON.parse(event.data));
    socket.onclose = () => this.#lost(socket);
  }

  /** Try at once instead of after the pause. */
  retry() {
    if (this.state === "lost") this.connect();
  }

  async #greet(socket) {
    try {
      await this.#send("initialize", {
        protocolVersion: "2025-11-25",
        capabilities: { elicitation: { form: {}, url: {} }, sampling: {} },
        clientInfo: { name: "console", version: "1" },
      });
    } catch {
      socket.close();
      return;
    }
    this.#post({ method: "notifications/initialized" });
    this.#tries = 0;
    this.#setState("open");
    this.#isReady();
    for (const topic of this.#topics.keys()) this.#subscribe(topic);
  }

  #lost(socket) {
    if (socket !== this.#socket) return;
    this.#socket = null;
    if (this.state === "open") this.#renew();
    this.#tools = null;
    for (const { reject } of this.#waiting.values()) reject(new ToolError({ name: "connection_lost", message: "connection lost" }));
    this.#waiting.clear();
    this.#progress.clear();
    this.#setState("lost");
    const pause = RETRY_MS[Math.min(this.#tries++, RETRY_MS.length - 1)];
    this.#timer = setTimeout(() => this.#reconnect(), pause);
  }

  async #reconnect() {
    // A page that was logged out gets no WebSocket, and no reason for it: ask for the page itself.
    try {
      const headers = { "x-dari-page-key": localStorage.getItem(PAGE_KEY) };
      const answer = await fetch("/", { method: "HEAD", redirect: "manual", headers });
      if (answer.status === 401) return this.#setState("logged-out");
    } catch {
      // The hub is down: the WebSocket tries again below.
    }
    this.connect();
  }

  #setState(state) {
    if (this.state === state) return;
    this.state = state;
    for (const tell of this.#stateListeners) tell(state);
  }

  onState(run, signal) {
    this.#stateListeners.add(run);
    signal?.addEventListener("abort", () => this.#stateListeners.delete(run));
    run(this.state);
  }

  /** run(method, params) for every notification of the server. */
  onNotice(run, signal) {
    this.#noticeListeners.add(run);
    signal?.addEventListener("abort", () => this.#noticeListeners.delete(run));
  }

  /** Answer requests of the server (elicitation/create, sampling/createMessage): handler(params) → result, or throw. */
  onRequest(method, handler) {
    this.#handlers.set(method, handler);
  }

  #post(message) {
    this.#socket?.send(JSON.stringify({ jsonrpc: "2.0", ...message }));
  }

  #send(method, params, { onProgress, signal } = {}) {
    const id = ++this.#id;
    if (onProgress) {
      this.#progress.set(id, onProgress);
      params = { ...params, _meta: { ...params?._meta, progressToken: id } };
    }
    let cancel;
    const reply = new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      this.#waiting.set(id, { resolve, reject });
      cancel = () => {
        if (!this.#waiting.delete(id)) return;
        this.#progress.delete(id);
        this.#post({ method: "notifications/cancelled", params: { requestId: id, reason: "cancelled by the person" } });
        reject(signal.reason);
      };
      signal?.addEventListener("abort", cancel);
      this.#post({ id, method, params });
    });
    // A page asks for a day with one signal: what stayed there would hold every answer.
    return reply.finally(() => signal?.removeEventListener("abort", cancel));
  }

  /** Any MCP request; waits for the connection. */
  async request(method, params = {}, options = {}) {
    await this.#ready;
    return this.#send(method, params, options);
  }

  /** Call a tool. The answer has `value` (structured content, or the text as JSON, or the text) and the whole `result`.
   * With `mayAsk: false` this one call is made as by a client that nothing can be asked in between. */
  async call(name, args = {}, { mayAsk = true, ...options } = {}) {
    const params = { name, arguments: args, ...(mayAsk ? {} : { _meta: ASKS_NOTHING }) };
    const result = await this.request("tools/call", params, options);
    if (result.isError) {
      const told = result._meta?.["dari/error"];
      throw new ToolError(told || { name: "tool_error", message: textOf(result) }, result);
    }
    return { value: valueOf(result), content: result.content || [], result };
  }

  /** Every tool, in one list, kept until the server says that it changed. */
  tools() {
    return (this.#tools ??= this.list("tools/list", "tools"));
  }

  async list(method, member) {
    const all = [];
    let cursor;
    do {
      const page = await this.request(method, cursor ? { cursor } : {});
      all.push(...page[member]);
      cursor = page.nextCursor;
    } while (cursor);
    return all;
  }

  /** Follow a topic: onEvent(event) for each; the first after every (re)connection is the whole state. Returns stop(). */
  follow(topic, onEvent, { since = () => "", filter = "", extra = {}, onError = () => {}, signal } = {}) {
    let followers = this.#topics.get(topic);
    const one = { onEvent, onError, since, filter, extra };
    if (!followers) this.#topics.set(topic, (followers = new Set()));
    followers.add(one);
    if (this.state === "open") this.#subscribe(topic);
    const stop = () => {
      if (!followers.delete(one) || followers.size || this.#topics.get(topic) !== followers) return;
      this.#topics.delete(topic);
      if (this.state === "open") this.#send("topics/unsubscribe", { topic }).catch(() => {});
    };
    signal?.addEventListener("abort", stop);
    return stop;
  }

  #subscribe(topic) {
    const [first] = this.#topics.get(topic) || [];
    if (!first) return;
    const options = { topic, since: first.since(), filter: first.filter, extra: first.extra };
    this.#send("topics/subscribe", options).catch((error) => this.#tellError(topic, error));
  }

  #tellError(topic, error) {
    for (const { onError } of this.#topics.get(topic) || []) onError(error);
  }

  #receive(message) {
    if (message.method && message.id !== undefined) return this.#answer(message);
    if (message.method) return this.#notice(message.method, message.params || {});
    const waiting = this.#waiting.get(message.id);
    if (!waiting) return;
    this.#waiting.delete(message.id);
    this.#progress.delete(message.id);
    if (!message.error) return waiting.resolve(message.result);
    const { code, message: said, data } = message.error;
    waiting.reject(new ToolError({ code, name: data?.name || "rpc_error", message: said, hint: data?.hint }));
  }

  #notice(method, params) {
    if (method === "topics/event") {
      for (const { onEvent } of this.#topics.get(params.topic) || []) onEvent(params.event);
    } else if (method === "topics/ended") {
      if (params.error) this.#tellError(params.topic, new ToolError(params.error));
      // Its source has gone (a daemon was stopped, say): ask again soon.
      setTimeout(() => this.state === "open" && this.#subscribe(params.topic), 1500);
    } else if (method === "notifications/progress") {
      this.#progress.get(params.progressToken)?.(params);
    } else {
      for (const tell of this.#noticeListeners) tell(method, params);
    }
  }

  async #answer({ id, method, params }) {
    const handler = this.#handlers.get(method);
    const socket = this.#socket;
    // Another connection counts its questions anew: there, this would answer another one.
    const post = (answer) => socket === this.#socket && this.#post({ id, ...answer });
    try {
      if (method === "ping") post({ result: {} });
      else if (!handler) post({ error: { code: -32601, message: `the page does not answer ${method}` } });
      else post({ result: await handler(params) });
    } catch (error) {
      post({ error: { code: -32000, message: String(error?.message || error) } });
    }
  }
}

function textOf(result) {
  return (result.content || []).filter((one) => one.type === "text").map((one) => one.text).join("\n");
}

function valueOf(result) {
  if (result.structuredContent !== undefined) return result.structuredContent;
  const text = textOf(result);
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export const live = new Live();
