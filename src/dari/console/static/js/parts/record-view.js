// One record of the audit log: as a row of a table, on a timeline, and whole with its links.

import { cleanLines, cleanText, h } from "../lib/dom.js";
import { bytes, clock, dateTime, duration } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { badge, copyButton } from "./widgets.js";

export const OUTCOMES = { ok: "ok", tool_error: "bad", error: "bad", denied: "bad", timed_out: "warn", limited: "warn", held: "warn", cancelled: "" };
const HELPED = new Set(["denied", "held", "timed_out", "limited", "error", "tool_error", "cancelled"]);

export function recordTitle(one) {
  if (one.kind !== "call") return cleanText([one.detail.event || one.kind, one.server, one.tool].filter(Boolean).join(" · "), 160);
  const own = one.part && one.tool.startsWith(`${one.part}_`);
  return cleanText(own || !one.server ? one.tool : `${one.server}/${one.tool}`, 160);
}

export function outcomeBadge(one) {
  return one.kind === "call" ? badge(t(`audit.outcome.${one.outcome}`), OUTCOMES[one.outcome]) : badge(t(`audit.kind.${one.kind}`), "info");
}

export function recordHref(one) {
  return `/audit/${one.n}${location.search}`;
}

export function recordRow(one) {
  return h("tr", { data: { n: one.n, outcome: one.outcome, kind: one.kind } },
    h("td", { class: "nowrap num" }, h("a", { href: recordHref(one), title: dateTime(one.at_unix) }, clock(one.at_unix))),
    h("td", { class: "wide-only" }, one.part ? badge(one.part) : null), h("td", { class: "mono" }, recordTitle(one)), h("td", { class: "audit-who wide-only" }, cleanText(one.who, 60)),
    h("td", {}, outcomeBadge(one)), h("td", { class: "num nowrap wide-only" }, one.kind === "call" ? duration(one.ms) : ""),
    h("td", { class: "num nowrap wide-only" }, one.result_bytes ? bytes(one.result_bytes) : ""), h("td", { class: "audit-said small muted wide-only" }, said(one)));
}

/** What a row says beside its name: the error, or the arguments in short. */
function said(one) {
  if (one.error) return cleanText(one.error, 160);
  if (one.kind !== "call") return cleanText(one.detail.reason || one.detail.effect || one.detail.says || "", 160);
  const given = one.arguments === null ? "" : JSON.stringify(one.arguments);
  return given === "{}" ? "" : cleanText(given, 160);
}

/** A row of a session's timeline: a bar where in the session it was and how long it took. */
export function timelineRow(one, { start, end }) {
  const whole = Math.max(0.001, end - start);
  const began = Math.max(start, one.at_unix - one.ms / 1000);
  const bar = h("i", { class: "audit-bar", data: { outcome: one.outcome, kind: one.kind } });
  bar.style.setProperty("left", `${(100 * (began - start)) / whole}%`);
  bar.style.setProperty("width", `${(100 * (one.at_unix - began)) / whole}%`);
  return h("li", { class: "audit-step", data: { n: one.n, part: one.part || one.kind, outcome: one.outcome } },
    h("a", { class: "audit-step-link", href: recordHref(one) }, h("span", { class: "num small muted nowrap" }, clock(one.at_unix)), badge(one.part || t(`audit.kind.${one.kind}`), one.part ? "" : "info"),
      h("span", { class: "mono ellipsis" }, recordTitle(one)), h("span", { class: "audit-lane", "aria-hidden": "true" }, bar),
      h("span", { class: "num small nowrap" }, one.kind === "call" ? duration(one.ms) : ""), outcomeBadge(one)),
    said(one) ? h("p", { class: "small muted ellipsis audit-step-said" }, said(one)) : null);
}

/** Where an event leads: its approval, pane, flow, server, tool, session. */
function jumps(one) {
  const given = one.arguments && typeof one.arguments === "object" ? one.arguments : {};
  const pane = typeof given.pane_id === "string" ? given.pane_id : "";
  const flow = [given.request_id, given.first_id].find((id) => /^\d{1,18}$/.test(String(id ?? "")));
  return [
    one.approval ? ["approval", `/approvals/${encodeURIComponent(one.approval)}`] : null,
    one.part === "crux" && pane ? ["pane", `/terminals/${encodeURIComponent(pane)}`] : null,
    one.part === "crab" && flow !== undefined ? ["flow", `/traffic/${flow}`] : null,
    one.kind === "call" && one.tool ? ["tool", `/tools/${encodeURIComponent(one.part === "bridge" && one.server !== "bridge" && one.server ? `${one.server}__${one.tool}` : one.tool)}`] : null,
    one.part === "bridge" && one.server ? ["server", `/servers/${encodeURIComponent(one.server)}`] : null,
    one.session ? ["session", `/audit?session=${encodeURIComponent(one.session)}`] : null,
  ].filter(Boolean).map(([name, href]) => h("a", { class: "btn", href, data: { jump: name } }, t(`audit.jump.${name}`)));
}

export function recordDetail({ record: one, prev, hash, line }) {
  const fact = (label, value) => (value ? h("div", { class: "row" }, h("dt", { class: "muted" }, t(label)), h("dd", { class: "ellipsis" }, value)) : null);
  const block = (label, text) => h("section", { class: "stack tight" }, h("div", { class: "row" }, h("h3", { class: "grow" }, t(label)), copyButton(text)),
    h("pre", { class: "code audit-json", tabindex: "0", role: "region", "aria-label": t(label) }, cleanLines(text)));
  return [
    h("div", { class: "row wrap" }, h("h2", { class: "grow mono" }, `${one.n} · `, recordTitle(one)), outcomeBadge(one)),
    one.error ? h("p", { class: "error" }, cleanText(one.error, 1000)) : null,
    HELPED.has(one.outcome) ? h("p", { class: "muted small" }, t(`audit.help.${one.outcome}`)) : null,
    h("dl", { class: "audit-facts small" }, fact("audit.when", dateTime(one.at_unix)), fact("audit.who", cleanText(one.who)), fact("audit.part", one.part), fact("audit.server", cleanText(one.server)),
      fact("audit.took", one.kind === "call" ? duration(one.ms) : ""), fact("audit.size", one.result_bytes ? bytes(one.result_bytes) : ""), fact("audit.session", cleanText(one.session)), fact("audit.hash", h("code", { title: hash }, hash.slice(0, 16))),
      fact("audit.prev", one.n > 1 ? h("a", { href: `/audit/${one.n - 1}${location.search}` }, h("code", { title: prev }, prev.slice(0, 16))) : "")),
    h("div", { class: "row wrap" }, jumps(one)),
    one.arguments !== null ? block("audit.arguments", typeof one.arguments === "string" ? one.arguments : JSON.stringify(one.arguments, null, 2)) : null,
    Object.keys(one.detail).length ? block("audit.detail", JSON.stringify(one.detail, null, 2)) : null,
    block("audit.line", line),
  ];
}
