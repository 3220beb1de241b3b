// Elements made by hand. Text of others only ever becomes text: no markup is parsed anywhere in this page.

import { Message, bindText } from "./i18n.js";

const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "selected", "indeterminate", "open", "readOnly", "tabIndex", "htmlFor"]);

/** h("button", {class: "btn", on: {click: run}, data: {state: "on"}, "aria-label": t("run")}, icon("play"), t("run")) */
export function h(tag, props = {}, ...children) {
  const el = document.createElement(tag);
  setProps(el, props);
  append(el, children);
  return el;
}

export function setProps(el, props) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined) continue;
    if (name === "on") for (const [event, run] of Object.entries(value)) el.addEventListener(event, run);
    else if (name === "data") for (const [key, one] of Object.entries(value)) el.dataset[key] = one;
    else if (name === "style") for (const [key, one] of Object.entries(value)) el.style.setProperty(key, one);
    else if (name === "class") el.setAttribute("class", Array.isArray(value) ? value.filter(Boolean).join(" ") : value);
    else if (name === "for") el.htmlFor = value;
    else if (value instanceof Message) bindText(el, name, value);
    else if (PROPERTIES.has(name)) el[name] = value;
    else if (value === true) el.setAttribute(name, "");
    else if (value !== false) el.setAttribute(name, String(value));
  }
}

export function append(el, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false || child === true) continue;
    if (Array.isArray(child)) append(el, child);
    else if (child instanceof Message) el.append(bindText(document.createTextNode(""), "", child));
    else el.append(child instanceof Node ? child : String(child));
  }
  return el;
}

export function clear(el) {
  el.replaceChildren();
  return el;
}

export function replace(el, ...children) {
  return append(clear(el), children);
}

/** Bring the children of `parent` in step with `items`: made once per key, updated after, moved only where needed. */
export function keyed(parent, items, keyOf, make, update = () => {}) {
  const known = parent.__keyed || (parent.__keyed = new Map());
  const seen = new Set();
  let next = parent.firstChild;
  for (const item of items) {
    const key = keyOf(item);
    if (seen.has(key)) continue;
    seen.add(key);
    let el = known.get(key);
    if (!el) known.set(key, (el = make(item)));
    update(el, item);
    if (el === next) next = next.nextSibling;
    else parent.insertBefore(el, next);
  }
  for (const [key, el] of known) {
    if (seen.has(key)) continue;
    el.remove();
    known.delete(key);
  }
}

const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;

const spellOut = (text) => text.replace(HIDDEN, (one) => `\\u{${one.codePointAt(0).toString(16)}}`);

/** A foreign text of several lines as a person can trust it: what is invisible or turns the direction around is spelled out. */
export const cleanLines = (text) => spellOut(String(text ?? "").replaceAll("\t", "  "));

/** A foreign name, likewise, in one line. */
export function cleanText(text, limit = 300) {
  const shown = spellOut(String(text ?? "").replace(/[\n\t]+/g, " "));
  return shown.length > limit ? `${shown.slice(0, limit)}…` : shown;
}

const ICONS = {
  home: "M3 11 12 4l9 7M6 9.5V20h12V9.5M10 20v-6h4v6",
  servers: "M4 5h16v5H4zM4 14h16v5H4zM7.5 7.5h.01M7.5 16.5h.01",
  tools: "M14 6a4 4 0 0 1 5-3l-3 3 2 2 3-3a4 4 0 0 1-5.5 4.8L7 19a2 2 0 0 1-3-3l9.2-8.5A4 4 0 0 1 14 6z",
  traffic: "M4 8h14l-4-4M20 16H6l4 4",
  terminals: "M4 5h16v14H4zM7.5 9.5l3 2.5-3 2.5M12.5 15h4",
  knowledge: "M5 4h9a4 4 0 0 1 4 4v12H8a3 3 0 0 1-3-3zM5 17a3 3 0 0 1 3-3h10M9 8h5",
  approvals: "M12 3l8 3v6c0 4.5-3.2 7.6-8 9-4.8-1.4-8-4.5-8-9V6zM8.5 12l2.5 2.5 4.5-5",
  audit: "M6 3h9l4 4v14H6zM15 3v4h4M9 12h7M9 16h5",
  settings: "M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM19 12l2-1-1.5-3-2 .5-1.5-1.5.5-2L13.5 3.5 12 5.5l-1.5-2L7.5 5l.5 2-1.5 1.5-2-.5L3 11l2 1-2 1 1.5 3 2-.5L8 17l-.5 2 3 1.5 1.5-2 1.5 2 3-1.5-.5-2 1.5-1.5 2 .5 1.5-3z",
  search: "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.5 15.5 20 20",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  close: "M6 6l12 12M18 6 6 18",
  check: "M5 12.5l4.5 4.5L19 7",
  copy: "M9 9h10v11H9zM15 9V4H5v11h4",
  play: "M7 5l11 7-11 7z",
  stop: "M7 7h10v10H7z",
  pause: "M8 5v14M16 5v14",
  edit: "M5 19l1-4L16 5l3 3L9 18zM14 7l3 3",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10.5 11v5M13.5 11v5",
  refresh: "M19 8a8 8 0 1 0 1 6M20 4v4h-4",
  download: "M12 4v11M8 11l4 4 4-4M5 20h14",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
  filter: "M4 6h16l-6 7v5l-4 2v-7z",
  up: "M6 15l6-6 6 6",
  down: "M6 9l6 6 6-6",
  right: "M9 6l6 6-6 6",
  left: "M15 6l-6 6 6 6",
  warn: "M12 4l9 16H3zM12 10v4M12 17h.01",
  info: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 11v5M12 8h.01",
  eye: "M3 12s3-6 9-6 9 6 9 6-3 6-9 6-9-6-9-6zM12 10a2 2 0 1 0 0 4 2 2 0 0 0 0-4z",
  menu: "M4 7h16M4 12h16M4 17h16",
  bars: "M5 20v-8M12 20V4M19 20v-5",
  drag: "M9 6h.01M15 6h.01M9 12h.01M15 12h.01M9 18h.01M15 18h.01",
  clock: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 8v4l3 2",
  split: "M4 5h16v14H4zM12 5v14",
  fit: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  hand: "M8 12V6a1.5 1.5 0 0 1 3 0v5V4.5a1.5 1.5 0 0 1 3 0V11 6a1.5 1.5 0 0 1 3 0v8c0 4-2 6-5.5 6C8 20 7 18 4.5 14a1.5 1.5 0 0 1 2.5-1.5z",
  bolt: "M13 3 5 14h6l-1 7 8-11h-6z",
  key: "M15.5 4a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM12.3 11.7 4 20M7 17l2.5 2.5M10 14l2 2",
  globe: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM4 12h16M12 4c3 3 3 13 0 16M12 4c-3 3-3 13 0 16",
  moon: "M19 14A8 8 0 0 1 10 5a8 8 0 1 0 9 9z",
  file: "M6 3h9l4 4v14H6zM15 3v4h4",
};

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const el = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== undefined) el.setAttribute(name, value);
  el.append(...children.flat().filter((one) => one !== null && one !== undefined));
  return el;
}

export function icon(name) {
  const path = svg("path", { d: ICONS[name] || ICONS.info });
  return svg("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" }, path);
}
