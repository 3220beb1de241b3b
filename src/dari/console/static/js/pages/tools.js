// Tools, resources and prompts of every server: try them as an agent would.

import { cleanLines, cleanText, h, icon, replace } from "../lib/dom.js";
import { count, duration, when } from "../lib/format.js";
import { addTexts, t, text } from "../lib/i18n.js";
import { keys } from "../lib/keys.js";
import { live } from "../lib/live.js";
import { go, setQuery } from "../lib/route.js";
import { isObject } from "../lib/json-value.js";
import { withoutSecrets } from "../lib/schema.js";
import { findTools, groupTools, toolPath } from "../lib/tool-list.js";
import { toast } from "../parts/toast.js";
import { annotationBadges, calls, loadTools, toolRun } from "../parts/tool-run.js";
import { badge, emptyState, tabs } from "../parts/widgets.js";
import texts from "../texts/tools.js";

addTexts(texts);
export const css = ["tools.css"];

const PAGE = 200;
const OPEN_ALL_BELOW = 60;
const MAX_LINK_CHARS = 1500;
/** A row that has just been drawn runs nothing: the last click may have been meant for what stood there before. */
const CALM_MS = 400;
const VIEWS = {
  tools: async () => mountTools,
  resources: async () => (await import("./tools-resources.js")).mountResources,
  prompts: async () => (await import("./tools-prompts.js")).mountPrompts,
};

export function mount(root, { route, signal }) {
  const bar = tabs({
    label: t("tools.tabs"),
    current: viewOf(route),
    items: Object.keys(VIEWS).map((id) => ({ id, label: t(`tools.tab.${id}`) })),
    onSelect: (id) => go(id === "tools" ? "/tools" : `/tools/${id}`),
  });
  const body = h("div", { class: "tools-body", data: { state: "loading" } });
  root.append(h("header", { class: "page-head" }, h("h1", {}, t("nav.tools"))), bar, body);
  let shown = { id: "", abort: new AbortController(), update() {} };
  signal.addEventListener("abort", () => shown.abort.abort());

  async function update(at) {
    const id = viewOf(at);
    bar.select(id);
    if (id === shown.id) return shown.update(at);
    shown.abort.abort();
    const mine = (shown = { id, abort: new AbortController(), update() {} });
    body.dataset.state = "loading";
    delete body.dataset.tool;
    const mountView = await VIEWS[id]();
    if (mine !== shown) return;
    Object.assign(mine, mountView(replace(body), mine.abort.signal));
    mine.update(at);
  }
  update(route);
  return { update };
}

const viewOf = ({ path }) => (path[0] === "resources" || path[0] === "prompts" ? path[0] : "tools");
const toolOf = ({ path }) => (path[0] === "-" ? path[1] : path[0]) ?? "";

function mountTools(body, signal) {
  let entries = [];
  let leftOut = [];
  let held = [];
  let current = null; // {name, abort, runner, written}
  let route = null;
  const opened = new Map(); // group → whether the person wants it open
  const filter = h("input", {
    class: "input",
    type: "search",
    placeholder: t("tools.filterHint"),
    "aria-label": t("tools.filter"),
    on: { input: onFilter, keydown: onFilterKey },
  });
  const total = h("p", { class: "muted small", role: "status" });
  const list = h("nav", { class: "tools-list", "aria-label": t("tools.list"), on: { keydown: onListKey } });
  const detail = h("div", { class: "tools-detail stack" });
  body.append(h("div", { class: "tools-side stack tight" }, filter, total, list), detail);
  keys.add({ key: "/", label: t("tools.filter"), run: () => filter.focus() }, signal);
  keys.add({ key: "Ctrl+Enter", label: t("tools.run"), run: () => current?.runner?.run(), always: true }, signal);

  async function load(isChange) {
    const loaded = await loadTools();
    if (signal.aborted) return;
    const isOther = entries.map((entry) => entry.name).join() !== loaded.entries.map((entry) => entry.name).join();
    ({ entries, leftOut, held } = loaded);
    body.dataset.state = "ready";
    if (route && (!current || !current.runner)) showTool();
    drawList();
    const row = list.querySelector("[aria-current]");
    if (row && !isChange) list.scrollTop = row.offsetTop - list.offsetTop - list.clientHeight / 3;
    if (isChange && isOther) toast(t("tools.changed"));
  }
  live.onNotice((method) => method === "notifications/tools/list_changed" && load(true).catch(() => {}), signal);
  load(false).catch((error) => !signal.aborted && replace(detail, emptyState({ icon: "warn", title: t("page.failed"), body: cleanText(error.message) })));

  let timer = 0;
  function onFilter() {
    drawList();
    clearTimeout(timer);
    timer = setTimeout(() => !signal.aborted && setQuery({ q: filter.value.trim() || null }), 300);
  }
  function onFilterKey(event) {
    if (event.isComposing) return;
    const first = list.querySelector("a");
    if (event.key === "ArrowDown" && first) (first.focus(), event.preventDefault());
    if (event.key === "Enter" && first) first.click();
  }
  function onListKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const all = [...list.querySelectorAll("a, button")];
    (all[all.indexOf(document.activeElement) + step] ?? (step < 0 ? filter : all.at(-1)))?.focus();
  }

  function drawList() {
    const query = filter.value.trim();
    const found = findTools(
      query,
      entries.filter((entry) => entry.name),
    );
    replace(total, query ? t("tools.found", { n: count(found.length), total: count(entries.length) }) : t("tools.count", { n: count(entries.length) }));
    const nameless = entries.filter((entry) => !entry.name);
    const bad = [
      ...nameless.map((entry) => text(t(`tools.problem.${entry.problem}`))),
      ...leftOut.map((one) => text(t("tools.leftOut", { server: cleanText(one.server), reason: cleanText(one.reason) }))),
      ...held.map((one) => text(t("tools.held", { server: cleanText(one.server), name: cleanText(one.tool) }))),
    ];
    const groups = query ? [{ id: "", entries: found }] : groupTools(found);
    replace(
      list,
      groups.map((group) => groupView(group, query, found.length <= OPEN_ALL_BELOW)),
      bad.length
        ? h(
            "details",
            { class: "tools-bad", data: { state: "malformed" } },
            h("summary", {}, badge(t("tools.malformed", { n: bad.length }), "warn")),
            h(
              "ul",
              {},
              bad.slice(0, 50).map((one) => h("li", { class: "small" }, one)),
            ),
          )
        : null,
      found.length || !entries.length ? null : h("p", { class: "muted tools-none" }, t("tools.none"), " ", t("tools.noneBody")),
    );
  }

  function groupView({ id, entries: inside }, query, opens) {
    const rows = h("ul", { class: "tools-rows" });
    let at = 0;
    const more = h("button", { class: "btn ghost small", type: "button", on: { click: fill } });
    function fill() {
      more.parentElement?.remove();
      rows.append(...inside.slice(at, at + PAGE).map((entry) => h("li", {}, row(entry, query))));
      at += PAGE;
      if (at < inside.length) rows.append(h("li", {}, replace(more, t("tools.more", { n: count(Math.min(PAGE, inside.length - at)) }))));
    }
    if (!id) return (fill(), rows);
    const isOpen = opened.get(id) ?? (opens || inside.some((entry) => entry.name === toolOf(route ?? { path: [] })));
    rows.hidden = !isOpen;
    if (isOpen) fill();
    const head = h(
      "button",
      {
        class: "tools-group",
        type: "button",
        "aria-expanded": String(isOpen),
        on: {
          click: () => {
            const open = rows.hidden;
            head.setAttribute("aria-expanded", String(open));
            rows.hidden = !open;
            opened.set(id, open);
            if (open && !at) fill();
          },
        },
      },
      icon("right"),
      h("span", { class: "grow ellipsis" }, id.startsWith("server:") ? cleanText(id.slice(7)) : t(`tools.part.${id}`)),
      h("span", { class: "muted small" }, count(inside.length)),
    );
    return h("div", { class: "tools-section" }, head, rows);
  }

  const row = (entry, query) =>
    h(
      "a",
      {
        class: "tools-row",
        href: toolPath(entry.name) + (query ? `?q=${encodeURIComponent(query)}` : ""),
        "aria-current": current?.name === entry.name ? "page" : null,
        data: { tool: entry.name },
      },
      h("span", { class: "mono ellipsis" }, cleanText(entry.own)),
      entry.problem ? h("span", { class: "badge warn", title: t(`tools.problem.${entry.problem}`) }, "!") : null,
      query && entry.server ? h("span", { class: "muted small ellipsis" }, cleanText(entry.server)) : null,
    );

  function markRow(name) {
    for (const link of list.querySelectorAll("a")) {
      if (link.dataset.tool === name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }

  function showTool() {
    const name = toolOf(route);
    const entry = entries.find((one) => one.name === name);
    current?.abort.abort();
    const abort = new AbortController();
    current = { name, abort, runner: null, written: null };
    signal.addEventListener("abort", () => abort.abort(), { signal: abort.signal });
    markRow(name);
    body.dataset.tool = name;
    if (!name) return replace(detail, emptyState({ icon: "tools", title: t("tools.pick"), body: t("tools.pickBody") }), historyView(null));
    if (!entry)
      return void (
        body.dataset.state === "ready" &&
        replace(detail, emptyState({ icon: "warn", title: t("tools.missing", { name: cleanText(name) }), body: t("tools.missingBody") }))
      );
    const given = readArgs(route.query.get("args"));
    const runner = (current.runner = toolRun(entry, {
      args: given,
      view: route.query.get("view") ?? "",
      signal: abort.signal,
      onArgs: (args) => writeArgs(entry, args),
      onView: (id) => setQuery({ view: id }),
      onDone: () => replace(past, historyView(entry)),
    }));
    const past = h("div", {}, historyView(entry));
    const isForeign = given !== undefined && sessionStorage.getItem("dari.args") !== route.query.get("args");
    replace(
      detail,
      h(
        "div",
        { class: "stack tight" },
        h(
          "div",
          { class: "row wrap" },
          h("h2", { class: "mono" }, cleanText(entry.own)),
          annotationBadges(entry.tool),
          entry.scope === "admin" ? h("span", { class: "badge", title: t("tools.about.consoleOnly") }, t("tools.consoleOnly")) : null,
        ),
        entry.title ? h("p", {}, h("bdi", {}, cleanText(entry.title))) : null,
        entry.own === entry.name ? null : h("p", { class: "muted small mono" }, cleanText(entry.name)),
        entry.problem ? h("p", { class: "notice warn" }, t(`tools.problem.${entry.problem}`)) : null,
        entry.description ? h("p", { class: "tools-about", dir: "auto", tabindex: "0" }, cleanLines(entry.description.slice(0, 8000))) : null,
        isForeign ? h("p", { class: "notice", data: { state: "from-link" } }, icon("info"), " ", t("tools.fromLink")) : null,
      ),
      runner.el,
      schemas(entry.tool),
      past,
    );
  }

  let argsTimer = 0;
  function writeArgs(entry, args) {
    const mine = current;
    clearTimeout(argsTimer);
    argsTimer = setTimeout(() => {
      if (signal.aborted || mine !== current) return;
      const { value } = withoutSecrets(entry.tool.inputSchema, args);
      const json = isObject(value) && Object.keys(value).length ? JSON.stringify(value) : "";
      mine.written = json.length > MAX_LINK_CHARS ? "" : json;
      sessionStorage.setItem("dari.args", mine.written);
      setQuery({ args: mine.written || null });
    }, 300);
  }

  function historyView(entry) {
    const box = h("section", { class: "stack tight tools-history", "aria-label": t("history.title") });
    const draw = () => {
      const shown = calls
        .of(entry?.name)
        .sort((a, b) => b.pinned - a.pinned || b.at - a.at)
        .slice(0, 30);
      replace(
        box,
        h(
          "div",
          { class: "row" },
          h("h3", { class: "grow" }, t("history.title")),
          shown.length ? h("button", { class: "btn ghost", type: "button", on: { click: clear } }, t("history.clear")) : null,
        ),
        shown.length
          ? h(
              "ul",
              { class: "stack tight" },
              shown.map((call) => callRow(call, entry, draw)),
            )
          : h("p", { class: "muted" }, t("history.empty")),
        h("p", { class: "muted small" }, t("history.note")),
      );
    };
    const clear = () => {
      const before = calls.clear();
      draw();
      toast(t("history.cleared"), { undo: () => (calls.restore(before), draw()) });
    };
    draw();
    return box;
  }

  function callRow(call, entry, draw) {
    const again = async () => {
      if (!entry || call.args === null) return;
      current.runner.set(call.args);
      await current.runner.run();
    };
    const fill = () => (entry ? current.runner.set(call.args ?? {}) : go(`${toolPath(call.tool)}?args=${encodeURIComponent(JSON.stringify(call.args ?? {}))}`));
    const runAgain = entry && call.args !== null ? h("button", { class: "btn ghost", type: "button", disabled: true, on: { click: again } }, t("history.replay")) : null;
    if (runAgain) setTimeout(() => (runAgain.disabled = false), CALM_MS);
    const args = call.args === null ? t("history.long") : cleanText(JSON.stringify(call.args), 160);
    return h(
      "li",
      { class: "row wrap call", data: { state: call.outcome, pinned: String(call.pinned) } },
      h(
        "button",
        {
          class: "btn ghost icon",
          type: "button",
          "aria-pressed": String(call.pinned),
          "aria-label": t(call.pinned ? "history.unpin" : "history.pin"),
          title: t(call.pinned ? "history.unpin" : "history.pin"),
          on: { click: () => (calls.pin(call.id, !call.pinned), draw()) },
        },
        call.pinned ? "★" : "☆",
      ),
      badge(t(`result.${call.outcome}`), { ok: "ok", error: "bad" }[call.outcome] ?? "warn"),
      entry ? null : h("code", {}, cleanText(call.tool)),
      h("code", { class: "grow ellipsis muted" }, args),
      call.hidden ? h("span", { class: "badge", title: t("history.hidden", { n: call.hidden }) }, "•••") : null,
      h("span", { class: "muted small nowrap" }, duration(call.ms), " · ", when(call.at / 1000)),
      h("button", { class: "btn ghost", type: "button", on: { click: fill } }, t("history.fill")),
      runAgain,
    );
  }

  return {
    update(at) {
      route = at;
      const query = at.query.get("q") ?? "";
      if (document.activeElement !== filter && filter.value.trim() !== query) {
        filter.value = query;
        drawList();
      }
      if (!current || current.name !== toolOf(at)) return showTool();
      const args = at.query.get("args") ?? "";
      if (current.runner && current.written !== null && args !== current.written && readArgs(args)) {
        current.written = args;
        current.runner.set(readArgs(args));
      }
    },
  };
}

function readArgs(text) {
  try {
    const value = text ? JSON.parse(text) : undefined;
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function schemas(tool) {
  const fold = (key, schema) => {
    const box = h("details", {}, h("summary", { class: "muted" }, t(key)));
    box.addEventListener("toggle", async () => {
      const { jsonView } = await import("../parts/json-view.js");
      if (box.open && box.childElementCount < 2) box.append(jsonView(schema));
    });
    return box;
  };
  return h(
    "div",
    { class: "stack tight" },
    fold("tools.inputSchema", tool.inputSchema),
    tool.outputSchema ? fold("tools.outputSchema", tool.outputSchema) : null,
  );
}
