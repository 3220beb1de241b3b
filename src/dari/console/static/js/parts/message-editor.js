// One editor for a request or a response: its first line, headers as lines, and the body.

import { h } from "../lib/dom.js";
import { addTexts, t, text } from "../lib/i18n.js";
import { headerEdits, parseHeaders } from "../lib/headers.js";
import texts from "../texts/traffic-tools.js";
import { field } from "./widgets.js";

addTexts(texts);

/** {el, edits(), isChanged()}. `message`: {method, url} or {status}, `headers` (pairs), `body` (text, or null when it is
 *  not shown), `note` (why the body is not whole: then it is only replaced when a person says so). */
export function messageEditor(message) {
  const isRequest = message.status === undefined || message.status === null;
  const input = (name, value, props = {}) => h("input", { class: "input mono", name, value: String(value ?? ""), spellcheck: "false", ...props });
  const method = isRequest ? input("method", message.method, { "aria-label": t("editor.method"), class: "input mono method", required: true }) : null;
  const url = isRequest ? input("url", message.url, { "aria-label": t("editor.url"), required: true }) : null;
  const status = isRequest ? null : input("status", message.status, { type: "number", min: "200", max: "599" });
  const old = message.headers;
  const lines = old.map(([name, value]) => `${name}: ${value}`).join("\n");
  const headers = h("textarea", { class: "input mono", name: "headers", rows: String(Math.min(12, Math.max(4, old.length + 1))), spellcheck: "false", value: lines });
  const isPartial = Boolean(message.note) || message.body === null;
  const body = h("textarea", { class: "input mono", name: "body", rows: "8", spellcheck: "false", value: message.body ?? "", disabled: isPartial });
  const replaces = h("input", { type: "checkbox", name: "replace-body" });
  replaces.addEventListener("change", () => (body.disabled = !replaces.checked));
  const el = h("div", { class: "stack message-editor" },
    isRequest ? h("div", { class: "row" }, method, url) : field(t("editor.status"), status),
    field(t("editor.headers"), headers, t("editor.headers.help")),
    field(t("editor.body"), body, message.note || null),
    isPartial ? h("label", { class: "check" }, replaces, t("editor.replace")) : null);

  /** Only what changed: values that stand for a hidden secret are never sent back. Throws an Error with words for a person. */
  function edits() {
    const made = readHeaders();
    if (method && method.value.trim() !== message.method) made.method = method.value.trim().toUpperCase();
    if (url && url.value.trim() !== message.url) made.url = url.value.trim();
    if (status && Number(status.value) !== message.status) made.status = Number(status.value);
    if (isPartial ? replaces.checked : body.value !== normal(message.body)) made.body = body.value;
    return made;
  }

  function readHeaders() {
    if (headers.value === normal(lines)) return {};
    try {
      return headerEdits(old, parseHeaders(headers.value));
    } catch (error) {
      if (error.line) throw new Error(text(t("editor.wrong.line", { line: error.line, text: error.message })));
      if (error.header) throw new Error(text(t("editor.wrong.repeated", { name: error.header })));
      throw error;
    }
  }

  return { el, edits };
}

/** As a textarea gives it back. */
const normal = (value) => (value ?? "").replace(/\r\n?/g, "\n");
