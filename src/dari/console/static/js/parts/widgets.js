// Small parts that every page uses.

import { h, icon, replace } from "../lib/dom.js";
import { t } from "../lib/i18n.js";
import { toast } from "./toast.js";

/** Copies the text (or what a function returns) and says so. */
export function copyButton(source, label = t("copy")) {
  const button = h("button", { class: "btn ghost icon", type: "button", "aria-label": label, title: label }, icon("copy"));
  button.addEventListener("click", async (event) => {
    event.stopPropagation();
    const text = typeof source === "function" ? await source() : source;
    await copyText(text);
    button.dataset.state = "copied";
    replace(button, icon("check"));
    setTimeout(() => {
      delete button.dataset.state;
      replace(button, icon("copy"));
    }, 1500);
  });
  return button;
}

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast(t("copied"));
  } catch {
    const area = document.body.appendChild(h("textarea", { class: "offscreen", "aria-hidden": "true" }));
    area.value = text;
    area.select();
    toast(document.execCommand("copy") ? t("copied") : t("copy.failed"));
    area.remove();
  }
}

export function emptyState({ icon: name = "info", title, body, action }) {
  return h("div", { class: "empty" }, icon(name), h("h2", {}, title), body ? h("p", {}, body) : null, action || null);
}

export function badge(label, kind = "") {
  return h("span", { class: ["badge", kind] }, label);
}

/** A dot with its meaning in words. */
export function dot(state, label) {
  return h("span", { class: "dot", data: { state }, role: "img", "aria-label": label, title: label });
}

let tabGroups = 0;

/** tabs({label, items: [{id, label, badge}], current, onSelect}) → element with .select(id). Panels belong to the caller. */
export function tabs({ label, items, current, onSelect }) {
  const group = ++tabGroups;
  const buttons = items.map((one) =>
    h("button", { class: "tab", role: "tab", id: `tab-${group}-${one.id}`, type: "button", data: { id: one.id }, on: { click: () => choose(one.id, true) } },
      one.label, one.badge ? h("span", { class: "badge" }, one.badge) : null));
  const el = h("div", { class: "tabs", role: "tablist", "aria-label": label, on: { keydown: move } }, buttons);
  function choose(id, tell) {
    for (const button of buttons) {
      const chosen = button.dataset.id === id;
      button.setAttribute("aria-selected", chosen);
      button.tabIndex = chosen ? 0 : -1;
    }
    if (tell) onSelect(id);
  }
  function move(event) {
    const at = buttons.indexOf(document.activeElement);
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (at < 0 || !step) return;
    event.preventDefault();
    const next = buttons[(at + step + buttons.length) % buttons.length];
    next.focus();
    choose(next.dataset.id, true);
  }
  el.select = (id) => choose(id, false);
  choose(current ?? items[0]?.id, false);
  return el;
}

/** Two panes with a bar between them that is dragged or moved with arrow keys; the size is remembered under `name`. */
export function splitPane(name, first, second, { vertical = false, initial = 50 } = {}) {
  const kept = Number(localStorage.getItem(`dari.split.${name}`)) || initial;
  const bar = h("div", { class: "split-bar", role: "separator", tabindex: "0", "aria-label": t("split.resize"), "aria-orientation": vertical ? "horizontal" : "vertical", "aria-valuemin": "15", "aria-valuemax": "85" });
  const el = h("div", { class: ["split", vertical && "vertical"] }, first, bar, second);
  function set(percent, keep) {
    const value = Math.min(85, Math.max(15, percent));
    el.style.setProperty("--split", `${value}%`);
    bar.setAttribute("aria-valuenow", Math.round(value));
    if (keep) localStorage.setItem(`dari.split.${name}`, String(Math.round(value)));
    el.dataset.size = String(Math.round(value));
  }
  bar.addEventListener("pointerdown", (event) => {
    bar.setPointerCapture(event.pointerId);
    const box = el.getBoundingClientRect();
    const drag = (move) => set(100 * (vertical ? (move.clientY - box.top) / box.height : (move.clientX - box.left) / box.width), true);
    bar.addEventListener("pointermove", drag);
    bar.addEventListener("lostpointercapture", () => bar.removeEventListener("pointermove", drag), { once: true });
  });
  bar.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -3, ArrowUp: -3, ArrowRight: 3, ArrowDown: 3 }[event.key];
    if (!step) return;
    event.preventDefault();
    set(Number(el.dataset.size) + step, true);
  });
  set(kept, false);
  return el;
}

/** A labelled field: field(t("name"), h("input", …), t("what it means")). */
let fields = 0;
export function field(label, control, help) {
  const id = control.id || (control.id = `field-${++fields}`);
  const note = help ? h("p", { class: "muted", id: `${id}-help` }, help) : null;
  if (note) control.setAttribute("aria-describedby", note.id);
  return h("div", { class: "field" }, h("label", { for: id }, label), control, note);
}

/** An on/off switch. onChange may be async; while it runs the switch is disabled, and it goes back when it throws. */
export function toggle({ label, checked = false, onChange, name }) {
  const box = h("input", { type: "checkbox", role: "switch", class: "switch", checked, "aria-label": label, name });
  box.addEventListener("change", async () => {
    box.disabled = true;
    try {
      await onChange(box.checked);
    } catch {
      box.checked = !box.checked;
    } finally {
      box.disabled = false;
    }
  });
  return box;
}
