// Small charts: calls of the last hour, and the load of the hub, its daemons and servers.

import { cleanText, h, keyed, replace } from "../lib/dom.js";
import { t } from "../lib/i18n.js";
import { bytes, count } from "../lib/format.js";
import { live } from "../lib/live.js";
import { spark } from "../parts/charts.js";

const POINTS = 60;
const LOOK_MS = 15000;

export function loadCard(signal) {
  const calls = h("div", { class: "row" });
  const list = h("ul", { class: "stack tight" });
  const el = h("section", { class: "card", "aria-labelledby": "home-load", data: { state: "loading" } },
    h("div", { class: "row" }, h("h2", { id: "home-load", class: "grow" }, t("home.load")), h("a", { href: "/audit/activity" }, t("home.load.more"))), calls, list);
  const levels = new Map();

  async function look() {
    if (live.state !== "open" || document.visibilityState !== "visible") return;
    try {
      const { series } = (await live.call("dari_activity_calls", { minutes: POINTS, steps: POINTS, group_by: "part" }, { signal })).value;
      const sums = Array.from({ length: POINTS }, (_, at) => series.reduce((all, one) => all + (one.calls[at] || 0), 0));
      replace(calls, h("span", { class: "grow" }, t("home.load.calls")), spark(sums, { label: t("home.load.calls") }), h("span", { class: "home-number" }, count(sums.reduce((a, b) => a + b, 0))));
    } catch {
      replace(calls); // a hub without an audit log counts nothing
    }
  }

  live.follow("activity", ({ processes }) => {
    el.dataset.state = "ready";
    keyed(list, processes, ({ process }) => process.pid, ({ process }) => {
      const line = spark([], { label: t("home.load.cpu", { name: cleanText(process.name, 40) }), max: 0.5 });
      const memory = h("span", { class: "home-number" });
      return Object.assign(h("li", { class: "row" }, h("span", { class: "grow ellipsis" }, cleanText(process.name, 40)), line, memory), { __shown: { line, memory } });
    }, (row, { process, cpu }) => {
      const kept = [...(levels.get(process.pid) || []), cpu].slice(-POINTS);
      levels.set(process.pid, kept);
      row.__shown.line.update(kept);
      replace(row.__shown.memory, bytes(process.memory_bytes));
    });
  }, { signal });
  live.onState(look, signal);
  const timer = setInterval(look, LOOK_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
  return el;
}
