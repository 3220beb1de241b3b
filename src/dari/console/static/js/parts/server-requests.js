// Questions that a server asks in the middle of a call: a form, an address to open, an answer in a model's place.

import { cleanText, h } from "../lib/dom.js";
import { addTexts, t } from "../lib/i18n.js";
import { isInText } from "../lib/keys.js";
import texts from "../texts/tools.js";
import { dialog } from "./dialog.js";
import { longText } from "./json-view.js";
import { hosts } from "./request-hosts.js";
import { schemaForm } from "./schema-form.js";
import { contentBlock } from "./tool-result.js";

addTexts(texts);

/** Show a card made by make(finish) beside the call, or in a dialog; resolves with what finish() was given. */
function ask(make, cancelled) {
  const host = hosts.at(-1);
  return new Promise((resolve) => {
    if (!host)
      return void dialog({ title: t("ask.elicit", { server: t("ask.theServer") }), body: (close) => make(close) }).then((answer) =>
        resolve(answer ?? cancelled),
      );
    const finish = (answer) => {
      card.remove();
      resolve(answer ?? cancelled);
    };
    const card = h(
      "section",
      { class: "card ask", data: { state: "asked" }, "aria-label": t("ask.elicit", { server: cleanText(host.name) }), role: "group" },
      h("h3", {}, t("ask.elicit", { server: cleanText(host.name) })),
      make(finish),
    );
    host.signal.addEventListener("abort", () => finish(cancelled), { once: true });
    host.el.append(card);
    if (isInText()) return; // a server asks when it likes: what a person types elsewhere is not for it
    card.scrollIntoView({ block: "nearest" });
    (card.querySelector("input, select, textarea, a, button") ?? card).focus();
  });
}

const button = (label, kind, run) => h("button", { class: ["btn", kind], type: "button", on: { click: run } }, t(label));
const message = (text) => h("p", { class: "ask-message" }, h("bdi", {}, cleanText(text, 4000)));

export function answerElicitation(params) {
  const refuse = (finish) => [
    button("ask.decline", "", () => finish({ action: "decline" })),
    button("ask.dismiss", "ghost", () => finish({ action: "cancel" })),
  ];
  return ask(
    (finish) => {
      if (params.mode === "url") return urlQuestion(params, finish, refuse);
      const form = schemaForm(params.requestedSchema ?? { type: "object", properties: {} }, undefined, { raw: false, all: true });
      const send = () => (form.problems().length ? form.touchAll() : finish({ action: "accept", content: form.value }));
      form.el.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" || event.isComposing || event.target.tagName === "TEXTAREA" || event.target.tagName === "BUTTON") return;
        event.preventDefault();
        send();
      });
      return h(
        "div",
        { class: "stack" },
        message(params.message),
        form.el,
        h("p", { class: "muted small" }, t("ask.warn")),
        h("div", { class: "row wrap" }, button("ask.send", "primary", send), ...refuse(finish)),
      );
    },
    { action: "cancel" },
  );
}

function urlQuestion(params, finish, refuse) {
  let url = null;
  try {
    url = new URL(params.url);
  } catch {}
  const isWeb = url && (url.protocol === "https:" || url.protocol === "http:");
  const open = isWeb
    ? h("a", { class: "btn primary", href: url.href, target: "_blank", rel: "noopener noreferrer" }, t("ask.open"), " ", url.host)
    : h("p", { class: "error" }, t("ask.noUrl"));
  return h(
    "div",
    { class: "stack" },
    message(params.message),
    h("p", {}, t("ask.url")),
    h("code", { class: "code" }, cleanText(params.url, 2000)),
    h("div", { class: "row wrap" }, open, isWeb ? button("ask.done", "", () => finish({ action: "accept" })) : null, ...refuse(finish)),
  );
}

export async function answerSampling(params) {
  const said = (Array.isArray(params.messages) ? params.messages : []).map((one) =>
    h("div", { class: "stack tight" }, h("span", { class: "badge" }, cleanText(one?.role)), ...[one?.content].flat().map(contentBlock)),
  );
  const answer = await ask((finish) => {
    const area = h("textarea", { class: "input", rows: "5", "aria-label": t("ask.answer") });
    const send = () => finish({ text: area.value });
    return h(
      "div",
      { class: "stack" },
      h("p", {}, t("ask.sample")),
      params.systemPrompt ? longText(String(params.systemPrompt)) : null,
      said,
      area,
      h(
        "div",
        { class: "row" },
        button("ask.send", "primary", send),
        button("ask.decline", "", () => finish(null)),
      ),
    );
  }, null);
  if (!answer) throw new Error("the person declined to answer");
  return { role: "assistant", content: { type: "text", text: answer.text }, model: "person", stopReason: "endTurn" };
}
