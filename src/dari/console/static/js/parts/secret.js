// A secret on a page: masked until a person asks for it, loaded when it is shown or copied, and masked again soon.

import { h, icon, replace } from "../lib/dom.js";
import { addTexts, t } from "../lib/i18n.js";
import texts from "../texts/secret.js";
import { toastError } from "./toast.js";
import { copyButton } from "./widgets.js";

addTexts(texts);

const MASK = "••••••••••••";
const SHOWN_MS = 30000;

/** secretField({label, load: async () => "…"}) → element with .hide(). */
export function secretField({ label, load }) {
  const value = h("code", { class: "secret-value grow ellipsis" }, MASK);
  const button = h("button", { class: "btn ghost icon", type: "button", "aria-pressed": "false", "aria-label": t("secret.show", { label }), title: t("secret.show", { label }) }, icon("eye"));
  const el = h("div", { class: "row secret", data: { state: "masked" } }, value, button, copyButton(() => safely(load), t("secret.copy", { label })));
  let timer = 0;
  el.hide = () => {
    clearTimeout(timer);
    el.dataset.state = "masked";
    button.setAttribute("aria-pressed", "false");
    replace(value, MASK);
  };
  button.addEventListener("click", async () => {
    if (el.dataset.state === "shown") return el.hide();
    const secret = await safely(load);
    if (!secret) return;
    replace(value, secret);
    el.dataset.state = "shown";
    button.setAttribute("aria-pressed", "true");
    timer = setTimeout(el.hide, SHOWN_MS);
  });
  return el;
}

async function safely(load) {
  try {
    return await load();
  } catch (error) {
    toastError(error);
    return "";
  }
}
