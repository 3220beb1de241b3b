/** A JSON value as a tree: nodes are made when they are opened, so 10 MB open as fast as 10 lines. */

import { cleanText, h, replace } from "../lib/dom.js";
import { count } from "../lib/format.js";
import { addTexts, t } from "../lib/i18n.js";
import { canOpen, childrenOf, childToward, isRange, LONG_TEXT, pathOfNode, rootNode, search, sizeOf } from "../lib/json-tree.js";
import { prettyJson } from "../lib/json-text.js";
import { loadStyle } from "../lib/style.js";
import texts from "../texts/json-view.js";
import { copyButton } from "./widgets.js";

addTexts(texts);
loadStyle("json-view.css");

const TEXT_PAGE = 20000;

/** `tools: false` leaves out search and copy. */
export function jsonView(value, { tools = true, label = t("json.tree") } = {}) {
  const nodes = new WeakMap(); // element → node
  let current = null;

  const where = h("span", { class: "mono muted json-path" });
  const tree = h("div", {
    class: "json-tree mono",
    role: "tree",
    "aria-label": label,
    on: { keydown: onKey, click: onClick, focusin: (event) => choose(event.target.closest("[role=treeitem]")) },
  });
  const first = makeItem(rootNode(value), 1);
  tree.append(first);
  first.tabIndex = 0;
  current = first;
  toggle(first, true);

  function makeItem(node, level) {
    const line = h("div", { class: "json-line" }, ...describe(node));
    const item = h("div", { class: "json-node", role: "treeitem", tabindex: "-1", "aria-level": String(level) }, line);
    if (canOpen(node)) item.setAttribute("aria-expanded", "false");
    nodes.set(item, node);
    return item;
  }

  function toggle(item, open) {
    if (!item.hasAttribute("aria-expanded") || (item.getAttribute("aria-expanded") === "true") === open) return;
    item.setAttribute("aria-expanded", String(open));
    item.lastElementChild.role === "group" && item.lastElementChild.remove();
    if (!open) return;
    const node = nodes.get(item);
    const level = Number(item.getAttribute("aria-level")) + 1;
    const children = typeof node.value === "string" ? [longText(node.value)] : childrenOf(node).map((child) => makeItem(child, level));
    item.append(h("div", { role: "group", class: "json-group" }, ...children));
  }

  function choose(item) {
    if (!item || item === current || !nodes.has(item)) return;
    current.tabIndex = -1;
    current = item;
    item.tabIndex = 0;
    where.textContent = cleanText(pathOfNode(nodes.get(item)));
  }

  function onClick(event) {
    const line = event.target.closest(".json-line");
    if (!line || String(getSelection())) return;
    const item = line.parentElement;
    item.focus({ preventScroll: true });
    toggle(item, item.getAttribute("aria-expanded") !== "true");
  }

  function onKey(event) {
    const item = event.target;
    if (!nodes.has(item) || event.ctrlKey || event.metaKey || event.altKey) return;
    const isOpen = item.getAttribute("aria-expanded") === "true";
    const to = (other) => other && other.focus();
    const keys = {
      ArrowDown: () => to(below(item)),
      ArrowUp: () => to(above(item)),
      ArrowRight: () => (isOpen ? to(firstChild(item)) : toggle(item, true)),
      ArrowLeft: () => (isOpen ? toggle(item, false) : to(parentItem(item))),
      Enter: () => toggle(item, !isOpen),
      Home: () => to(first),
    };
    if (!Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  }

  /** Open everything on the way to a path of keys, and go there. */
  function reveal(path) {
    let item = first;
    for (const key of path) {
      for (let arrived = false; !arrived;) {
        const at = childToward(nodes.get(item), key);
        if (at < 0) return;
        toggle(item, true);
        item = item.lastElementChild.children[at];
        arrived = !isRange(nodes.get(item));
      }
    }
    tree.querySelector("[data-state=match]")?.removeAttribute("data-state");
    item.dataset.state = "match";
    choose(item);
    item.firstElementChild.scrollIntoView({ block: "nearest" });
  }

  const view = h("div", { class: "json-view" });
  if (tools && isLarge(value)) view.append(searchBar(value, reveal));
  view.append(tree);
  if (tools) {
    const chosen = () => nodes.get(current);
    where.textContent = "$";
    view.append(
      h(
        "div",
        { class: "row json-foot" },
        where,
        copyButton(() => pathOfNode(chosen()), t("json.copyPath")),
        h("span", { class: "grow" }),
        h("span", { class: "muted small", "aria-hidden": "true" }, t("json.copyValue")),
        copyButton(() => valueText(chosen()), t("json.copyValue")),
      ),
    );
  }
  return view;
}

/** Whether there is enough in it to search. */
function isLarge(value) {
  const stack = [value];
  let nodes = 0;
  for (; stack.length && nodes < 25; nodes++) {
    const one = stack.pop();
    if (typeof one === "object" && one !== null) stack.push(...Object.values(Array.isArray(one) ? one.slice(0, 25) : one).slice(0, 25));
  }
  return nodes >= 25;
}

function searchBar(value, reveal) {
  let matches = [];
  let at = -1;
  let run = 0;
  const state = h("span", { class: "muted", role: "status" });
  const input = h("input", { class: "input grow", type: "search", placeholder: t("json.search"), "aria-label": t("json.search") });
  const step = (by) => {
    if (!matches.length) return;
    at = (at + by + matches.length) % matches.length;
    replace(state, t(matches.length >= 500 ? "json.foundMany" : "json.found", { n: count(at + 1), total: count(matches.length) }));
    reveal(matches[at]);
  };
  const start = async () => {
    const mine = ++run;
    matches = [];
    at = -1;
    const query = input.value.trim();
    replace(state, query ? t("json.searching") : "");
    if (!query) return;
    for (const path of search(value, query)) {
      if (path) matches.push(path);
      else await new Promise((resolve) => setTimeout(resolve));
      if (mine !== run) return;
      if (path && matches.length === 1) step(1);
    }
    if (!matches.length) replace(state, t("json.none"));
    else step(0);
  };
  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(start, 150);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation();
    step(event.shiftKey ? -1 : 1);
  });
  const button = (key, sign, by) =>
    h("button", { class: "btn ghost icon", type: "button", title: t(key), "aria-label": t(key), on: { click: () => step(by) } }, sign);
  return h("div", { class: "row json-search", role: "search" }, input, state, button("json.previous", "↑", -1), button("json.next", "↓", 1));
}

/** The line of a node: its name, and what a person needs to decide whether to open it. */
function describe(node) {
  const { key, value } = node;
  if (isRange(node)) return [h("span", { class: "json-size" }, `[${count(node.from)} … ${count(node.to - 1)}]`)];
  const name = key === null ? [] : [h("span", { class: "json-key" }, typeof key === "number" ? String(key) : cleanText(key)), ": "];
  if (typeof value === "object" && value !== null) {
    const size = sizeOf(value);
    const [brackets, words] = Array.isArray(value) ? ["[ ]", "json.items"] : ["{ }", "json.members"];
    return [...name, brackets, " ", h("span", { class: "json-size" }, t(words, { n: count(size) }))];
  }
  if (typeof value !== "string") return [...name, h("span", { class: `json-${value === null ? "null" : typeof value}` }, String(value))];
  const isLong = value.length > LONG_TEXT;
  const shown = h("bdi", { class: "json-string" }, cleanText(JSON.stringify(isLong ? value.slice(0, LONG_TEXT) : value)));
  return isLong ? [...name, shown, " … ", h("span", { class: "json-size" }, t("json.chars", { n: count(value.length) }))] : [...name, shown];
}

/** A long text, a page at a time. */
export function longText(value, page = TEXT_PAGE) {
  let shown = 0;
  const body = h("pre", { class: "long-text", dir: "auto", tabindex: "0" });
  const more = h("button", { class: "btn ghost", type: "button", on: { click: show } });
  const box = h("div", { class: "long-text-box" }, body);
  function show() {
    body.append(value.slice(shown, shown + page));
    shown += page;
    more.remove();
    if (shown >= value.length) return;
    replace(more, t("json.moreText", { n: count(Math.min(page, value.length - shown)) }));
    box.append(more);
    page *= 4;
  }
  show();
  return box;
}

function valueText(node) {
  if (isRange(node)) return prettyJson(node.value.slice?.(node.from, node.to) ?? node.value, Infinity);
  return typeof node.value === "string" ? node.value : prettyJson(node.value, Infinity);
}

const items = (group) => (group?.role === "group" ? [...group.children].filter((one) => one.role === "treeitem") : []);
const firstChild = (item) => items(item.lastElementChild)[0] ?? null;
const parentItem = (item) => item.parentElement.closest("[role=treeitem]");

function below(item) {
  const inside = firstChild(item);
  if (inside) return inside;
  for (let at = item; at; at = parentItem(at)) if (at.nextElementSibling) return at.nextElementSibling;
  return null;
}

function above(item) {
  let at = item.previousElementSibling;
  if (!at) return parentItem(item);
  for (;;) {
    const inside = items(at.lastElementChild).at(-1);
    if (!inside) return at;
    at = inside;
  }
}
