// Texts in English and Korean, switched live: what h() was given a message for is written again.

const tables = { en: {}, ko: {} };
const listeners = new Set();
export const LANGUAGES = { en: "English", ko: "한국어" };
// The server chose it (by this page's cookie, or the browser's language) and sent the texts of that language only.
let language = globalThis.document?.documentElement?.lang || "en";

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

/** A text that make() writes, anew with each switch of the language. */
export class Made extends Message {
  constructor(make) {
    super();
    this.make = make;
  }
  toString() {
    return this.make();
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

export async function setLanguage(code) {
  if (!(code in LANGUAGES)) return;
  if (!Object.keys(tables[code]).length) addTexts((await import(new URL(`../../${code}/texts/all.js`, import.meta.url))).default);
  language = code;
  document.cookie = `dari_language=${code}; Path=/; SameSite=Strict; Max-Age=31536000`;
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
