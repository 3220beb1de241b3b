// The tabs of one server: Test Connection step by step, its tools, its changes to approve, its log.

import { append, cleanText, clear, h, icon, keyed, replace } from "../lib/dom.js";
import { clock, count, duration, when } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { live } from "../lib/live.js";
import { toast, toastError } from "../parts/toast.js";
import { copyButton, emptyState, toggle } from "../parts/widgets.js";

/** A count with its noun: "1 tool", "2 tools". */
export const tn = (key, n) => t(`${key}.${n === 1 ? "1" : "n"}`, { n: count(n) });

/** What has just been drawn takes no answer: the last click may have been meant for what stood there before. */
const CALM_MS = 400;
const STEP = /^(\S+) (ok|warning|failed) ([\d.]+) ms: ([^]*)$/;
const MARKS = { ok: "check", warning: "warn", failed: "close", running: "clock" };

/** Test Connection: run(args) shows each step when it is over, then the whole report. */
export function testView() {
  const steps = h("ol", { class: "steps", "aria-label": t("servers.steps") });
  const note = h("p", { class: "muted small", role: "status" });
  const more = h("div", { class: "stack" });
  const cancel = h("button", { class: "btn ghost", type: "button" }, t("cancel"));
  const el = h("div", { class: "stack server-test", hidden: true, data: { state: "idle" } }, steps, h("div", { class: "row" }, note, cancel), more);

  function row({ name, status, ms, found, hint }) {
    return h("li", { data: { state: status, step: name } }, icon(MARKS[status]), h("span", { class: "step-name" }, t(`servers.step.${name}`)), h("span", { class: "num muted" }, duration(ms)),
      h("span", { class: "grow" }, h("bdi", {}, cleanText(found, 800)), hint ? h("pre", { class: "small muted" }, h("bdi", {}, cleanLines(hint))) : null));
  }

  async function run(args, signal) {
    const stop = new AbortController();
    signal?.addEventListener("abort", () => stop.abort(), { signal: stop.signal });
    cancel.onclick = () => stop.abort();
    clear(steps);
    clear(more);
    Object.assign(el, { hidden: false });
    el.dataset.state = "running";
    cancel.hidden = false;
    replace(note, t("servers.testing"));
    try {
      const onProgress = ({ message = "" }) => {
        const told = STEP.exec(message);
        if (told) steps.append(row({ name: told[1], status: told[2], ms: Number(told[3]), found: told[4] }));
        else replace(note, cleanText(message));
      };
      const { value } = await live.call("dari_servers_test", args, { signal: stop.signal, onProgress });
      // What it wrote on stderr has a place of its own below.
      replace(steps, value.steps.map((one) => row(value.stderr.length ? { ...one, hint: one.hint.split("it wrote on stderr:")[0].trim() } : one)));
      el.dataset.state = value.ok ? "ok" : "failed";
      replace(note, t(value.ok ? "servers.test.ok" : "servers.test.failed", { time: duration(value.ms), n: count(value.tools.length) }));
      if (value.tools.length) more.append(h("details", {}, h("summary", {}, tn("servers.tools", value.tools.length)), h("p", { class: "row wrap" }, value.tools.slice(0, 500).map((one) => h("bdi", { class: "badge mono" }, cleanText(one, 100))))));
      if (value.stderr.length) append(more, [h("h2", {}, t("servers.stderr")), stderrBox(value.stderr.join("\n"))]);
    } catch (error) {
      el.dataset.state = stop.signal.aborted ? "cancelled" : "failed";
      replace(note, stop.signal.aborted ? t("servers.test.cancelled") : h("span", { class: "error" }, cleanText(error.hint ? `${error.message} – ${error.hint}` : error.message, 800)));
    } finally {
      cancel.hidden = true;
    }
  }

  return { el, run };
}

function stderrBox(text) {
  return h("pre", { class: "code server-stderr", tabindex: "0", role: "group", "aria-label": t("servers.stderr") }, h("bdi", {}, cleanLines(text)));
}

/** Several lines, each as harmless as a name. */
function cleanLines(text) {
  return String(text).split("\n").map((line) => cleanText(line, 2000)).join("\n");
}

export function testTab({ panel, name, signal }) {
  const view = testView();
  const button = h("button", { class: "btn primary", type: "button", on: { click: () => view.run({ name }, signal) } }, icon("bolt"), t("servers.test"));
  panel.append(h("div", { class: "card" }, h("p", { class: "muted" }, t("servers.test.help")), h("div", { class: "row" }, button), view.el));
}

export function toolsTab({ panel, name, signal, card }) {
  const search = h("input", { class: "input servers-search", type: "search", placeholder: t("servers.tools.filter"), "aria-label": t("servers.tools.filter") });
  const list = h("ul", { class: "server-tools" });
  const head = h("div", { class: "toolbar" });
  const place = h("div", { class: "card" }, head, list);
  let tools = [];
  panel.append(place);
  search.addEventListener("input", draw);

  async function load(args) {
    try {
      show((await live.call("dari_servers_tools", { name, ...args }, { signal })).value);
    } catch (error) {
      if (!signal.aborted) toastError(error);
    }
  }

  function show(value) {
    tools = value.tools;
    place.dataset.state = value.is_known ? "known" : "unknown";
    if (!value.is_known) {
      const ask = h("button", { class: "btn primary", type: "button", on: { click: () => ((ask.disabled = true), load({ start: true }).finally(() => (ask.disabled = false))) } }, icon("play"), t("servers.tools.ask"));
      replace(head, emptyState({ icon: "tools", title: t("servers.tools.unknown"), body: t("servers.tools.unknown.body"), action: ask }));
    } else if (!head.contains(search)) {
      replace(head, search, h("button", { class: "btn", type: "button", on: { click: () => turn(shown(), true) } }, t("servers.tools.on")), h("button", { class: "btn", type: "button", on: { click: () => turn(shown(), false) } }, t("servers.tools.off")), h("span", { class: "muted small", role: "status" }));
    }
    draw();
  }

  const shown = () => tools.filter((one) => `${one.name} ${one.description}`.toLowerCase().includes(search.value.toLowerCase()));

  function draw() {
    const found = shown();
    if (head.contains(search)) replace(head.lastChild, t("servers.tools.count", { on: count(tools.filter((one) => one.state === "on").length), all: count(tools.length) }));
    keyed(list, found, (one) => one.name, (one) => {
      const label = cleanText(one.name, 200);
      const box = toggle({ label, checked: one.state !== "off", onChange: (on) => turn(tools.filter((now) => now.name === one.name), on) });
      box.disabled = card()?.is_writable === false;
      const el = h("li", { class: "row top server-tool" }, box, h("div", { class: "grow" },
        h("div", { class: "row wrap" }, h("bdi", { class: "mono" }, label), one.shown_as !== one.name ? h("span", { class: "muted small" }, `→ ${cleanText(one.shown_as, 100)}`) : null,
          one.is_read_only ? h("span", { class: "badge ok" }, t("servers.tool.reads")) : null, one.is_destructive ? h("span", { class: "badge bad" }, t("servers.tool.destroys")) : null,
          one.needs_confirmation ? h("span", { class: "badge info" }, t("servers.tool.asks")) : null, one.state === "held" ? h("span", { class: "badge warn" }, t("servers.tool.held")) : null),
        h("p", { class: "small muted clamp" }, h("bdi", {}, cleanText(one.description, 500)))));
      el.box = box;
      return el;
    }, (el, one) => {
      el.dataset.state = one.state;
      if (!el.box.disabled) el.box.checked = one.state !== "off";
    });
  }

  async function turn(which, on) {
    const names = which.filter((one) => (one.state !== "off") !== on).map((one) => one.name);
    if (!names.length) return;
    try {
      show((await live.call("dari_servers_switch_tools", { name, tools: names, on })).value);
    } catch (error) {
      toastError(error);
      throw error;
    }
  }

  load({});
}

export function changesTab({ panel, name, signal }) {
  const place = h("div", { class: "stack" });
  const more = h("p", { class: "server-more", role: "status" });
  let held = -1;
  let isDeciding = false;
  panel.append(place, more);
  panel.refresh = (card) => {
    if (isDeciding || (card.held || 0) === held) return;
    held = card.held || 0;
    // A server changes when it likes, also while a person reads: nothing moves under their hand.
    if (!place.querySelector("[data-state=held]")) load();
    else if (!more.childElementCount) replace(more, h("button", { class: "btn", type: "button", on: { click: load } }, icon("refresh"), t("servers.changes.more")));
  };

  async function load() {
    try {
      const { value } = await live.call("dari_servers_held", { name }, { signal });
      held = value.items.filter((one) => !one.rejected_by).length;
      draw(value);
    } catch (error) {
      if (!signal.aborted) toastError(error);
    }
  }

  async function decide(items, approve) {
    isDeciding = true;
    try {
      await live.call("dari_servers_decide", { name, approve, items: items.map(({ kind, name: of, digest }) => ({ kind, name: of, digest })) });
      toast(t(approve ? "servers.approved" : "servers.rejected", { n: items.length }), { kind: "ok" });
    } catch (error) {
      toastError(error);
    }
    await load();
    isDeciding = false;
  }

  function buttons(items, all) {
    return h("div", { class: "row" },
      h("button", { class: "btn primary", type: "button", on: { click: () => decide(items, true) } }, icon("check"), t(all ? "servers.approve.all" : "servers.approve")),
      h("button", { class: "btn danger", type: "button", on: { click: () => decide(items, false) } }, t(all ? "servers.reject.all" : "servers.reject")));
  }

  function draw({ items, history }) {
    const open = items.filter((one) => !one.rejected_by);
    replace(more);
    replace(place,
      items.length ? h("p", { class: "muted" }, t("servers.changes.help")) : emptyState({ icon: "approvals", title: t("servers.changes.none"), body: t("servers.changes.none.body") }),
      open.length > 1 ? buttons(open, true) : null,
      items.map((one) => h("article", { class: "card", data: { state: one.rejected_by ? "rejected" : "held", item: cleanText(one.name) } },
        h("div", { class: "row wrap" }, h("h2", { class: "grow" }, h("span", { class: "muted" }, one.kind), " ", h("bdi", { class: "mono" }, cleanText(one.name, 200))),
          h("span", { class: "badge warn" }, t(`servers.reason.${one.reason}`)), one.rejected_by ? h("span", { class: "badge bad" }, t("servers.rejected.by", { who: cleanText(one.rejected_by) })) : null, when(one.since)),
        one.was ? h("p", { class: "small" }, t("servers.was", { name: cleanText(one.was) })) : null,
        h("pre", { class: "code diff", tabindex: "0", role: "group", "aria-label": t("servers.diff", { name: cleanText(one.name) }) }, one.diff.map((line) => h("div", { class: /^(---|\+\+\+) /.test(line) ? "muted" : { "+": "add", "-": "del", "@": "at", "!": "bang" }[line[0]] || "" }, h("bdi", {}, cleanText(line, 2000) || " ")))),
        buttons([one], false))),
      history.length ? h("details", {}, h("summary", {}, t("servers.history", { n: history.length })), h("table", { class: "table", "aria-label": t("servers.history", { n: history.length }) }, h("tbody", {}, history.map((one) =>
        h("tr", {}, h("td", {}, when(one.at)), h("td", {}, one.event), h("td", {}, one.kind), h("td", { class: "mono" }, h("bdi", {}, cleanText(one.name, 100))), h("td", {}, cleanText(one.by, 60))))))) : null);
    const answers = [...place.querySelectorAll("button")];
    for (const one of answers) one.disabled = true;
    setTimeout(() => answers.forEach((one) => (one.disabled = false)), CALM_MS);
  }

  load();
}

export function logTab({ panel, name, signal }) {
  const lines = h("div", { class: "code server-log", role: "log", tabindex: "0", "aria-label": t("servers.tab.log") });
  const empty = h("p", { class: "muted" }, t("servers.log.none"));
  let all = [];
  panel.append(h("div", { class: "card" }, h("div", { class: "row" }, h("p", { class: "muted grow" }, t("servers.log.help")), copyButton(() => all.map((one) => `${new Date(one.at * 1000).toISOString()} ${one.source} ${one.level || ""} ${one.text}`).join("\n"))), empty, lines));
  live.follow(`server-log:${name}`, (event) => {
    const atEnd = lines.scrollTop + lines.clientHeight > lines.scrollHeight - 30;
    all = event.lines;
    empty.hidden = all.length > 0;
    lines.hidden = !all.length;
    replace(lines, all.map((one) => h("div", { class: "row top", data: { source: one.source, level: one.level || "" } },
      h("time", { class: "muted" }, clock(one.at)), h("span", { class: "log-source" }, one.level || one.source), h("bdi", { class: "grow" }, cleanText(one.text, 2100)))));
    if (atEnd) lines.scrollTop = lines.scrollHeight;
  }, { signal, onError: () => {} });
}
