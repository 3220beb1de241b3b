// Texts in English and Korean, switched live: what h() was given a message for is written again.

const tables = { en: {}, ko: {} };
const listeners = new Set();
export const LANGUAGES = { en: "English", ko: "한국어" };
let language = pick();

function pick() {
  const kept = globalThis.localStorage?.getItem("dari.language");
  if (kept in LANGUAGES) return kept;
  return (globalThis.navigator?.language || "en").startsWith("ko") ? "ko" : "en";
}

export class Message {
  constructor(key, values) {
    this.key = key;
    this.values = values;
  }
  toString() {
    const text = tables[language][this.key] ?? tables.en[this.key] ?? this.key;
    if (!this.values) return text;
    return text.replace(/\{(\w+)\}/g, (whole, name) => (name in this.values ? String(this.values[name]) : whole));
  }
}

/** A message; values of placeholders may be messages themselves. */
export function t(key, values) {
  return new Message(key, values);
}

export function text(message) {
  return String(message);
}

export function addTexts(texts) {
  for (const [code, table] of Object.entries(texts)) Object.assign(tables[code], table);
}

/** Keep an attribute of an element (or, with no name, a text node) equal to the message. */
export function bindText(node, name, message) {
  const bound = node.__texts || (node.__texts = []);
  const old = bound.find((one) => one.name === name);
  if (old) old.message = message;
  else bound.push({ name, message });
  write(node, name, message);
  return node;
}

function write(node, name, message) {
  if (!name) node.data = String(message);
  else if (name === "value" || name === "placeholder") node[name] = String(message);
  else node.setAttribute(name, String(message));
}

export function getLanguage() {
  return language;
}

export function setLanguage(code) {
  if (!(code in LANGUAGES)) return;
  language = code;
  localStorage.setItem("dari.language", code);
  document.documentElement.lang = code;
  rewrite(document);
  for (const tell of listeners) tell(code);
}

/** Write every message below this node again. */
export function rewrite(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  for (let node = walker.currentNode; node; node = walker.nextNode()) {
    for (const { name, message } of node.__texts || []) write(node, name, message);
  }
}

/** Called after each switch; for what is drawn otherwise (numbers, canvases). */
export function onLanguage(run, signal) {
  listeners.add(run);
  signal?.addEventListener("abort", () => listeners.delete(run));
}
