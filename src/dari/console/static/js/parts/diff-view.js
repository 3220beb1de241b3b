// Two texts and what changed between them, unified or side by side. The page loads css/diff.css.

import { MAX_LINES, countChanges, diffLines, foldRows, markRows, sideBySide } from "../lib/diff.js";
import { cleanLines, h, replace } from "../lib/dom.js";
import { addTexts, t } from "../lib/i18n.js";
import texts from "../texts/diff.js";

addTexts(texts);

const PAGE_ROWS = 400;
const MAX_CHARS = 2000;
const SIGNS = { same: "", removed: "−", added: "+" };

/** An element. `names`: what the two texts are called; `mode`: "unified" or "split"; `onMode` hears of a switch. */
export function diffView(oldText, newText, { names = [t("diff.old"), t("diff.new")], mode = "unified", onMode } = {}) {
  const made = diffLines(oldText, newText);
  const rows = markRows(made.rows);
  const count = countChanges(rows);
  const root = h("div", { class: "diff-view", data: { state: count.added + count.removed ? "changed" : "same" } });
  if (!count.added && !count.removed) {
    root.append(h("p", { class: "muted" }, t("diff.same")));
    return root;
  }
  const body = h("div", { class: "diff-body", tabindex: "0", role: "group", "aria-label": t("diff.table", { old: names[0], new: names[1] }) });
  const buttons = ["unified", "split"].map((each) =>
    h("button", { type: "button", class: "btn", data: { mode: each }, on: { click: () => show(each, true) } }, t(`diff.${each}`)));
  root.append(
    h("div", { class: "toolbar" },
      h("span", { class: "muted grow" }, t("diff.count", count)),
      h("div", { class: "row", role: "group", "aria-label": t("diff.view") }, buttons)),
    made.isCut ? h("p", { class: "muted" }, t("diff.cut", { n: MAX_LINES })) : "",
    made.isCoarse ? h("p", { class: "muted" }, t("diff.coarse")) : "",
    body,
  );
  function show(next, isChosen) {
    root.dataset.mode = next;
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.mode === next));
    replace(body, table(foldRows(rows), next, names));
    if (isChosen) onMode?.(next);
  }
  show(mode, false);
  return root;
}

function table(items, mode, names) {
  const make = mode === "split" ? splitRows : unifiedRows;
  const columns = mode === "split" ? 4 : 3;
  const heads = mode === "split" ? [t("diff.line"), names[0], t("diff.line"), names[1]] : [names[0], names[1], t("diff.text")];
  const rows = h("tbody");
  append(rows, items, make, columns);
  return h("table", { class: "diff-table", data: { mode } },
    h("colgroup", {}, heads.map(() => h("col"))),
    h("thead", { class: "visually-hidden" }, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
    rows);
}

/** So many rows at once; the rest behind a button. */
function append(rows, items, make, columns) {
  const [now, later] = [items.slice(0, PAGE_ROWS), items.slice(PAGE_ROWS)];
  rows.append(...make(now, (fold) => foldRow(fold, make, columns)));
  if (!later.length) return;
  const row = buttonRow(t("diff.more", { n: later.length }), columns, () => {
    row.remove();
    append(rows, later, make, columns);
  });
  rows.append(row);
}

function foldRow(fold, make, columns) {
  const row = buttonRow(t("diff.fold", { n: fold.length }), columns, () => {
    const shown = make(fold.slice(0, PAGE_ROWS), () => "");
    const rest = fold.slice(PAGE_ROWS);
    row.replaceWith(...shown, ...(rest.length ? [foldRow(rest, make, columns)] : []));
    const cell = shown[0].firstChild;
    cell.tabIndex = -1;
    cell.focus();
  });
  return row;
}

function buttonRow(label, columns, run) {
  return h("tr", { class: "diff-fold" },
    h("td", { colspan: columns }, h("button", { type: "button", class: "btn ghost", on: { click: run } }, "⋯ ", label)));
}

function unifiedRows(items, fold) {
  return items.map((item) => {
    if (item.fold) return fold(item.fold);
    return h("tr", { data: { kind: item.kind } }, number(item.a), number(item.b), line(item));
  });
}

function splitRows(items, fold) {
  const made = [];
  let run = [];
  const flush = () => {
    for (const { left, right } of sideBySide(run)) {
      made.push(h("tr", {}, number(left?.a), line(left), number(right?.b), line(right)));
    }
    run = [];
  };
  for (const item of items) {
    if (!item.fold) run.push(item);
    else (flush(), made.push(fold(item.fold)));
  }
  flush();
  return made;
}

const number = (value) => h("td", { class: "diff-number" }, value ?? "");

function line(row) {
  if (!row) return h("td", { class: "diff-line", data: { kind: "none" } });
  const tag = { removed: "del", added: "ins" }[row.kind];
  const text = (row.parts ?? [{ text: row.text, changed: false }]).map((part) =>
    part.changed ? h("mark", {}, clip(part.text)) : clip(part.text));
  return h("td", { class: "diff-line", data: { kind: row.kind } },
    h("span", { class: "diff-sign", "aria-hidden": "true" }, SIGNS[row.kind]),
    tag ? h("span", { class: "visually-hidden" }, t(`diff.${row.kind}`), " ") : "",
    h("bdi", {}, tag ? h(tag, {}, text) : text));
}

const clip = (text) => cleanLines(text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}…` : text);
