// Dialogs: the browser's own <dialog>, so focus stays inside and Escape closes.

import { h, icon } from "../lib/dom.js";
import { t } from "../lib/i18n.js";

let dialogs = 0;

/** Show one; actions: [{label, kind, run, isDefault}]. Resolves with what `run` returned, or undefined when closed. */
export function dialog({ title, body, actions = [], wide = false, onClose }) {
  const id = `dialog-${++dialogs}`;
  return new Promise((resolve) => {
    let answer;
    const el = h("dialog", { class: ["dialog", wide && "wide"], "aria-labelledby": id });
    const close = (value) => {
      answer = value;
      el.close();
    };
    const buttons = actions.map((one) =>
      h("button", { class: ["btn", one.kind], type: "button", autofocus: one.isDefault, on: { click: async () => {
        close(await one.run?.());
      } } }, one.label));
    el.append(
      h("header", { class: "row" }, h("h2", { id, class: "grow" }, title),
        h("button", { class: "btn ghost icon", type: "button", "aria-label": t("close"), on: { click: () => close() } }, icon("close"))),
      h("div", { class: "dialog-body" }, typeof body === "function" ? body(close) : body),
      buttons.length ? h("footer", { class: "row end" }, buttons) : "",
    );
    el.addEventListener("close", () => {
      el.remove();
      onClose?.();
      resolve(answer);
    });
    el.addEventListener("click", (event) => event.target === el && el.close());
    document.body.append(el);
    el.showModal();
  });
}

export async function confirmDialog({ title, body, action, danger = false }) {
  const yes = await dialog({
    title,
    body: h("p", {}, body),
    actions: [
      { label: t("cancel"), kind: "ghost" },
      { label: action || t("ok"), kind: danger ? "danger" : "primary", run: () => true, isDefault: !danger },
    ],
  });
  return yes === true;
}
