// What the charts above the requests show, counted from the rows that are there. No DOM here.

import { DURATION, HOST, STARTED } from "./flow-rows.js";

const NICE_S = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 86_400];
const LIMITS_MS = [10, 50, 100, 250, 500, 1000, 5000, Infinity];

/** Requests by host over time: {start, step, series: [{name, values}]}; the busiest hosts, and "" for all others. */
export function byHost(rows, { steps = 40, hosts = 5, now = Date.now() } = {}) {
  if (!rows.length) return { start: now / 1000, step: 1, series: [] };
  let first = Infinity;
  let last = 0;
  const totals = new Map();
  for (const row of rows) {
    if (row[STARTED] < first) first = row[STARTED];
    if (row[STARTED] > last) last = row[STARTED];
    totals.set(row[HOST], (totals.get(row[HOST]) ?? 0) + 1);
  }
  const span = (last - first) / 1000;
  const step = NICE_S.find((one) => span / one < steps) ?? Math.ceil(span / steps / 86_400) * 86_400;
  const start = Math.floor(first / 1000 / step) * step;
  const count = Math.max(1, Math.floor((last / 1000 - start) / step) + 1);
  const busiest = [...totals].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, hosts).map(([name]) => name);
  const series = new Map(busiest.map((name) => [name, { name, values: new Array(count).fill(0) }]));
  if (totals.size > busiest.length) series.set("", { name: "", values: new Array(count).fill(0) });
  for (const row of rows) {
    const at = Math.floor((row[STARTED] / 1000 - start) / step);
    (series.get(row[HOST]) ?? series.get("")).values[at]++;
  }
  return { start, step, series: [...series.values()] };
}

/** How many requests took how long: [{name, value}]. */
export function byDuration(rows) {
  const counts = new Array(LIMITS_MS.length).fill(0);
  for (const row of rows) {
    const ms = row[DURATION];
    if (ms !== null) counts[LIMITS_MS.findIndex((limit) => ms < limit)]++;
  }
  return counts.map((value, at) => ({ name: at === counts.length - 1 ? `≥${shortMs(LIMITS_MS[at - 1])}` : `<${shortMs(LIMITS_MS[at])}`, value }));
}

function shortMs(ms) {
  return ms < 1000 ? `${ms}ms` : `${ms / 1000}s`;
}
