// A notification of the desktop for each call that begins to wait while nobody looks at the page. Only after a person
// has turned it on.

import { cleanText } from "../lib/dom.js";
import { addTexts, t, text } from "../lib/i18n.js";
import { live } from "../lib/live.js";
import { go } from "../lib/route.js";
import texts from "../texts/approvals.js";

addTexts(texts);

let stop = null;

export const canAlert = () => "Notification" in globalThis;
export const alerts = () => canAlert() && Notification.permission === "granted" && localStorage.getItem("dari.alerts") !== "off";

/** Ask for permission and begin; false when the person or the browser refuses. */
export async function turnOn() {
  if (!canAlert() || (await Notification.requestPermission()) !== "granted") return false;
  localStorage.setItem("dari.alerts", "on");
  start();
  return true;
}

export function turnOff() {
  localStorage.setItem("dari.alerts", "off");
  stop?.();
  stop = null;
}

export function start() {
  if (stop || !alerts()) return;
  let known = null;
  stop = live.follow("approvals", ({ waiting }) => {
    const fresh = known ? waiting.filter((one) => !known.has(one.id)) : [];
    known = new Set(waiting.map((one) => one.id));
    if (document.visibilityState === "visible" && document.hasFocus()) return;
    for (const one of fresh.slice(0, 3)) show(one);
  });
}

function show(one) {
  const note = new Notification(text(t("approvals.alert", { who: cleanText(one.client || one.who, 60) })), { body: cleanText(one.effect, 200), tag: one.id, requireInteraction: true });
  note.onclick = () => {
    focus();
    go(`/approvals/${one.id}`);
    note.close();
  };
}
