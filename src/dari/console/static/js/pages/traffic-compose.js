// /traffic/compose: a request of your own; ?flow=17: a recorded one, edited and sent again.

import { cleanLines, cleanText, h, replace } from "../lib/dom.js";
import { duration } from "../lib/format.js";
import { parseHeaders } from "../lib/headers.js";
import { addTexts, t } from "../lib/i18n.js";
import { keys } from "../lib/keys.js";
import { live } from "../lib/live.js";
import { go } from "../lib/route.js";
import { messageEditor } from "../parts/message-editor.js";
import { startButton } from "../parts/proxy-off.js";
import { toastError } from "../parts/toast.js";
import { badge, copyButton } from "../parts/widgets.js";
import texts from "../texts/traffic-tools.js";

addTexts(texts);
export const css = ["traffic-tools.css"];

const HOME = "/traffic/compose";
const MAX_BODY_CHARS = 500000;
const MAX_SENT = 20;
const sent = [];

export function mount(root, { route, signal }) {
  let from = null;
  let original = null;
  let editor = null;
  let sending = null;
  const editing = h("div");
  const result = h("div", { "aria-live": "polite" });
  const history = h("div");
  const id = h("input", { class: "input method", name: "id", inputmode: "numeric", pattern: "[0-9]+", "aria-label": t("compose.id"), required: true });
  replace(root, h("section", { class: "stack compose", "aria-labelledby": "compose-title" },
    h("header", { class: "row wrap" }, h("h2", { id: "compose-title", class: "grow" }, t("compose.title")),
      h("form", { class: "row", "aria-label": t("compose.start"), on: { submit: (event) => (event.preventDefault(), go(`${HOME}?flow=${id.value.trim()}`)) } },
        h("span", { class: "muted", "aria-hidden": "true" }, t("compose.id")), id, h("button", { class: "btn", type: "submit" }, t("compose.load")))),
    h("p", { class: "muted" }, t("compose.about")), editing, result, history));
  const section = root.firstChild;
  keys.add({ key: "Ctrl+Enter", label: t("compose.send"), always: true, run: () => editing.querySelector("form")?.requestSubmit() }, signal);
  signal.addEventListener("abort", () => sending?.abort());
  update(route);
  drawHistory();
  return { update };

  function update(next) {
    const wanted = next.query.get("flow") ?? "";
    if (wanted === from) return;
    from = wanted;
    load().catch((error) => {
      if (signal.aborted) return;
      toastError(error);
      go(HOME, { replace: true });
    });
  }

  async function load() {
    const wanted = from;
    const blank = { method: "GET", url: "", headers: [], body: "", note: "" };
    const found = wanted ? await recorded(wanted) : blank;
    if (wanted !== from || signal.aborted) return;
    original = found;
    id.value = wanted;
    replace(result);
    open();
  }

  async function recorded(requestId) {
    const [shown, body] = await Promise.all([
      live.call("crab_traffic_show", { request_id: requestId, fields: ["method", "url", "request_headers", "status"] }, { signal }),
      live.call("crab_traffic_body", { request_id: requestId, direction: "request", max_chars: MAX_BODY_CHARS }, { signal }),
    ]);
    const { flow } = shown.value;
    const isText = typeof body.value.text === "string" || body.value.kind === "empty";
    const isWhole = isText && body.value.is_whole !== false && !body.value.truncated;
    return {
      method: flow.method, url: flow.url, headers: parseHeaders(flow.request_headers ?? ""),
      body: isText ? body.value.text ?? "" : null, note: isWhole ? "" : cleanText(body.value.note ?? body.value.mime ?? "…"),
    };
  }

  function open() {
    editor = messageEditor(original);
    section.dataset.state = "ready";
    replace(editing, h("form", { class: "card stack", "aria-label": from ? t("compose.from", { id: from }) : t("compose.new"), on: { submit: send } },
      h("h3", {}, from ? t("compose.from", { id: from }) : t("compose.new")), editor.el,
      h("div", { class: "row end" },
        h("button", { class: "btn ghost", type: "button", on: { click: open } }, t("compose.revert")),
        h("button", { class: "btn primary", type: "submit", title: "Ctrl+Enter" }, t("compose.send")))));
    editor.el.querySelector("[name=url]").focus();
  }

  async function send(event) {
    event.preventDefault();
    sending?.abort();
    const mine = (sending = new AbortController());
    try {
      const [tool, args] = call();
      section.dataset.state = "sending";
      replace(result, h("div", { class: "card row" }, h("span", { class: "dot", data: { state: "busy" } }), h("span", { class: "grow" }, t("compose.waiting")),
        h("button", { class: "btn", type: "button", on: { click: () => mine.abort() } }, t("cancel"))));
      const { value } = await live.call(tool, args, { signal: mine.signal });
      section.dataset.state = "sent";
      sent.unshift({ id: value.request_id, method: value.flow.method, url: value.flow.url, status: value.flow.status });
      sent.length = Math.min(sent.length, MAX_SENT);
      replace(result, answer(value, from));
      drawHistory();
    } catch (error) {
      section.dataset.state = "ready";
      replace(result, error.message?.includes("not running") ? notRunning() : null);
      toastError(error);
    }
  }

  /** A replay sends what is recorded and hidden here as well; a new request has what is in the editor. */
  function call() {
    const edits = editor.edits();
    if (from) return ["crab_traffic_replay", { request_id: from, ...edits }];
    const { method = "GET", url = "", body = "" } = edits;
    return ["crab_traffic_compose", { method, url, body, headers: edits.set_headers ?? {} }];
  }

  function notRunning() {
    return h("div", { class: "card row" }, h("span", { class: "grow" }, t("compose.stopped")), startButton());
  }

  function drawHistory() {
    replace(history, sent.length ? h("div", { class: "stack" }, h("h3", {}, t("compose.sent")),
      h("ul", { class: "plain" }, sent.map((one) => h("li", { class: "row" }, badge(String(one.status ?? "–"), kindOf(one.status)),
        h("a", { href: `/traffic/${one.id}` }, `#${one.id}`), h("code", { class: "ellipsis" }, `${cleanText(one.method)} ${cleanText(one.url)}`))))) : null);
  }
}

function answer({ request_id: id, flow, notes }, from) {
  const body = flow.response_body;
  return h("div", { class: "card stack sent", data: { request: id } },
    h("div", { class: "sent-head" }, h("h3", { class: "cap" }, t("rules.word.response")), badge(flow.status ? String(flow.status) : t("compose.failed"), kindOf(flow.status)),
      h("span", { class: "muted grow" }, duration(flow.duration_ms)),
      h("a", { class: "btn", href: `/traffic/${id}` }, t("compose.open")),
      from ? h("a", { class: "btn", href: `/traffic/diff?a=${from}&b=${id}` }, t("compose.compare", { id: from })) : null,
      h("a", { class: "btn", href: `${HOME}?flow=${id}` }, t("compose.again")),
      h("a", { class: "btn", href: `/traffic/rules?flow=${id}` }, t("compose.rule"))),
    flow.error ? h("p", { class: "error" }, cleanText(flow.error, 1000)) : null,
    notes.map((note) => h("p", { class: "rule-warning" }, cleanText(note, 1000))),
    flow.response_headers ? h("details", {}, h("summary", {}, t("editor.headers")), h("pre", { class: "code" }, h("bdi", {}, cleanLines(flow.response_headers)))) : null,
    body?.text ? h("div", { class: "row top" }, h("pre", { class: "code grow sent-body" }, h("bdi", {}, cleanLines(body.text))), copyButton(body.text))
      : h("p", { class: "muted" }, body ? cleanText(body.note ?? body.mime) : t("compose.nobody")));
}

const kindOf = (status) => (!status ? "bad" : status < 400 ? "ok" : status < 500 ? "warn" : "bad");
