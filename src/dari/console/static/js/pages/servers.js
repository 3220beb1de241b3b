// Servers: cards of all of them, kept fresh by the topic `servers`; one of them with its tabs; the ways to add one.

import { cleanText, clear, h, icon, keyed, replace, setProps, svg } from "../lib/dom.js";
import { bytes, count } from "../lib/format.js";
import { addTexts, t } from "../lib/i18n.js";
import { keys, palette } from "../lib/keys.js";
import { live } from "../lib/live.js";
import { go, setQuery } from "../lib/route.js";
import { dialog } from "../parts/dialog.js";
import { toast, toastError } from "../parts/toast.js";
import { copyButton, emptyState, tabs, toggle } from "../parts/widgets.js";
import texts from "../texts/servers.js";
import { changesTab, logTab, testTab, tn, toolsTab } from "./servers-detail.js";
import { serverForm } from "./servers-form.js";
import { reviewView } from "./servers-import.js";

addTexts(texts);
export const css = ["servers.css"];

const CHUNK = 120;
const DOTS = { ready: "ok", starting: "busy", queued: "busy", backoff: "warn", untrusted: "warn", "crash-loop": "bad", failed: "bad", broken: "bad" };
const FILTERS = ["all", "running", "failing", "off"];
const TABS = ["edit", "test", "tools", "changes", "log"];

export const serverPath = (name, tab) => `/servers/${encodeURIComponent(name)}${tab ? `?tab=${tab}` : ""}`;

export function mount(root, { route, signal }) {
  const cards = new Map(); // name → card, in the order of the files
  const usage = new Map(); // name → samples
  let problems = [];
  let isLoaded = false;
  let view = null; // what is shown: {key, refresh(names), update(route)}

  live.follow("servers", take, { signal, onError: toastError });

  function take(event) {
    const names = new Set(event.removed || []);
    if (event.kind === "snapshot") {
      cards.clear();
      usage.clear();
      for (const [name, samples] of Object.entries(event.history || {})) usage.set(name, samples);
    }
    for (const card of event.servers || []) {
      cards.set(card.name, card);
      names.add(card.name);
    }
    for (const name of event.removed || []) cards.delete(name);
    for (const [name, sample] of Object.entries(event.usage || {})) {
      const samples = usage.get(name) || [];
      if (samples.at(-1)?.at !== sample.at) usage.set(name, [...samples.slice(-59), sample]);
      names.add(name);
    }
    if (event.kind === "usage") for (const name of [...usage.keys()]) if (!event.usage || !(name in event.usage)) usage.delete(name), names.add(name);
    if (event.problems) problems = event.problems;
    const first = !isLoaded;
    isLoaded = true;
    if (first || event.kind === "snapshot") show(route);
    view?.refresh?.(names);
  }

  function show(now) {
    const name = now.path[0];
    const add = now.query.get("add");
    const key = name ? `server ${name}` : add ? `add ${add}` : "list";
    if (view?.key !== key) {
      view?.abort?.abort();
      clear(root);
      const abort = new AbortController();
      signal.addEventListener("abort", () => abort.abort(), { signal: abort.signal });
      view = name ? showServer(name, now, abort) : add ? showAdd(add, abort) : showList(now, abort);
      Object.assign(view, { key, abort });
    }
    view.update?.(now);
  }

  // ---- the list

  function showList(now, abort) {
    let shown = CHUNK;
    let query = now.query.get("q") || "";
    let state = now.query.get("state") || "all";
    const search = h("input", { class: "input servers-search", type: "search", value: query, placeholder: t("servers.filter"), "aria-label": t("servers.filter") });
    const choice = h("select", { class: "select", "aria-label": t("servers.state") }, FILTERS.map((one) => h("option", { value: one }, t(`servers.show.${one}`))));
    const total = h("span", { class: "muted small", role: "status", data: { state: "count" } });
    const bar = h("div", { class: "toolbar" }, search, choice, total);
    const trouble = h("ul", { class: "stack tight small error", "aria-label": t("servers.problems") });
    const grid = h("ul", { class: "grid servers-grid", "aria-label": t("servers.title") });
    const empty = h("div");
    const more = h("div", { class: "servers-more" });
    const near = new IntersectionObserver((entries) => entries.some((one) => one.isIntersecting) && shown < matching().length && ((shown += CHUNK), draw()), { rootMargin: "600px" });
    near.observe(more);
    abort.signal.addEventListener("abort", () => near.disconnect());
    root.append(
      h("header", { class: "page-head" }, h("h1", {}, t("servers.title")), addButtons()),
      bar, trouble, empty, grid, more,
    );
    search.addEventListener("input", () => ((shown = CHUNK), setQuery({ q: search.value })));
    search.addEventListener("keydown", (event) => {
      const [first] = event.key === "Enter" && !event.isComposing ? matching() : [];
      if (first) go(serverPath(first.name));
    });
    choice.addEventListener("change", () => ((shown = CHUNK), setQuery({ state: choice.value === "all" ? null : choice.value })));
    keys.add({ key: "/", label: t("servers.key.filter"), run: () => search.focus() }, abort.signal);
    keys.add({ key: "n", label: t("servers.add"), run: () => go("/servers?add=form") }, abort.signal);
    for (const [add, title] of [["form", "servers.add"], ["json", "servers.paste"], ["import", "servers.import"]]) {
      palette.add({ title: t(title), group: t("servers.title"), run: () => go(`/servers?add=${add}`) }, abort.signal);
    }

    function matching() {
      const words = query.toLowerCase().split(/\s+/).filter(Boolean);
      return [...cards.values()].filter((card) => {
        if (state === "running" && !card.pid && card.state !== "ready") return false;
        if (state === "failing" && !["failed", "backoff", "crash-loop", "broken", "untrusted"].includes(card.state) && !card.held) return false;
        if (state === "off" && card.state !== "disabled") return false;
        const text = `${card.name} ${card.address || ""} ${card.description || ""} ${card.transport || ""}`.toLowerCase();
        return words.every((word) => text.includes(word));
      });
    }

    function draw() {
      const found = matching();
      replace(total, isLoaded && t("servers.count", { n: count(found.length), all: count(cards.size) }));
      replace(trouble, problems.map((one) => h("li", {}, cleanText(one, 500))));
      trouble.hidden = !problems.length;
      bar.hidden = isLoaded && !cards.size;
      keyed(grid, found.slice(0, shown), (card) => card.name, makeCard, updateCard);
      const isEmpty = isLoaded && !found.length;
      empty.hidden = !isEmpty;
      replace(empty, isEmpty ? (cards.size ? emptyState({ icon: "search", title: t("servers.none.found"), body: t("servers.none.found.body") })
        : emptyState({ icon: "servers", title: t("servers.none"), body: t("servers.none.body"), action: addButtons() })) : null);
    }

    return {
      refresh: draw,
      update(next) {
        query = next.query.get("q") || "";
        state = next.query.get("state") || "all";
        if (search.value !== query) search.value = query;
        choice.value = state;
        draw();
      },
    };
  }

  function addButtons() {
    return h("div", { class: "row wrap" },
      h("a", { class: "btn primary", href: "/servers?add=form" }, icon("plus"), t("servers.add")),
      h("a", { class: "btn", href: "/servers?add=json" }, t("servers.paste")),
      h("a", { class: "btn", href: "/servers?add=import" }, icon("download"), t("servers.import")));
  }

  function makeCard(card) {
    const name = cleanText(card.name);
    const parts = {
      dot: h("span", { class: "dot", role: "img" }), badge: h("span", { class: "badge" }), address: h("p", { class: "mono muted small ellipsis" }),
      facts: h("p", { class: "row wrap small muted" }), error: h("p", { class: "small error clamp" }),
    };
    parts.toggle = toggle({ label: t("servers.enable", { name }), checked: card.enabled !== false, onChange: (on) => switchServer(card.name, on) });
    const el = h("li", { class: "card server-card", data: { name } },
      h("div", { class: "row" }, parts.dot, h("h2", { class: "grow ellipsis" }, h("a", { href: serverPath(card.name) }, h("bdi", {}, name))), parts.badge, parts.toggle),
      parts.address, parts.facts, parts.error);
    el.parts = parts;
    return el;
  }

  function updateCard(el, card) {
    const sample = usage.get(card.name)?.at(-1);
    if (el.card === card && el.sample === sample) return;
    Object.assign(el, { card, sample });
    const { dot, badge, address, facts, error, toggle: box } = el.parts;
    el.dataset.state = card.state;
    drawDot(dot, card);
    badge.textContent = card.transport || "?";
    address.textContent = cleanText(card.address);
    address.title = cleanText(card.address);
    if (!box.disabled) box.checked = card.enabled !== false;
    box.hidden = card.is_writable === false;
    replace(facts, factsOf(card, sample));
    error.textContent = cleanText(card.doing || card.last_error, 400);
    error.classList.toggle("error", !card.doing);
    error.hidden = !(card.doing || card.last_error);
  }

  function factsOf(card, sample) {
    return [
      h("span", {}, t(`servers.state.${card.state}`)),
      h("span", {}, card.tools === undefined || card.tools === null ? t("servers.tools.unknown") : tn("servers.tools", card.tools)),
      card.held ? h("a", { class: "badge warn", href: serverPath(card.name, "changes") }, tn("servers.held", card.held)) : null,
      card.restarts && card.transport === "stdio" ? h("span", {}, tn("servers.restarts", card.restarts)) : null,
      card.calls ? h("span", {}, tn("servers.calls", card.calls)) : null,
      sample ? h("span", { class: "nowrap" }, `${bytes(sample.memory_bytes)} · ${sample.cpu_percent.toFixed(0)} %`) : null,
    ];
  }

  // ---- one server

  function showServer(name, now, abort) {
    const shownName = cleanText(name);
    const dot = h("span", { class: "dot", role: "img" });
    const badges = h("span", { class: "row" });
    const facts = h("div", { class: "row wrap small muted server-facts" });
    const file = h("div", { class: "row small muted" });
    const error = h("p", { class: "error small" });
    const box = toggle({ label: t("servers.enable", { name: shownName }), onChange: (on) => switchServer(name, on) });
    const power = h("button", { class: "btn", type: "button" });
    power.addEventListener("click", () => run(power, power.dataset.state === "running" ? "dari_servers_stop" : "dari_servers_start", name));
    const remove = h("button", { class: "btn danger", type: "button", on: { click: () => removeServer(name) } }, icon("trash"), t("servers.remove"));
    const bar = tabs({ label: shownName, items: TABS.map((id) => ({ id, label: t(`servers.tab.${id}`) })), onSelect: (id) => setQuery({ tab: id === "edit" ? null : id }, { replace: false }) });
    const panel = h("section", { class: "server-panel", role: "tabpanel", "aria-label": shownName, tabindex: "-1" });
    const missing = h("div");
    const body = h("div", { class: "stack" }, h("div", { class: "row wrap" }, dot, badges, facts), file, error, bar, panel);
    root.append(
      h("header", { class: "page-head" }, h("h1", { class: "ellipsis" }, h("a", { href: "/servers" }, t("servers.title")), " / ", h("bdi", {}, shownName)), h("div", { class: "row wrap" }, box, power, remove)),
      missing, body);
    let tab = "";
    let panelAbort = null;
    abort.signal.addEventListener("abort", () => panelAbort?.abort());

    function refresh() {
      const card = cards.get(name);
      body.hidden = !card;
      missing.hidden = Boolean(card);
      for (const el of [box, power, remove]) el.hidden = !card;
      replace(missing, card || !isLoaded ? null : emptyState({ icon: "servers", title: t("servers.missing", { name: shownName }), action: h("a", { class: "btn", href: "/servers" }, t("servers.all")) }));
      if (!card) return;
      body.dataset.state = card.state;
      drawDot(dot, card);
      const isRunning = card.state === "ready" || card.state === "starting" || Boolean(card.pid);
      power.dataset.state = isRunning ? "running" : "stopped";
      replace(power, icon(isRunning ? "stop" : "play"), t(isRunning ? "servers.stop" : "servers.start"));
      power.disabled = Boolean(power.dataset.busy) || card.enabled === false || card.state === "broken" || card.state === "untrusted";
      box.checked = card.enabled !== false;
      box.hidden = remove.hidden = card.is_writable === false;
      replace(badges, h("span", { class: "badge" }, card.transport || "?"), card.is_default ? h("span", { class: "badge info" }, t("servers.default")) : null);
      const samples = usage.get(name) || [];
      replace(facts, factsOf(card, null),
        card.server_name ? h("span", {}, cleanText(`${card.server_name} ${card.server_version || ""}`, 80)) : null,
        card.protocol ? h("span", {}, cleanText(card.protocol, 40)) : null, card.pid ? h("span", {}, t("servers.pid", { n: card.pid })) : null,
        samples.length ? h("span", { class: "row" }, chart(samples, "memory_bytes", t("servers.memory")), h("span", {}, bytes(samples.at(-1).memory_bytes)), chart(samples, "cpu_percent", t("servers.cpu")), h("span", {}, `${samples.at(-1).cpu_percent.toFixed(0)} %`)) : null);
      const place = `${card.file}${card.line ? `:${card.line}` : ""}`;
      if (file.textContent !== cleanText(place)) replace(file, h("span", { class: "mono ellipsis" }, cleanText(place)), copyButton(card.file, t("servers.copy.file")));
      error.textContent = cleanText(card.doing || [card.last_error, card.hint].filter(Boolean).join(" – "), 800);
      if (card.state === "untrusted") error.append(" ", h("a", { href: "/approvals" }, t("servers.trust")));
      error.hidden = !error.textContent;
      panel.refresh?.(card);
    }

    function open(next) {
      tab = next;
      panelAbort?.abort();
      panelAbort = new AbortController();
      panel.refresh = null;
      clear(panel);
      const given = { name, panel, signal: panelAbort.signal, card: () => cards.get(name) };
      if (tab === "edit") {
        const form = panelAbort.signal;
        serverForm(panel, { name, signal: form, onSaved: (saved) => onSaved(saved, form) });
      } else ({ test: testTab, tools: toolsTab, changes: changesTab, log: logTab })[tab](given);
      bar.select(tab);
    }

    return {
      refresh,
      update(next) {
        const wanted = TABS.includes(next.query.get("tab")) ? next.query.get("tab") : "edit";
        refresh();
        if (isLoaded && cards.has(name) && wanted !== tab) open(wanted);
      },
    };
  }

  /** `form` is the signal of the form that was saved: who has left it meanwhile stays where they went. */
  function onSaved(saved, form) {
    toast(t("servers.saved", { name: cleanText(saved.server.name), file: cleanText(saved.file) }), { kind: "ok" });
    for (const note of saved.notes) toast(cleanText(note, 500), { kind: "warn" });
    cards.set(saved.server.name, saved.server);
    if (!form.aborted) go(serverPath(saved.server.name), { replace: true });
  }

  async function run(button, tool, name) {
    button.disabled = true;
    button.dataset.busy = "1";
    try {
      const { value } = await live.call(tool, { name }, { signal });
      take({ kind: "change", servers: [value.server] });
    } catch (error) {
      toastError(error);
    } finally {
      button.disabled = false;
      delete button.dataset.busy;
    }
  }

  async function switchServer(name, enabled) {
    try {
      const { value } = await live.call("dari_servers_switch", { name, enabled });
      toast(t(enabled ? "servers.enabled" : "servers.disabled", { name: cleanText(name) }), enabled ? {} : { undo: () => switchServer(name, true) });
      take({ kind: "change", servers: [value.server] });
    } catch (error) {
      toastError(error);
      throw error;
    }
  }

  async function removeServer(name) {
    const shownName = cleanText(name);
    try {
      const { value } = await live.call("dari_servers_removal", { name });
      const effects = [
        value.tools ? t("servers.removal.tools", { n: value.tools }) : null,
        value.calls ? t("servers.removal.calls", { n: value.calls }) : null,
        value.sets.length ? t("servers.removal.sets", { names: cleanText(value.sets.join(", ")) }) : null,
        value.is_default ? t("servers.removal.default") : null,
        value.next_source ? t("servers.removal.next", { file: cleanText(value.next_source) }) : null,
        value.pins ? t("servers.removal.pins", { n: value.pins }) : null,
      ].filter(Boolean);
      const yes = await dialog({
        title: t("servers.removal.title", { name: shownName }),
        body: h("div", { class: "stack" }, h("p", {}, t("servers.removal.file", { file: cleanText(value.file) })), effects.length ? h("ul", { class: "bullets" }, effects.map((one) => h("li", {}, one))) : null),
        actions: [{ label: t("cancel"), kind: "ghost" }, { label: t("servers.remove"), kind: "danger", run: () => true }],
      });
      if (yes !== true) return;
      await live.call("dari_servers_remove", { name });
      cards.delete(name);
      go("/servers");
      toast(t("servers.removed", { name: shownName }), { undo: () => live.call("dari_servers_restore", { name }).then(({ value: back }) => take({ kind: "change", servers: [back.server] }), toastError) });
    } catch (error) {
      toastError(error);
    }
  }

  // ---- adding

  function showAdd(add, abort) {
    const kind = { json: "servers.paste", import: "servers.import" }[add] || "servers.add";
    const panel = h("section", { class: "server-panel" });
    root.append(h("header", { class: "page-head" }, h("h1", {}, h("a", { href: "/servers" }, t("servers.title")), " / ", t(kind))), panel);
    const onAdded = (names) => {
      toast(t("servers.added", { names: cleanText(names.join(", ")) }), { kind: "ok" });
      if (!abort.signal.aborted) go(names.length === 1 ? serverPath(names[0], "test") : "/servers");
    };
    if (add === "json" || add === "import") reviewView(panel, { kind: add, signal: abort.signal, onAdded });
    else serverForm(panel, { name: "", signal: abort.signal, onSaved: (saved) => onSaved(saved, abort.signal) });
    return {};
  }

  show(route);
  return { update: show };
}

function drawDot(dot, card) {
  dot.dataset.state = card.held && card.state === "ready" ? "warn" : DOTS[card.state] || "off";
  setProps(dot, { "aria-label": t(`servers.state.${card.state}`), title: t(`servers.state.${card.state}`) });
}

/** A line of samples, oldest left; 0 is the bottom. */
function chart(samples, field, label) {
  const values = samples.map((one) => one[field]);
  const top = Math.max(...values, field === "cpu_percent" ? 10 : 1);
  const points = values.map((value, at) => `${((at / Math.max(1, values.length - 1)) * 60).toFixed(1)},${(17 - (value / top) * 15).toFixed(1)}`).join(" ");
  return h("span", { class: "server-chart", role: "img", "aria-label": label, title: label }, svg("svg", { viewBox: "0 0 60 18", width: "60", height: "18", "aria-hidden": "true" }, svg("polyline", { points })));
}
