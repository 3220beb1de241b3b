// The requests: toolbar, live table, detail. Rows come from the topic `traffic:FILTER`; older ones are fetched after it.

import { h, icon, replace } from "../lib/dom.js";
import { byDuration, byHost } from "../lib/flow-charts.js";
import { Backlog, FlowRows, HOST, ID, PATH, SCHEME, withTerm } from "../lib/flow-rows.js";
import { count } from "../lib/format.js";
import { onLanguage, t } from "../lib/i18n.js";
import { keys, palette } from "../lib/keys.js";
import { live } from "../lib/live.js";
import { go, setQuery } from "../lib/route.js";
import { confirmDialog } from "../parts/dialog.js";
import { filterBox } from "../parts/filter-box.js";
import { copySnippet, flowDetail } from "../parts/flow-detail.js";
import { firstSteps } from "../parts/first-steps.js";
import { flowTable } from "../parts/flow-table.js";
import { toast, toastError } from "../parts/toast.js";
import { copyButton, copyText, emptyState, splitPane } from "../parts/widgets.js";

const CHUNK = 1000;
const PAUSE_MS = 150;
const CALM_MS = 800;
const CHARTS_MS = 2000;
const SAY_MS = 8000;

export function mount(root, { route, signal }) {
  const model = new FlowRows();
  const backlog = new Backlog();
  const marked = new Set();
  let filter = route.query.get("filter") ?? "";
  let proxy = null;
  let isDown = false;
  let isReady = false;
  let isRefused = false; // the topic cannot read the filter of the address
  let cursor = "";
  let stop = () => {};
  let run = 0; // of the topic: pages of an older filter are thrown away
  let lastCut = 0;
  let isFetching = false;
  let chartTimer = 0;
  let drawCharts = () => {};
  let sayTimer = 0;

  const table = flowTable({ model, marked, onOpen: open, onToggle: toggle, onFollow: showFollow });
  const detail = flowDetail({ signal, onClose: close, onFilter: (term) => box.use(withTerm(filter, term)) });
  const box = filterBox({ value: filter, signal, onChange: (text) => setQuery({ filter: text || null }) });
  const bar = proxyBar();
  const follow = h("button", { class: "btn", type: "button", "aria-pressed": "true", title: t("traffic.follow.title"), on: { click: () => table.list.follow(!table.list.following) } }, icon("down"), t("traffic.follow"));
  const clear = h("button", { class: "btn ghost icon", type: "button", "aria-label": t("traffic.clear"), title: t("traffic.clear"), on: { click: clearAll } }, icon("trash"));
  const charts = h("button", { class: "btn ghost icon", type: "button", "aria-pressed": "false", "aria-label": t("traffic.charts"), title: t("traffic.charts"), on: { click: () => setQuery({ charts: chartPlace.hidden ? "1" : null }) } }, icon("bars"));
  const chartPlace = h("div", { class: "traffic-charts", hidden: true });
  const total = h("span", { class: "grow flow-count", data: { state: "idle" } });
  const said = h("span", { class: "visually-hidden", role: "status" });
  const chosen = h("span", { class: "row", hidden: true });
  const steps = firstSteps({ start, signal });
  const nothing = h("div", { class: "flow-empty", hidden: true });
  const left = h("div", { class: "flow-table" }, table.element, nothing, h("div", { class: "flow-status" }, total, said, chosen));
  const split = splitPane("traffic", left, detail.element, { initial: 55 });
  split.classList.add("traffic-split");
  root.append(h("div", { class: "traffic-bar" }, bar.element, box.element, follow, charts, clear), box.problem, chartPlace, split);

  table.list.follow(true);
  keys.add({ key: "/", label: t("traffic.key.filter"), run: box.focus }, signal);
  keys.add({ key: "l", label: t("traffic.key.follow"), run: () => table.list.follow(true) }, signal);
  keys.add({ key: "Escape", label: t("traffic.key.close"), run: close, when: () => detail.id !== null }, signal);
  keys.add({ key: "c", label: t("traffic.key.curl"), run: () => copySnippet("curl", detail.id ?? table.current()), when: () => (detail.id ?? table.current()) !== null }, signal);
  palette.add({ title: t("traffic.key.filter"), group: t("traffic.title"), run: box.focus }, signal);
  palette.add({ title: t("traffic.start"), group: t("traffic.title"), run: start }, signal);
  palette.add({ title: t("traffic.stop"), group: t("traffic.title"), run: () => proxy?.status === "running" && halt() }, signal);
  palette.add({ title: t("traffic.clear"), group: t("traffic.title"), run: clearAll }, signal);
  onLanguage(() => (table.list.refresh(), showCount()), signal);
  signal.addEventListener("abort", () => table.list.close());
  signal.addEventListener("abort", () => (stop(), clearInterval(chartTimer), clearTimeout(sayTimer)));
  subscribe();
  update(route);

  function subscribe() {
    stop();
    run++;
    cursor = "";
    isReady = false;
    model.clear();
    backlog.clear();
    table.change(() => {});
    stop = live.follow(`traffic:${filter}`, onEvent, { since: () => cursor, onError, signal });
  }

  function onEvent(event) {
    if (event.kind === "down") {
      isDown = true;
      proxy = null;
      bar.show();
      return showCount();
    }
    isDown = false;
    cursor = event.cursor;
    if (event.proxy) {
      proxy = event.proxy;
      bar.show();
    }
    if (isRefused) box.clearProblem();
    isRefused = false;
    table.change(() => (event.kind === "snapshot" ? take(event) : change(event)));
    isReady = true;
    if (event.kind === "snapshot") drawCharts();
    showCount();
    detail.changed(event.rows ?? []);
    fetchOlder();
  }

  function take({ rows, next_before_id }) {
    model.clear();
    model.merge(rows);
    backlog.reset(next_before_id);
  }

  function change({ rows = [], gone_ids = [], is_cut }) {
    if (is_cut) {
      lastCut = performance.now();
      const before = Math.min(rows[0]?.[ID] ?? Infinity, gone_ids[0] ?? Infinity);
      const last = model.rows.at(-1)?.[ID] ?? 0;
      if (before < Infinity) backlog.add(before, Math.min(last, model.oldestRunning() ?? last));
    }
    if (gone_ids.length) model.remove(gone_ids);
    model.merge(rows);
  }

  // Older rows and what a burst left out, a piece at a time while nothing urgent comes in.
  async function fetchOlder() {
    if (isFetching) return;
    isFetching = true;
    const mine = run;
    try {
      while (backlog.next && mine === run && !signal.aborted) {
        const range = backlog.next;
        if (model.count >= model.limit && !range.until) break;
        if (performance.now() - lastCut < CALM_MS) {
          await pause(CALM_MS / 2);
          continue;
        }
        const { value: page } = await live.call("dari_traffic_rows", { filter, before_id: range.before, limit: CHUNK }, { signal });
        if (mine !== run) break;
        table.change(() => model.merge(page.rows));
        backlog.advance(range, page.next_before_id);
        showCount();
        await pause(PAUSE_MS);
      }
    } catch (error) {
      // The topic tells when the connection or crabd is gone, and starts anew.
      if (error?.name !== "AbortError" && error?.name !== "connection_lost" && error?.name !== "unavailable") toastError(error);
    } finally {
      isFetching = false;
      if (mine !== run) fetchOlder();
      showCount();
    }
  }

  function onError(error) {
    isRefused = error.name === "invalid_input";
    if (isRefused) {
      box.check().catch(toastError);
      isReady = true;
      attempt(() => null); // no event tells about the proxy
    } else if (error.name !== "connection_lost") toastError(error);
  }

  function showCount() {
    const isLoading = isFetching && Boolean(backlog.next);
    const key = isLoading ? "traffic.older" : filter ? "traffic.count.filtered" : "traffic.count";
    total.dataset.state = isLoading ? "loading" : "idle";
    total.dataset.count = model.count;
    replace(total, t(key, { n: count(model.count) }));
    sayCount();
    const isEmpty = !model.count && !isLoading && (isReady || isDown);
    clear.disabled = !model.count;
    nothing.hidden = !isEmpty;
    if (!isEmpty) return;
    const why = isRefused ? "traffic.none.unreadable" : "traffic.none.filter";
    if (filter && !isDown) replace(nothing, emptyState({ icon: "filter", title: t(why), body: t(`${why}.body`), action: h("button", { class: "btn", type: "button", on: { click: () => box.use("") } }, t("traffic.filter.clear")) }));
    else {
      steps.show(proxy);
      if (steps.element.parentNode !== nothing) replace(nothing, steps.element);
    }
  }

  // For screen readers: now and then, and only when it changed.
  function sayCount() {
    if (sayTimer || said.dataset.count === String(model.count)) return;
    sayTimer = setTimeout(() => {
      sayTimer = 0;
      said.dataset.count = model.count;
      replace(said, t(filter ? "traffic.count.filtered" : "traffic.count", { n: count(model.count) }));
    }, SAY_MS);
  }

  // Drawn from what the table holds, every two seconds while they are open.
  async function showCharts(isOpen) {
    charts.setAttribute("aria-pressed", isOpen);
    if (chartPlace.hidden !== isOpen) return;
    chartPlace.hidden = !isOpen;
    clearInterval(chartTimer);
    if (!isOpen) return;
    const { histogram, stacked } = await import("../parts/charts.js");
    const hosts = () => ({ label: t("traffic.charts.hosts"), ...byHost(model.rows) });
    const times = () => ({ label: t("traffic.charts.latency"), buckets: byDuration(model.rows) });
    const [first, second] = [stacked(hosts()), histogram(times())];
    replace(chartPlace, first, second);
    drawCharts = () => (first.update(hosts()), second.update(times()));
    chartTimer = setInterval(drawCharts, CHARTS_MS);
  }

  function showFollow(value) {
    follow.setAttribute("aria-pressed", value);
  }

  function proxyBar() {
    const state = h("span", { class: "dot", role: "img" });
    const text = h("span", { class: "ellipsis" });
    const copy = copyButton(() => `http://${proxy?.address ?? ""}`, t("traffic.copy.address"));
    const button = h("button", { class: "btn", type: "button", on: { click: () => (proxy?.status === "running" ? halt() : start()) } });
    const record = h("button", { class: "btn ghost", type: "button", "aria-pressed": "true", on: { click: switchCapture } }, icon("eye"), t("traffic.capture.on"));
    const element = h("div", { class: "proxy" }, state, text, copy, button, record);
    function show() {
      const isRunning = proxy?.status === "running";
      const label = isRunning ? t("traffic.running", { address: proxy.address }) : t(isDown ? "traffic.down" : "traffic.stopped");
      element.dataset.state = isRunning ? "running" : isDown ? "down" : "stopped";
      state.dataset.state = isRunning ? "ok" : "off";
      state.setAttribute("aria-label", String(label));
      replace(text, label);
      replace(button, icon(isRunning ? "stop" : "play"), t(isRunning ? "traffic.stop" : "traffic.start"));
      button.classList.toggle("primary", !isRunning);
      copy.hidden = record.hidden = !isRunning;
      record.setAttribute("aria-pressed", proxy?.capture === "running");
    }
    show();
    return { element, show };
  }

  // A crabd that was killed starts with its proxy: that it runs already is what was wanted.
  async function start() {
    const isThere = (error) => error?.name === "proxy_already_running";
    await attempt(() => live.call("crab_proxy_start", {}, { signal }).catch((error) => (isThere(error) ? null : Promise.reject(error))));
  }

  async function halt() {
    const yes = await confirmDialog({ title: t("traffic.stop.confirm"), body: t("traffic.stop.body", { address: proxy.address }), action: t("traffic.stop"), danger: true });
    if (yes) await attempt(() => live.call("crab_proxy_stop", {}, { signal }));
  }

  function switchCapture() {
    return attempt(() => live.call(proxy.capture === "running" ? "crab_capture_stop" : "crab_capture_start", {}, { signal }));
  }

  async function attempt(call) {
    try {
      await call();
      proxy = (await live.call("crab_proxy_info", {}, { signal })).value;
      isDown = false;
      bar.show();
      showCount();
    } catch (error) {
      toastError(error);
    }
  }

  async function clearAll() {
    const yes = await confirmDialog({ title: t("traffic.clear.confirm"), body: t("traffic.clear.body"), action: t("traffic.clear"), danger: true });
    if (!yes) return;
    try {
      await live.call("crab_logs_clear", {}, { signal });
      marked.clear();
      showMarked();
      toast(t("traffic.cleared"), { kind: "ok" });
    } catch (error) {
      toastError(error);
    }
  }

  function open(id) {
    if (id !== undefined) go(`/traffic/${id}${location.search}`, { replace: detail.id !== null });
  }

  function close() {
    go(`/traffic${location.search}`);
    table.element.focus();
  }

  function toggle(id, event) {
    const last = [...marked].at(-1);
    if (event.shiftKey && last !== undefined && model.find(last) >= 0) {
      const [from, to] = [model.find(last), model.find(id)].sort((a, b) => a - b);
      for (let index = from; index <= to; index++) marked.add(model.rows[index][ID]);
    } else if (!marked.delete(id)) marked.add(id);
    table.list.refresh();
    showMarked();
  }

  function showMarked() {
    chosen.hidden = !marked.size;
    if (!marked.size) return;
    const [first, second] = [...marked].sort((a, b) => a - b);
    replace(chosen, t("traffic.selected", { n: marked.size }),
      marked.size === 2 ? h("a", { class: "btn", href: `/traffic/diff?a=${first}&b=${second}` }, icon("split"), t("traffic.compare")) : null,
      h("button", { class: "btn", type: "button", on: { click: copyUrls } }, icon("copy"), t("traffic.copy.urls")),
      h("button", { class: "btn ghost", type: "button", on: { click: () => (marked.clear(), table.list.refresh(), showMarked()) } }, t("traffic.unselect")));
  }

  function copyUrls() {
    const found = [...marked].map((id) => model.rows[model.find(id)]).filter(Boolean);
    return copyText(found.map((row) => (row[PATH] || row[SCHEME] !== "https" ? `${row[SCHEME]}://${row[HOST]}${row[PATH]}` : row[HOST])).join("\n"));
  }

  function update(where) {
    const wanted = where.query.get("filter") ?? "";
    box.show(wanted);
    if (wanted !== filter) {
      filter = wanted;
      subscribe();
    }
    showCharts(where.query.has("charts"));
    const id = /^\d{1,18}$/.test(where.path[0] ?? "") ? Number(where.path[0]) : null;
    split.dataset.state = id === null ? "closed" : "open";
    if (id !== detail.id) {
      table.activate(id);
      if (id !== null) table.list.follow(false);
    }
    detail.show(id, where.query.get("tab") ?? "overview");
  }

  return { update };
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
