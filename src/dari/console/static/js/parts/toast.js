// Short news at the corner; read aloud by screen readers, with an undo where one is possible.

import { cleanLines, h } from "../lib/dom.js";
import { t } from "../lib/i18n.js";

const SHOWN_MS = 6000;
let place = null;

export function toast(message, { kind = "info", undo } = {}) {
  place ??= document.body.appendChild(h("div", { class: "toasts", role: "status", "aria-live": "polite" }));
  const el = h("div", { class: ["toast", kind], data: { kind } }, h("span", { class: "grow" }, message));
  const remove = () => el.remove();
  if (undo) el.append(h("button", { class: "btn ghost", on: { click: () => (remove(), undo()) } }, t("undo")));
  el.append(h("button", { class: "btn ghost icon", "aria-label": t("dismiss"), on: { click: remove } }, "×"));
  place.append(el);
  while (place.childElementCount > 4) place.firstChild.remove();
  setTimeout(remove, undo ? SHOWN_MS * 2 : SHOWN_MS);
  return remove;
}

/** What went wrong, with the next step. */
export function toastError(error) {
  if (error?.name === "AbortError" || error?.name === "connection_lost") return;
  toast(cleanLines(error?.hint ? `${error.message} – ${error.hint}` : String(error?.message || error)), { kind: "bad" });
}
