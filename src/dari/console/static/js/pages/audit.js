// Who called what and what came of it: records with filters, one session as a timeline, activity as charts.

import { cleanText, h, icon, keyed, replace } from "../lib/dom.js";
import { bytes, count, duration, when } from "../lib/format.js";
import { addTexts, onLanguage, t, text } from "../lib/i18n.js";
import { keys } from "../lib/keys.js";
import { live } from "../lib/live.js";
import { go, setQuery } from "../lib/route.js";
import { bars, histogram, stacked } from "../parts/charts.js";
import { OUTCOMES, recordDetail, recordRow, timelineRow } from "../parts/record-view.js";
import { toast, toastError } from "../parts/toast.js";
import { badge, emptyState, tabs } from "../parts/widgets.js";
import texts from "../texts/audit.js";

addTexts(texts);
export const css = ["audit.css"];

const VIEWS = ["records", "sessions", "activity"];
const PARTS = ["crab", "crux", "kebab", "crewx_tools", "bridge", "dari"];
const RANGES = { "1h": 3600, "24h": 86400, "7d": 604800, "30d": 2592000 };
const FIELDS = ["text", "who", "part", "tool", "outcome", "kind", "session", "range", "all"];
const PAGE = 100;
const MAX_ROWS = 3000;
const LEVELS = 60;

export function mount(root, { route, signal }) {
  const body = h("div", { class: "stack grow" });
  const tabBar = tabs({ label: t("audit.title"), items: VIEWS.map((id) => ({ id, label: t(`audit.tab.${id}`) })), current: viewOf(route),
    onSelect: (id) => go((id === "records" ? "/audit" : `/audit/${id}`) + location.search) });
  const download = h("button", { class: "btn", type: "button", on: { click: exportLines } }, icon("download"), t("audit.download"));
  const check = h("button", { class: "btn", type: "button", data: { state: "unknown" }, on: { click: verify } }, icon("check"), t("audit.verify"));
  const verdict = h("p", { role: "status", hidden: true });
  root.append(h("div", { class: "page-head" }, h("h1", {}, t("audit.title")), check, download), verdict, tabBar, body);
  const views = { records: recordsView(signal), sessions: sessionsView(signal), activity: activityView(signal) };
  let shown = "";

  function viewOf(at) {
    return VIEWS.includes(at.path[0]) ? at.path[0] : "records";
  }

  function show(at) {
    const name = viewOf(at);
    tabBar.select(name);
    if (name !== shown) {
      views[shown]?.leave();
      shown = name;
      replace(body, views[name].el);
    }
    views[name].show(at);
  }

  async function verify() {
    check.disabled = true;
    check.dataset.state = "busy";
    try {
      const { value } = await live.call("dari_audit_verify", {}, { signal });
      check.dataset.state = value.is_whole ? "ok" : "bad";
      verdict.hidden = false;
      verdict.className = value.is_whole ? "badge ok" : "error";
      const place = value.broken ? `${value.broken.file}:${value.broken.line} ${value.broken.why}` : text(t("audit.torn", { n: value.torn_bytes }));
      replace(verdict, value.is_whole ? t("audit.whole", { n: count(value.records) }) : t("audit.broken", { place: cleanText(place) }));
    } catch (error) {
      check.dataset.state = "unknown";
      toastError(error);
    } finally {
      check.disabled = false;
    }
  }

  async function exportLines() {
    download.disabled = true;
    const parts = [];
    let cursor = "";
    let total = 0;
    try {
      do {
        const { value } = await live.call("dari_audit_export", { filter: filterOf(route.query), cursor }, { signal });
        parts.push(value.lines);
        total += value.records;
        cursor = value.next;
      } while (cursor);
      const url = URL.createObjectURL(new Blob(parts, { type: "application/x-ndjson" }));
      h("a", { href: url, download: "audit.jsonl" }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60000);
      toast(t("audit.downloaded", { n: count(total) }), { kind: "ok" });
    } catch (error) {
      toastError(error);
    } finally {
      download.disabled = false;
    }
  }

  keys.add({ key: "/", label: t("audit.find"), run: () => body.querySelector("input[type=search]")?.focus(), when: () => shown === "records" }, signal);
  keys.add({ key: "j", label: t("audit.older"), run: () => views.records.step(1), repeats: true, when: () => shown === "records" }, signal);
  keys.add({ key: "k", label: t("audit.newer"), run: () => views.records.step(-1), repeats: true, when: () => shown === "records" }, signal);
  show(route);
  return { update: show };
}

const short = (ms) => (ms < 1000 ? `${ms} ms` : `${ms / 1000} s`);

/** What the address says, as dari_audit_search takes it. */
function filterOf(query) {
  const filter = {};
  for (const name of FIELDS) if (query.get(name) && !["range", "all"].includes(name)) filter[name] = query.get(name);
  for (const name of ["who", "tool"]) if (filter[name] && !/[*?[]/.test(filter[name])) filter[name] = `*${filter[name]}*`;
  if (!query.get("all") && !filter.session && !filter.who) filter.agents_only = true;
  const seconds = RANGES[query.get("range")];
  if (seconds) filter.since_unix = Math.floor(Date.now() / 1000) - seconds;
  return filter;
}

function recordsView(signal) {
  let records = [];
  let next = "";
  let asked = "";
  let mine = 0;
  let chosen = 0;
  let stop = null;
  let query = new URLSearchParams();
  const inputs = {};
  const input = (name, props) => (inputs[name] = h("input", { class: "input", name, "aria-label": t(`audit.${name}`), placeholder: t(`audit.${name}`), ...props, on: { change: () => setQuery({ [name]: inputs[name].value.trim() }) } }));
  const select = (name, values, prefix) => (inputs[name] = h("select", { class: "select", name, "aria-label": t(`audit.${name}`), on: { change: () => setQuery({ [name]: inputs[name].value }) } },
    h("option", { value: "" }, t(`audit.any.${name}`)), values.map((one) => h("option", { value: one }, prefix ? t(`${prefix}.${one}`) : one))));
  const tools = h("form", { class: "toolbar audit-filters", role: "search", "aria-label": t("audit.filters"), on: { submit: (event) => event.preventDefault() } },
    input("text", { type: "search" }), input("who", {}), input("tool", {}), input("session", {}), select("part", PARTS), select("outcome", Object.keys(OUTCOMES), "audit.outcome"), select("kind", ["call", "decision"], "audit.kind"), select("range", Object.keys(RANGES), "audit.range"), h("label", { class: "check" }, (inputs.all = h("input", { type: "checkbox", name: "all", on: { change: () => setQuery({ all: inputs.all.checked ? "1" : null }) } })), t("audit.all")),
    h("button", { class: "btn ghost", type: "button", on: { click: () => go("/audit") } }, t("audit.clear")));
  const form = inputs.as = h("select", { class: "select", "aria-label": t("audit.as"), on: { change: () => setQuery({ as: inputs.as.value }) } }, ["", "table", "timeline", "json"].map((one) => h("option", { value: one }, t(`audit.as.${one || "auto"}`))));
  tools.append(form);
  const detail = h("section", { class: "card audit-detail", hidden: true, "aria-label": t("audit.record") });
  const list = h("div", { class: "audit-list", data: { state: "loading" } });
  const older = h("button", { class: "btn", type: "button", hidden: true, on: { click: () => load(next) } }, t("audit.more"));
  const el = h("div", { class: "stack" }, tools, detail, list, h("div", { class: "row" }, older));
  const body = h("tbody");
  const table = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("audit.tab.records") }, h("table", { class: "table audit-table", "aria-label": t("audit.tab.records") },
    h("thead", {}, h("tr", {}, ["when", "part", "tool", "who", "outcome", "took", "size", "said"].map((one) => h("th", { scope: "col", class: [["took", "size"].includes(one) && "num", !["when", "tool", "outcome"].includes(one) && "wide-only"] }, t(`audit.${one}`))))), body));
  const steps = h("ol", { class: "audit-timeline", "aria-label": t("audit.timeline") });

  async function load(cursor) {
    const turn = ++mine;
    list.dataset.state = "loading";
    older.disabled = true;
    try {
      const { value } = await live.call("dari_audit_search", { filter: filterOf(query), cursor, limit: PAGE }, { signal });
      if (turn !== mine) return;
      records = cursor ? [...records, ...value.records].slice(-MAX_ROWS) : value.records;
      next = value.next;
      draw();
      if (!cursor) follow();
      if (!records.length && next) load(next); // nothing in what was read so far: go on
    } catch (error) {
      if (signal.aborted || turn !== mine) return;
      list.dataset.state = "failed";
      toastError(error);
    } finally {
      older.disabled = false;
    }
  }

  function follow() {
    stop?.();
    const { since_unix: _, ...extra } = filterOf(query);
    stop = live.follow("audit:page", (news) => {
      if (news.is_reset) return load("");
      const fresh = news.records.filter((one) => !records.length || one.n > records[0].n);
      if (!fresh.length) return;
      records = [...fresh, ...records].slice(0, MAX_ROWS);
      draw();
    }, { signal, extra, since: () => String(records[0]?.n ?? ""), onError: toastError });
  }

  function draw() {
    const as = query.get("as") || (query.get("session") ? "timeline" : "table");
    const isEmpty = !query.size && !next ? !records.some((one) => one.kind === "call" || one.kind === "decision") : !records.length; // that the log was opened teaches nobody
    list.dataset.state = isEmpty ? "empty" : "ready";
    list.dataset.as = as;
    older.hidden = !next;
    if (isEmpty) return replace(list, next ? h("p", { class: "muted" }, t("audit.searching")) : emptyState({ icon: "audit", title: t(query.size ? "audit.nothing" : "audit.none"), body: t(query.size ? "audit.nothing.body" : "audit.none.body"), action: h("a", { class: "btn", href: query.size ? "/audit" : "/" }, t(query.size ? "audit.clear" : "audit.connect")) }));
    if (as === "json") return replace(list, h("pre", { class: "code audit-json", tabindex: "0", role: "region", "aria-label": t("audit.as.json") }, records.map((one) => `${cleanText(JSON.stringify(one), 20000)}\n`)));
    if (as === "timeline") return drawTimeline();
    if (list.firstChild !== table) replace(list, table);
    keyed(body, records, (one) => one.n, recordRow, mark);
  }

  function drawTimeline() {
    const ordered = [...records].reverse();
    const range = { start: ordered[0].at_unix - ordered[0].ms / 1000, end: ordered[ordered.length - 1].at_unix };
    const used = [...new Set(ordered.map((one) => one.part).filter(Boolean))];
    const failed = ordered.filter((one) => ["bad"].includes(OUTCOMES[one.outcome])).length;
    replace(list, h("p", { class: "row wrap" }, h("span", { class: "mono ellipsis" }, cleanText(ordered[ordered.length - 1].who, 80)), used.map((one) => badge(one)), badge(t("audit.events", { n: ordered.length })), failed ? badge(t("audit.failures", { n: failed }), "bad") : null, badge(duration((range.end - range.start) * 1000))), steps);
    replace(steps, ordered.map((one) => {
      const row = timelineRow(one, range);
      mark(row, one);
      return row;
    }));
    steps.__keyed = null;
  }

  function mark(row, one) {
    if (one.n === chosen) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  }

  async function showRecord(n) {
    chosen = n;
    detail.hidden = !n;
    for (const row of list.querySelectorAll("[data-n]")) mark(row, { n: Number(row.dataset.n) });
    if (!n) return replace(detail);
    detail.dataset.state = "loading";
    try {
      const { value } = await live.call("dari_audit_show", { n }, { signal });
      if (n !== chosen) return;
      detail.dataset.state = "ready";
      const close = h("a", { class: "btn ghost icon audit-close", href: `/audit${location.search}`, "aria-label": t("audit.close") }, icon("close"));
      replace(detail, close, recordDetail(value));
      detail.scrollIntoView({ block: "nearest" });
    } catch (error) {
      if (signal.aborted || n !== chosen) return;
      detail.dataset.state = "missing";
      replace(detail, h("p", { class: "error" }, error.message), error.hint ? h("p", { class: "muted" }, error.hint) : null);
    }
  }

  onLanguage(() => {
    body.__keyed = null;
    replace(body);
    if (records.length) draw();
    if (chosen) showRecord(chosen);
  }, signal);

  return {
    el,
    show(at) {
      query = at.query;
      for (const name of [...FIELDS, "as"]) inputs[name].value = query.get(name) ?? "";
      inputs.all.checked = Boolean(query.get("all"));
      const n = /^\d{1,15}$/.test(at.path[0] ?? "") ? Number(at.path[0]) : 0;
      if (n !== chosen) showRecord(n);
      const wanted = FIELDS.map((name) => query.get(name) ?? "").join("\n");
      if (wanted !== asked || !stop) {
        asked = wanted;
        load("");
      } else draw();
    },
    step(by) {
      const at = records.findIndex((one) => one.n === chosen);
      const to = records[at < 0 ? 0 : at + by];
      if (to) go(`/audit/${to.n}${location.search}`);
    },
    leave() {
      stop?.();
      stop = null;
      asked = "";
    },
  };
}

function sessionsView(signal) {
  const el = h("div", { class: "stack" });
  async function show() {
    el.dataset.state = "loading";
    try {
      const { value } = await live.call("dari_audit_sessions", {}, { signal });
      el.dataset.state = value.sessions.length ? "ready" : "empty";
      if (!value.sessions.length) return replace(el, emptyState({ icon: "audit", title: t("audit.noSessions"), body: t("audit.noSessions.body"), action: h("a", { class: "btn", href: "/" }, t("audit.connect")) }));
      replace(el, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("audit.tab.sessions") }, h("table", { class: "table", "aria-label": t("audit.tab.sessions") },
        h("thead", {}, h("tr", {}, ["who", "part", "calls", "failed", "tokens", "began", "last"].map((one) => h("th", { scope: "col", class: [["calls", "failed", "tokens"].includes(one) && "num", ["part", "tokens", "began"].includes(one) && "wide-only"] }, t(`audit.${one}`))))),
        h("tbody", {}, value.sessions.map((one) => h("tr", { data: { session: cleanText(one.session) } },
          h("td", {}, h("a", { href: `/audit?session=${encodeURIComponent(one.session)}` }, cleanText(one.who || one.session, 80))), h("td", { class: "wide-only" }, h("span", { class: "row wrap" }, one.parts.map((part) => badge(part)))),
          h("td", { class: "num" }, count(one.calls)), h("td", { class: "num" }, count(one.failed)), h("td", { class: "num wide-only" }, count(one.tokens)), h("td", { class: "wide-only" }, when(one.first_unix)), h("td", {}, when(one.last_unix))))))));
    } catch (error) {
      if (!signal.aborted) toastError(error);
    }
  }
  return { el, show, leave() {} };
}

function activityView(signal) {
  const range = h("select", { class: "select", "aria-label": t("audit.range"), on: { change: () => setQuery({ minutes: range.value }) } }, [60, 360, 1440].map((one) => h("option", { value: one }, t(`audit.minutes.${one}`))));
  const place = h("div", { class: "grid audit-charts" });
  const processes = h("div", { class: "card" });
  const cut = h("p", { class: "muted small", hidden: true }, t("audit.cut"));
  const el = h("div", { class: "stack" }, h("div", { class: "toolbar" }, range, cut), place, processes);
  const charts = {};
  const levels = new Map();
  let timer = 0;
  let stop = null;
  let memory = null;
  let load = null;

  /** Made once, so that what a person has opened in a chart stays open. */
  function put(name, make, data) {
    if (charts[name]) return charts[name].update(data);
    place.append(h("div", { class: "card" }, (charts[name] = make(data))));
  }

  async function draw(minutes) {
    const ask = (group_by) => live.call("dari_activity_calls", { minutes, steps: 60, group_by }, { signal }).then(({ value }) => value);
    try {
      const [byTool, byOutcome, byWho] = await Promise.all(["tool", "outcome", "who"].map(ask));
      const over = (value, pick) => ({ start: value.start_unix, step: value.step_s, series: value.series.map((one) => ({ name: one.name, values: pick(one) })) });
      const names = byOutcome.series.map((one) => ({ name: text(t(`audit.outcome.${one.name}`)), values: one.calls, state: OUTCOMES[one.name] }));
      const limits = byTool.duration_limits_ms;
      put("tools", stacked, { label: t("audit.chart.tools"), ...over(byTool, (one) => one.calls) });
      put("outcomes", stacked, { label: t("audit.chart.outcomes"), ...over(byOutcome, (one) => one.calls), series: names });
      put("tokens", stacked, { label: t("audit.chart.tokens"), ...over(byWho, (one) => one.tokens) });
      put("durations", histogram, { label: t("audit.chart.durations"), buckets: byTool.durations.map((value, at) => ({ value, name: at < limits.length ? short(limits[at]) : `> ${short(limits[at - 1])}` })) });
      put("failures", bars, { label: t("audit.chart.failures"), rows: byTool.series.map((one) => ({ name: one.name, value: one.failed.reduce((a, b) => a + b, 0), state: "bad", href: `/audit?tool=${encodeURIComponent(one.name)}` })).filter((one) => one.value) });
      cut.hidden = !byTool.is_cut;
    } catch (error) {
      if (!signal.aborted) toastError(error);
    }
  }

  function measure({ now_unix: now, processes: found }) {
    for (const { process: one, cpu } of found) {
      if (!levels.has(one.name)) levels.set(one.name, { memory: Array(LEVELS).fill(0), cpu: Array(LEVELS).fill(0) });
      const level = levels.get(one.name);
      level.memory = [...level.memory.slice(1), one.memory_bytes];
      level.cpu = [...level.cpu.slice(1), cpu];
    }
    const here = new Set(found.map((one) => one.process.name));
    for (const name of levels.keys()) if (!here.has(name)) levels.delete(name);
    const over = (pick) => ({ start: now - LEVELS * 2, step: 2, area: true, series: [...levels].map(([name, level]) => ({ name, values: level[pick] })) });
    const all = { label: t("audit.chart.memory"), ...over("memory"), format: bytes };
    const cpu = { label: t("audit.chart.cpu"), ...over("cpu"), format: (n) => `${Math.round(n * 100)} %` };
    if (!memory) replace(processes, h("div", { class: "grid audit-charts" }, (memory = stacked(all)), (load = stacked(cpu))), table);
    else {
      memory.update(all);
      load.update(cpu);
    }
    keyed(rows, found, ({ process }) => process.pid, () => h("tr"), (row, { process: one, cpu: used }) => replace(row, h("th", { scope: "row" }, cleanText(one.name, 60)), h("td", { class: "wide-only" }, t(`audit.process.${one.kind}`)), h("td", { class: "num wide-only" }, String(one.pid)), h("td", { class: "num wide-only" }, count(one.processes)), h("td", { class: "num" }, bytes(one.memory_bytes)), h("td", { class: "num" }, `${Math.round(used * 100)} %`)));
  }

  const rows = h("tbody");
  const table = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("audit.processes") }, h("table", { class: "table", "aria-label": t("audit.processes") },
    h("thead", {}, h("tr", {}, ["name", "kindOf", "pid", "processes", "memory", "cpu"].map((one, at) => h("th", { scope: "col", class: [at > 1 && "num", [1, 2, 3].includes(at) && "wide-only"] }, t(`audit.${one}`))))), rows));
  signal.addEventListener("abort", () => clearInterval(timer));
  onLanguage(() => stop && draw(Number(range.value)), signal);
  return {
    el,
    show(at) {
      const minutes = Number(at.query.get("minutes")) || 60;
      range.value = String([60, 360, 1440].includes(minutes) ? minutes : 60);
      draw(Number(range.value));
      clearInterval(timer);
      timer = setInterval(() => document.visibilityState === "visible" && draw(Number(range.value)), 20000);
      stop ??= live.follow("activity", measure, { signal, onError: toastError });
    },
    leave() {
      clearInterval(timer);
      stop?.();
      stop = null;
    },
  };
}
