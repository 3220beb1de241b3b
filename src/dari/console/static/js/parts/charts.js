// Small charts of our own: SVG shapes without text, HTML for the words around them, and the same numbers as a table.
//
//   spark([1, 4, 2], {label})                                          a line beside a number
//   stacked({label, start, step, series: [{name, values, state}], format})   bars over time; area: true for a level
//   histogram({label, buckets: [{name, value}]})                       how often each size came
//   bars({label, rows: [{name, value, href, state}], format})          the largest of something
//
// Each is a <figure> with update(the same, changed). Names of others become text only.

import { cleanText, h, icon, replace, svg } from "../lib/dom.js";
import { addTexts, t, text } from "../lib/i18n.js";
import { clock, count } from "../lib/format.js";
import texts from "../texts/charts.js";

addTexts(texts);
document.head.append(h("link", { rel: "stylesheet", href: new URL("../../css/charts.css", import.meta.url) }));

const WIDTH = 600;
const COLOURS = 8;
const sum = (values) => values.reduce((all, one) => all + one, 0);
const colour = (one, at) => `chart-${one.state || `c${(at % COLOURS) + 1}`}`;
const named = (name) => (name ? cleanText(name, 80) : t("chart.others"));

/** A line without axes; `label` says what it is, the numbers are read with it. */
export function spark(values, { label, max, width = 96, height = 24 } = {}) {
  const el = h("span", { class: "chart-spark" });
  el.update = (next, top = max) => {
    const most = Math.max(top || 0, ...next, 1e-9);
    const x = (at) => (next.length < 2 ? width : (at / (next.length - 1)) * width);
    const line = next.map((one, at) => `${at ? "L" : "M"}${x(at).toFixed(1)} ${(height - 1 - (one / most) * (height - 2)).toFixed(1)}`).join("");
    const last = next.length ? count(Math.round(next[next.length - 1] * 100) / 100) : "–";
    replace(el, svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${text(label)}: ${last}` },
      svg("path", { d: next.length ? `${line}L${width} ${height}L0 ${height}Z` : "", class: "chart-under" }),
      svg("path", { d: line, class: "chart-line" })));
  };
  el.update(values);
  return el;
}

function figure(kind, draw, data) {
  const legend = h("span", { class: "chart-legend row wrap" });
  const title = h("span", { class: "label" });
  const toggle = h("button", { class: "btn ghost icon", type: "button", "aria-pressed": "false", title: t("chart.table"), "aria-label": t("chart.table") }, icon("menu"));
  const picture = h("div", { class: "chart-picture" });
  const table = h("div", { class: "chart-table scroll", hidden: true, tabindex: "0", role: "region" });
  const el = h("figure", { class: `chart chart-${kind}`, data: { state: "picture" } },
    h("figcaption", { class: "row" }, title, h("span", { class: "grow" }), toggle), picture, table, legend);
  toggle.addEventListener("click", () => {
    table.hidden = !table.hidden;
    picture.hidden = !table.hidden;
    el.dataset.state = table.hidden ? "picture" : "table";
    toggle.setAttribute("aria-pressed", String(!table.hidden));
  });
  el.update = (next) => {
    replace(title, next.label);
    table.setAttribute("aria-label", text(next.label));
    draw(next, { picture, table, legend });
  };
  el.update(data);
  return el;
}

function rowsTable(label, head, rows) {
  return h("table", { class: "table small", "aria-label": text(label) },
    h("thead", {}, h("tr", {}, head.map((one, at) => h("th", { scope: "col", class: at ? "num" : null }, one)))),
    h("tbody", {}, rows.map(([first, ...rest]) => h("tr", {}, h("th", { scope: "row" }, first), rest.map((one) => h("td", { class: "num" }, one))))));
}

function empty(picture) {
  replace(picture, h("p", { class: "chart-empty muted small" }, t("chart.empty")));
}

function image(height, label, shapes) {
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: "none", height, class: "chart-svg", role: "img", "aria-label": label }, shapes);
}

/** What a screen reader says: the whole, the largest, and where the top is. */
function summary({ label, start, step, series, format, area }, totals) {
  const whole = area ? (values) => values[values.length - 1] : sum;
  const parts = series.slice(0, 4).map((one) => `${named(one.name)} ${format(whole(one.values))}`);
  const top = totals.indexOf(Math.max(...totals));
  const most = text(t("chart.most", { value: format(totals[top]), time: clock(start + top * step) }));
  return `${text(label)}: ${parts.join(", ")}. ${most}`;
}

export function stacked(data) {
  return figure("stacked", drawStacked, data);
}

function drawStacked({ area = false, height = 120, format = count, ...data }, { picture, table, legend }) {
  const { series, start, step } = data;
  const steps = series[0]?.values.length || 0;
  const totals = Array.from({ length: steps }, (_, at) => sum(series.map((one) => one.values[at])));
  const most = Math.max(...totals, 0);
  replace(legend, series.map((one, at) => h("span", { class: "chart-key" }, h("i", { class: colour(one, at), "aria-hidden": "true" }), named(one.name))));
  replace(table, rowsTable(data.label, [text(t("chart.time")), ...series.map((one) => named(one.name))],
    totals.map((_, at) => [clock(start + at * step), ...series.map((one) => format(one.values[at]))])));
  if (!most && !(area && steps)) return empty(picture);
  const y = (value) => height - (value / (most || 1)) * (height - 4);
  const shapes = area ? areas(series, totals, y) : columns(series, totals, y, height);
  const width = WIDTH / steps;
  const touch = totals.map((total, at) => svg("rect", { x: at * width, y: 0, width, height, class: "chart-touch" },
    svg("title", {}, [clock(start + at * step), ...series.filter((one) => one.values[at]).map((one) => `${named(one.name)}: ${format(one.values[at])}`)].join("\n"))));
  replace(picture, h("span", { class: "chart-top muted small" }, format(most)),
    image(height, summary({ ...data, format, area }, totals), [...shapes, ...touch]),
    h("div", { class: "row muted small chart-axis" }, h("span", { class: "grow" }, clock(start)), clock(start + steps * step)));
}

function columns(series, totals, y, height) {
  const width = WIDTH / totals.length;
  const gap = Math.min(2, width * 0.2);
  return totals.flatMap((_, at) => {
    let below = 0;
    return series.map((one, number) => {
      if (!one.values[at]) return null;
      const foot = y(below);
      below += one.values[at];
      return svg("rect", { x: (at * width + gap / 2).toFixed(2), y: y(below).toFixed(2), width: (width - gap).toFixed(2), height: Math.min(height, foot - y(below)).toFixed(2), class: colour(one, number) });
    });
  });
}

function areas(series, totals, y) {
  const x = (at) => (totals.length < 2 ? at * WIDTH : (at / (totals.length - 1)) * WIDTH).toFixed(1);
  let below = totals.map(() => 0);
  return series.map((one, number) => {
    const above = below.map((base, at) => base + one.values[at]);
    const line = (levels) => levels.map((value, at) => `${x(at)} ${y(value).toFixed(1)}`);
    const path = `M${line(above).join("L")}L${line(below).reverse().join("L")}Z`;
    below = above;
    return svg("path", { d: path, class: colour(one, number) });
  });
}

export function histogram(data) {
  return figure("histogram", ({ label, buckets, height = 90, format = count }, { picture, table }) => {
    const most = Math.max(...buckets.map((one) => one.value), 0);
    replace(table, rowsTable(label, [text(label), text(t("chart.number"))], buckets.map((one) => [named(one.name), format(one.value)])));
    if (!most) return empty(picture);
    const width = WIDTH / buckets.length;
    const shapes = buckets.map((one, at) => {
      const tall = (one.value / most) * (height - 2);
      return svg("rect", { x: at * width + 1, y: height - tall, width: width - 2, height: tall, class: "chart-c1" }, svg("title", {}, `${named(one.name)}: ${format(one.value)}`));
    });
    const said = buckets.filter((one) => one.value).map((one) => `${named(one.name)} ${format(one.value)}`).join(", ");
    replace(picture, h("span", { class: "chart-top muted small" }, format(most)), image(height, `${text(label)}: ${said}`, shapes),
      h("div", { class: "chart-ticks muted small", "aria-hidden": "true" }, buckets.map((one) => h("span", {}, named(one.name)))));
  }, data);
}

/** A row for each name, its bar as long as its value; a list, so it reads without a table. */
export function bars(data) {
  const title = h("figcaption", { class: "label" });
  const list = h("ul", { class: "chart-rows" });
  const el = h("figure", { class: "chart chart-bars" }, title, list);
  el.update = ({ label, rows, format = count }) => {
    const most = Math.max(...rows.map((one) => one.value), 1e-9);
    replace(title, label);
    replace(list, rows.length ? rows.map((one, at) => h("li", { data: { state: one.state || "" } },
      one.href ? h("a", { href: one.href, class: "ellipsis" }, named(one.name)) : h("span", { class: "ellipsis", title: named(one.name) }, named(one.name)),
      h("span", { class: "chart-bar", "aria-hidden": "true" }, h("i", { class: colour(one, 0), style: { width: `${(100 * one.value) / most}%` } })),
      h("span", { class: "num" }, format(one.value)))) : h("li", { class: "muted small" }, t("chart.empty")));
  };
  el.update(data);
  return el;
}
