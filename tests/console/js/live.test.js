// The connection, over a server in memory that answers each message as the test says.

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import test from "node:test";

Object.assign(globalThis, { location: { hash: "", origin: "http://127.0.0.1:1" }, localStorage: { getItem: () => "key" } });

/** Sockets in the order in which the page opened them; `sent` is what it said on each. */
const sockets = [];
const answers = { initialize: {}, "tools/call": { structuredContent: { ok: true } } };

globalThis.WebSocket = class {
  sent = [];
  constructor() {
    sockets.push(this);
    queueMicrotask(() => this.onopen());
  }
  send(text) {
    const message = JSON.parse(text);
    this.sent.push(message);
    const result = answers[message.method];
    if (message.id !== undefined && result) queueMicrotask(() => this.say({ id: message.id, result }));
  }
  say(message) {
    this.onmessage({ data: JSON.stringify({ jsonrpc: "2.0", ...message }) });
  }
};

const { live } = await import("../../../src/dari/console/static/js/lib/live.js");
live.connect();

test("a call that has its answer leaves nothing behind at the signal of its page", async () => {
  const page = new AbortController();
  const call = live.call("a", {}, { signal: page.signal });
  await call;
  await assert.rejects(live.request("missing", {}, { signal: AbortSignal.abort(new Error("left")) }), /left/);
  assert.equal(getEventListeners(page.signal, "abort").length, 0);
});

test("a call that is given up is cancelled at the server, and one that is over is not", async () => {
  const page = new AbortController();
  const given = live.request("slow", {}, { signal: page.signal });
  await live.call("a", {}, { signal: page.signal });
  page.abort(new Error("left"));
  await assert.rejects(given, /left/);
  const told = sockets.at(-1).sent.filter((one) => one.method === "notifications/cancelled");
  assert.deepEqual(told.map((one) => one.params.requestId), sockets.at(-1).sent.filter((one) => one.method === "slow").map((one) => one.id));
});

test("an answer of a person goes to the connection that asked, and to no other", async () => {
  const given = [];
  live.onRequest("elicitation/create", (params) => new Promise((resolve) => given.push([params.message, resolve])));
  const ask = (message) => sockets.at(-1).say({ id: "s1", method: "elicitation/create", params: { message } });
  const answered = () => sockets.map((one) => one.sent.filter((message) => message.id === "s1").map((message) => message.result));
  ask("the first server's question");
  sockets.at(-1).onclose();
  live.retry();
  await live.call("a");
  ask("another server's question");
  given[0][1]({ action: "accept", content: { secret: "for the first" } });
  await live.call("a");
  given[1][1]({ action: "decline" });
  await live.call("a");
  assert.deepEqual(answered(), [[], [{ action: "decline" }]]);
});
