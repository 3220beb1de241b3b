// One request beside the table: overview, request, response, messages. Secrets are hidden until a person asks for them.

import { cleanLines, cleanText, h, icon, replace } from "../lib/dom.js";
import { headerPairs, ID } from "../lib/flow-rows.js";
import { bytes, dateTime, duration } from "../lib/format.js";
import { onLanguage, t } from "../lib/i18n.js";
import { live } from "../lib/live.js";
import { setQuery } from "../lib/route.js";
import { bodyView, pairs } from "./flow-body.js";
import { toast, toastError } from "./toast.js";
import { badge, copyButton, copyText, emptyState, tabs } from "./widgets.js";

const REFRESH_MS = 1000;
const SECRET = "<redacted>";

/** flowDetail({signal, onClose, onFilter(term)}) → {element, id, show(id, tab), changed(rows)}. */
export function flowDetail({ signal, onClose, onFilter }) {
  const element = h("section", { class: "flow-detail", "aria-label": t("traffic.detail.tabs"), data: { state: "closed" } });
  let id = null;
  let tab = "overview";
  let flow = null;
  let isRevealed = false;
  let shown = new AbortController();
  let timer = 0;
  signal.addEventListener("abort", () => shown.abort());
  onLanguage(() => element.dataset.state === "ready" && draw(), signal); // its times are written in a language

  async function show(wanted, wantedTab) {
    if (wanted === id && flow && wantedTab !== tab) return showPanel((tab = wantedTab));
    tab = wantedTab;
    if (wanted === id) return;
    id = wanted;
    flow = null;
    isRevealed = false;
    shown.abort();
    clearTimeout(timer);
    timer = 0;
    element.dataset.state = id === null ? "closed" : "loading";
    replace(element);
    element.panel = null;
    if (id !== null) await read();
  }

  async function read() {
    const mine = id;
    try {
      const { value } = await live.call("crab_traffic_show", { request_id: String(id) }, { signal });
      if (mine !== id) return;
      flow = value.flow;
      draw();
    } catch (error) {
      if (mine !== id || error?.name === "AbortError") return;
      element.dataset.state = "failed";
      const isGone = error?.name === "not_found";
      replace(element, h("header", {}, h("div", { class: "row end" }, closeButton())),
        emptyState({ icon: "warn", title: isGone ? t("traffic.detail.gone") : String(error?.message ?? error), body: isGone ? t("traffic.detail.gone.body") : error?.hint }));
    }
  }

  async function reveal() {
    try {
      flow = (await live.call("dari_traffic_reveal", { request_id: String(id) }, { signal })).value.flow;
      isRevealed = true;
      draw();
      toast(t("traffic.revealed"));
    } catch (error) {
      toastError(error);
    }
  }

  function draw() {
    element.dataset.state = "ready";
    element.dataset.id = id;
    const items = ["overview", "request", "response"];
    if (flow.frames || flow.messages) items.push("messages");
    if (!items.includes(tab)) tab = "overview";
    const bar = tabs({
      label: t("traffic.detail.tabs"), current: tab, onSelect: (name) => setQuery({ tab: name === "overview" ? null : name }),
      items: items.map((name) => ({ id: name, label: t(`traffic.tab.${name}`) })),
    });
    const scrolled = element.panel?.dataset.tab === tab ? element.panel.scrollTop : 0;
    const panel = h("div", { class: "flow-panel", role: "tabpanel", tabindex: "0" });
    const path = flow.url ?? "";
    const isHiding = !isRevealed && JSON.stringify(flow).includes(SECRET);
    replace(element,
      h("header", {},
        h("div", { class: "row wrap" },
          h("h2", { class: "row grow" }, badge(cleanText(flow.method, 20)), statusBadge(flow), h("span", { class: "muted" }, t("traffic.detail", { id }))),
          isHiding ? h("button", { class: "btn", type: "button", title: t("traffic.reveal.title"), on: { click: reveal } }, icon("eye"), t("traffic.reveal")) : null,
          closeButton()),
        h("div", { class: "url" }, h("bdi", {}, cleanText(path, 2000)), copyButton(path, t("traffic.copy.url"))),
        h("div", { class: "row wrap flow-actions" },
          h("button", { class: "btn", type: "button", on: { click: () => copySnippet("curl", id) } }, icon("copy"), t("traffic.copy.curl")),
          h("button", { class: "btn", type: "button", on: { click: () => copySnippet("python", id) } }, icon("copy"), t("traffic.copy.python")),
          h("a", { class: "btn", href: `/traffic/compose?flow=${id}` }, icon("refresh"), t("traffic.replay")),
          h("a", { class: "btn", href: `/traffic/rules?flow=${id}` }, icon("plus"), t("traffic.rule.new")),
          h("button", { class: "btn ghost", type: "button", on: { click: () => onFilter(`host:${quoted(flow.host ?? "")}`) } }, icon("filter"), t("traffic.only.host"))),
        bar),
      panel);
    element.bar = bar;
    element.panel = panel;
    showPanel(tab);
    panel.scrollTop = scrolled;
  }

  function showPanel(name) {
    if (!flow || !element.panel) return;
    shown.abort();
    shown = new AbortController();
    element.bar.select(name);
    element.panel.dataset.tab = name;
    element.panel.setAttribute("aria-label", String(t(`traffic.tab.${name}`)));
    replace(element.panel, (PANELS[name] ?? PANELS.overview)(flow, id, shown.signal));
  }

  function closeButton() {
    return h("button", { class: "btn ghost icon", type: "button", "aria-label": t("traffic.detail.close"), title: t("traffic.detail.close"), on: { click: onClose } }, icon("close"));
  }

  return {
    element,
    show,
    get id() {
      return id;
    },
    /** Rows that changed: a request that still runs is read again, once a second at most. */
    changed(rows) {
      if (id === null || isRevealed || timer || flow?.state === "done" || !rows.some((row) => row[ID] === id)) return;
      timer = setTimeout(() => ((timer = 0), read()), REFRESH_MS);
    },
  };
}

/** Copy a request as a command or a program; secrets are left out by the server. */
export async function copySnippet(language, id) {
  if (id === null || id === undefined) return;
  try {
    const { value } = await live.call(language === "curl" ? "crab_traffic_as_curl" : "crab_traffic_as_python", { request_id: String(id) });
    await copyText(value.code);
  } catch (error) {
    toastError(error);
  }
}

const PANELS = {
  overview(flow) {
    const rules = (flow.rule_ids ?? []).map((rule) => h("a", { class: "badge info", href: `/traffic/rules?rule=${encodeURIComponent(rule)}`, data: { rule } }, cleanText(rule)));
    return [
      facts("traffic.summary", [
        ["traffic.f.time", dateTime(flow.ts_unix_ms / 1000)],
        ["traffic.f.state", t(`traffic.state.${flow.state}`)],
        ["traffic.f.status", flow.status ? String(flow.status) : null],
        ["traffic.f.upstream", flow.upstream_status && flow.upstream_status !== flow.status ? String(flow.upstream_status) : null],
        ["traffic.f.error", flow.error ? h("span", { class: "error" }, cleanText(flow.error, 1000)) : null],
        ["traffic.f.event", cleanText(flow.event)],
        ["traffic.f.remote", flow.map_remote_to ? cleanText(flow.map_remote_to) : null],
        ["traffic.f.rules", rules.length ? h("span", { class: "row wrap" }, rules) : null],
        ["traffic.f.sizes", `${bytes(flow.request_bytes ?? 0)}, ${bytes(flow.response_bytes ?? 0)}`],
        ["traffic.f.replay", flow.replay_of ? h("a", { href: `/traffic/${flow.replay_of}` }, String(flow.replay_of)) : null],
      ]),
      timing(flow),
      facts("traffic.connection", [
        ["traffic.f.program", flow.process ? `${cleanText(flow.process)}${flow.pid ? ` (${flow.pid})` : ""}` : null],
        ["traffic.f.peer", cleanText(flow.peer)],
        ["traffic.f.version", cleanText(flow.http_version)],
      ]),
      flow.tls ? facts("traffic.tls", Object.entries(flow.tls).map(([name, value]) => [`traffic.tls.${name}`, cleanText(value)])) : null,
    ];
  },
  request: (flow, id, signal) => [headers(flow.request_headers), bodyView(id, "request", flow.request_body, signal)],
  response: (flow, id, signal) => [headers(flow.response_headers), bodyView(id, "response", flow.response_body, signal)],
  messages(flow) {
    const frames = flow.frames ?? [];
    if (!frames.length) return h("p", { class: "muted" }, t("traffic.messages.none"));
    return [
      (flow.messages ?? 0) > frames.length ? h("p", { class: "muted small" }, t("traffic.messages.last", { n: frames.length })) : null,
      h("ol", { class: "messages" }, frames.map((frame) => {
        const direction = frame.from_client ? "sent" : "received";
        return h("li", { data: { direction } },
          h("span", { class: "muted small" }, t(`traffic.messages.${direction}`), ` · ${dateTime(frame.ts_unix_ms / 1000)} · ${bytes(frame.bytes)}`),
          h("pre", {}, cleanLines(frame.text)));
      })),
    ];
  },
};

function headers(lines) {
  const found = headerPairs(lines);
  return h("section", {}, h("h3", { class: "row" }, h("span", { class: "grow" }, t("traffic.headers")), found.length ? copyButton(lines) : null),
    found.length ? pairs(found) : h("p", { class: "muted" }, t("traffic.headers.none")));
}

function facts(title, rows) {
  const shown = rows.filter(([, value]) => value !== null && value !== undefined && value !== "");
  if (!shown.length) return null;
  return h("section", {}, h("h3", {}, t(title)), h("dl", { class: "facts" }, shown.map(([label, value]) => [h("dt", {}, t(label)), h("dd", {}, value)])));
}

function timing(flow) {
  const { head_ms: wait, duration_ms: total } = flow;
  if (wait === undefined && total === undefined) return null;
  const whole = Math.max(total ?? wait ?? 0, 0.1);
  const head = Math.min(wait ?? whole, whole);
  const part = (name, ms) => h("span", { class: name, style: { width: `${(100 * ms) / whole}%` } });
  const legend = (name, ms) => h("span", { class: "row" }, h("span", { class: ["swatch", name] }), t(`traffic.timing.${name}`), " ", duration(ms));
  return h("section", {}, h("h3", {}, t("traffic.timing")),
    h("div", { class: "timing", "aria-hidden": "true" }, part("wait", head), part("receive", whole - head)),
    h("div", { class: "row wrap muted" }, legend("wait", head), total === undefined ? null : legend("receive", whole - head), total === undefined ? null : h("span", {}, t("traffic.timing.total"), " ", duration(total))));
}

function statusBadge(flow) {
  if (!flow.status) return flow.state === "done" ? badge(flow.event === "tunnel" ? "tunnel" : "×", flow.error ? "bad" : "") : badge("…");
  const kind = flow.status >= 500 ? "bad" : flow.status >= 400 ? "warn" : flow.status >= 300 ? "info" : "ok";
  return badge(String(flow.status), kind);
}

/** A value for the filter language: in quotes where it would be read otherwise. */
function quoted(text) {
  return /^[\w.:*-]+$/.test(text) ? text : `"${text.replaceAll(/["\\]/g, "\\$&")}"`;
}
