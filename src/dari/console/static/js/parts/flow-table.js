// Rows of the traffic table: elements that are made once and filled again and again.

import { cleanText, h } from "../lib/dom.js";
import * as F from "../lib/flow-rows.js";
import { bytes, clock, duration } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { setText, virtualList } from "./virtual-list.js";

const COLUMNS = ["mark", "time", "method", "status", "host", "path", "type", "size", "duration", "program", "rule"];
const NUMBERS = new Set(["size", "duration"]);

/** flowTable({rows: FlowRows, marked: Set of ids, onOpen(id), onToggle(id, event), onFollow(bool)}) → {element, list, change(run), activate(id), current()}. */
export function flowTable({ model, marked, onOpen, onToggle, onFollow }) {
  const head = h("div", { class: "flow-row" }, COLUMNS.map((name) =>
    h("span", { role: "columnheader", class: [name, NUMBERS.has(name) && "num"] }, t(`traffic.col.${name}`))));
  const idAt = (index) => model.rows[index]?.[F.ID];
  const list = virtualList({
    label: t("traffic.table"), head, make: makeRow, follows: true, onFollow,
    update: (row, index) => fill(row, model.rows[index], marked),
    onOpen: (index) => onOpen(idAt(index)),
    onToggle: (index, event) => onToggle(idAt(index), event),
  });
  let activeId = null;
  let wanted = null; // a row to bring into view as soon as it is there

  return {
    list,
    element: list.element,
    /** Change the model and keep the rows in view where they are. */
    change(run) {
      const first = list.following ? -1 : list.firstInView;
      const anchor = first >= 0 ? idAt(first) : undefined;
      activeId = idAt(list.active) ?? activeId;
      run();
      const now = anchor === undefined ? first : model.find(anchor);
      list.setCount(model.count, anchor === undefined ? 0 : (now < 0 ? -now - 1 : now) - first);
      if (activeId === null) return;
      const place = model.find(activeId);
      list.setActive(place, place >= 0 && wanted === activeId);
      if (place >= 0) wanted = null;
    },
    activate(id) {
      activeId = wanted = id;
      const place = id === null ? -1 : model.find(id);
      list.setActive(place);
      if (place >= 0) wanted = null;
    },
    current: () => idAt(list.active) ?? null,
  };
}

function makeRow() {
  const row = h("div", { class: "flow-row" });
  row.cells = {};
  for (const name of COLUMNS) {
    const node = document.createTextNode("");
    const cell = h("span", { role: "gridcell", class: [name, NUMBERS.has(name) && "num"], data: name === "mark" ? { toggle: "" } : {} }, node);
    row.cells[name] = node;
    row.append(cell);
  }
  return row;
}

function fill(element, row, marked) {
  const { cells } = element;
  if (!row) return;
  const kind = kindOf(row);
  if (element.dataset.kind !== kind) element.dataset.kind = kind;
  element.dataset.id = row[F.ID];
  const isMarked = marked.has(row[F.ID]);
  if (element.ariaSelected !== String(isMarked)) element.ariaSelected = String(isMarked);
  setText(cells.mark, isMarked ? "✓" : "");
  setText(cells.time, clock(row[F.STARTED] / 1000));
  setText(cells.method, cleanText(row[F.METHOD], 20));
  setText(cells.status, row[F.STATUS] ? String(row[F.STATUS]) : row[F.STATE] === "done" ? "×" : "…");
  setText(cells.host, cleanText(row[F.HOST]));
  setText(cells.path, cleanText(row[F.PATH]));
  setText(cells.type, cleanText(shortType(row), 40));
  setText(cells.size, row[F.STATUS] ? bytes(row[F.RECEIVED]) : "");
  setText(cells.duration, row[F.DURATION] === null ? "" : duration(row[F.DURATION]));
  setText(cells.program, cleanText(row[F.PROCESS] ?? "", 60));
  setText(cells.rule, cleanText(row[F.RULES].join(", "), 60));
}

export function kindOf(row) {
  const status = row[F.STATUS];
  if (row[F.ERROR] && row[F.STATE] === "done") return "failed";
  if (!status) return row[F.STATE] === "done" ? (row[F.EVENT] === "tunnel" ? "tunnel" : "failed") : "running";
  return status >= 500 ? "server" : status >= 400 ? "client" : status >= 300 ? "moved" : "ok";
}

function shortType(row) {
  if (row[F.MESSAGES] !== null) return `websocket ${row[F.MESSAGES]}`;
  if (row[F.EVENT] === "tunnel") return "tunnel";
  return row[F.MIME].replace(/^(application|text|image)\/(x-)?/, (whole, kind) => (kind === "image" ? "image " : ""));
}
