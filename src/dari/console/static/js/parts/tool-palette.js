// Design 002 §3.3: any server's tool over a pane. Pick it by typing, fill its form, run; the result is shown, or typed into the pane.

import { cleanText, h, replace } from "../lib/dom.js";
import { addTexts, t } from "../lib/i18n.js";
import { findTools } from "../lib/tool-list.js";
import texts from "../texts/tools.js";
import { dialog } from "./dialog.js";
import { toast, toastError } from "./toast.js";
import { annotationBadges, loadTools, toolRun } from "./tool-run.js";

addTexts(texts);

const SHOWN = 40;
let isOpen = false;

/** typeInto(text, {enter}) types into the pane named `paneLabel`; without it the result is only shown. onResult(result) hears of each. */
export function openToolPalette({ typeInto, paneLabel, onResult = () => {} } = {}) {
  if (isOpen) return Promise.resolve();
  isOpen = true;
  const over = new AbortController();
  const box = h("div", { class: "stack tool-palette", data: { state: "loading" } });
  let entries = [];
  let query = "";

  function pick() {
    let chosen = 0;
    let found = [];
    const list = h("ul", { class: "menu palette-list", role: "listbox", id: "tool-palette-list", "aria-label": t("tools.list") });
    const input = h("input", {
      class: "input",
      type: "text",
      role: "combobox",
      placeholder: t("palette.toolFind"),
      "aria-label": t("palette.toolFind"),
      "aria-expanded": "true",
      "aria-controls": "tool-palette-list",
      autocomplete: "off",
      spellcheck: "false",
      value: query,
    });
    const select = (at) => {
      chosen = at;
      [...list.children].forEach((el, n) => el.setAttribute("aria-selected", String(n === at)));
      if (list.children[at]) input.setAttribute("aria-activedescendant", list.children[at].id);
      list.children[at]?.scrollIntoView({ block: "nearest" });
    };
    const draw = () => {
      query = input.value;
      found = findTools(query, entries).slice(0, SHOWN);
      replace(
        list,
        found.map((entry, n) =>
          h(
            "li",
            {
              role: "option",
              id: `tool-palette-${n}`,
              data: { tool: entry.name },
              on: { click: () => fill(entry), mousemove: () => select(n) },
            },
            h("span", { class: "mono nowrap" }, cleanText(entry.own)),
            h("span", { class: "muted small ellipsis grow" }, cleanText(entry.description, 120)),
            h("span", { class: "muted small nowrap" }, entry.server ? cleanText(entry.server) : t(`tools.part.${entry.group}`)),
          ),
        ),
      );
      if (!found.length) replace(list, h("li", { role: "option", "aria-disabled": "true", class: "muted" }, t("tools.none")));
      select(0);
    };
    input.addEventListener("input", draw);
    input.addEventListener("keydown", (event) => {
      if (event.isComposing) return;
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step && found.length) select((chosen + step + found.length) % found.length);
      else if (event.key === "Enter" && found[chosen]) fill(found[chosen]);
      else return;
      event.preventDefault();
    });
    draw();
    box.dataset.state = "pick";
    replace(box, input, list);
    input.focus();
  }

  function fill(entry) {
    const result = h("div", { class: "stack" });
    const runner = toolRun(entry, {
      raw: false,
      signal: over.signal,
      onDone: (done, outcome) => {
        onResult(done);
        replace(result, typeInto && outcome === "ok" ? typingView(textOf(done.content) || JSON.stringify(done.structuredContent ?? "")) : null);
      },
    });
    box.dataset.state = "fill";
    replace(
      box,
      h(
        "div",
        { class: "row wrap" },
        h("h3", { class: "mono" }, cleanText(entry.own)),
        h("span", { class: "muted" }, cleanText(entry.server)),
        annotationBadges(entry.tool),
        h("span", { class: "grow" }),
        h("button", { class: "btn ghost", type: "button", on: { click: pick } }, t("palette.back")),
      ),
      entry.description ? h("p", { class: "muted" }, h("bdi", {}, cleanText(entry.description, 600))) : null,
      runner.el,
      result,
    );
    runner.focus();
  }

  /** What is typed into a pane is seen, and may be changed, before: a shell runs every line. */
  function typingView(text) {
    const area = h("textarea", { class: "input", rows: "4", spellcheck: "false", "aria-label": t("palette.text") });
    area.value = typable(text);
    const lines = h("p", { class: "small", role: "status" });
    const enter = h("input", { type: "checkbox" });
    const warn = () => {
      const n = area.value.split("\n").length;
      replace(lines, n > 1 ? h("span", { class: "badge warn" }, t("palette.lines", { n })) : "");
    };
    const type = async () => {
      try {
        await typeInto(area.value, { enter: enter.checked });
        toast(t("palette.typed", { pane: pane() }), { kind: "ok" });
        close();
      } catch (error) {
        toastError(error);
      }
    };
    area.addEventListener("input", warn);
    warn();
    return h(
      "section",
      { class: "card", "aria-label": t("palette.text") },
      h("h3", {}, t("palette.text")),
      area,
      lines,
      h(
        "div",
        { class: "row wrap" },
        h("button", { class: "btn primary", type: "button", on: { click: type } }, t("palette.type", { pane: pane() })),
        h("label", { class: "check" }, enter, t("palette.enter")),
      ),
    );
  }

  const pane = () => (paneLabel ? cleanText(paneLabel) : t("palette.pane"));
  let close = () => {};
  const shown = dialog({
    title: t("palette.tool"),
    wide: true,
    body: (shut) => ((close = shut), box),
    onClose: () => {
      isOpen = false;
      over.abort();
    },
  });
  loadTools().then(
    (loaded) => {
      const rank = (entry) => (entry.server ? 0 : entry.scope === "admin" ? 2 : 1); // what only this page has comes last
      entries = loaded.entries.filter((entry) => entry.name).sort((a, b) => rank(a) - rank(b));
      if (!over.signal.aborted) pick();
    },
    (error) => replace(box, h("p", { class: "error" }, cleanText(error.message))),
  );
  return shown;
}

const textOf = (content) =>
  (Array.isArray(content) ? content : [])
    .filter((one) => one?.type === "text")
    .map((one) => one.text)
    .join("\n");

/** Text without what a terminal would take as a key or a command to itself, and without the ends of lines at its end. */
export const typable = (text) =>
  text
    .replace(/\r\n?/g, "\n")
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "")
    .replace(/\n+$/, "");
