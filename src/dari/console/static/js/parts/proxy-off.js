// What is shown where crabd does not run, with the way to start it.

import { cleanText, h } from "../lib/dom.js";
import { addTexts, t } from "../lib/i18n.js";
import { live } from "../lib/live.js";
import texts from "../texts/traffic-tools.js";
import { toastError } from "./toast.js";
import { emptyState } from "./widgets.js";

addTexts(texts);

export function startButton(kind = "primary") {
  return h("button", { class: ["btn", kind], type: "button", data: { action: "start" }, on: { click: () => live.call("crab_proxy_start").catch(toastError) } }, t("tools.start"));
}

/** `error`: why a topic of the proxy ended. */
export function proxyOff(error) {
  if (error && error.name !== "unavailable") return emptyState({ icon: "warn", title: cleanText(error.message), body: cleanText(error.hint) });
  return emptyState({ icon: "warn", title: t("tools.off"), body: t("tools.off.body"), action: startButton() });
}
