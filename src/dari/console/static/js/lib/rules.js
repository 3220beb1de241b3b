// Rules of the proxy as a form has them, and back: what crab_rules_add and crab_rules_update take. Pure.

import { formatHeaders, parseHeaders } from "./headers.js";

export const KINDS = [
  "map_local", "map_remote", "status_rewrite", "header_rewrite", "body_replace", "delay", "block", "fault", "breakpoint", "allow",
];

/** What a form asks for, by kind; `mock` is made from a recorded request and edited here. */
export const FIELDS = {
  allow: [],
  block: ["status_code"],
  breakpoint: ["on", "time_limit_s"],
  delay: ["delay_ms", "jitter_ms"],
  fault: ["mode", "after_bytes"],
  header_rewrite: ["on", "edits"],
  body_replace: ["on", "find", "text"],
  map_local: ["source", "status_code", "content_type", "text", "file_path"],
  map_remote: ["destination"],
  status_rewrite: ["from_status_code", "to_status_code"],
  mock: ["status_code", "headers", "body"],
};

export const DEFAULTS = {
  block: { status_code: 403 },
  breakpoint: { on: "request", time_limit_s: 60 },
  delay: { delay_ms: 1000, jitter_ms: 0 },
  fault: { mode: "reset", after_bytes: 0 },
  header_rewrite: { on: "request", edits: "" },
  body_replace: { on: "response", find: "", text: "" },
  map_local: { source: "text", text: "", file_path: "", status_code: 200, content_type: "" },
  map_remote: { destination: "" },
  status_rewrite: { from_status_code: "", to_status_code: 503 },
  mock: { status_code: 200, headers: "", body: "" },
};

const SHARED = { matcher: "", matcher_kind: "prefix", method: "" };
const NUMBERS = new Set([
  "status_code", "time_limit_s", "delay_ms", "jitter_ms", "after_bytes", "from_status_code", "to_status_code",
]);

export function newValues(kind, given = {}) {
  return { kind, ...SHARED, ...DEFAULTS[kind], ...given };
}

/** A rule as crab_rules_list shows it, as values of the form. */
export function valuesOf(rule) {
  const { settings } = rule;
  const values = newValues(rule.kind, { matcher: rule.matcher, matcher_kind: rule.matcher_kind, method: rule.method ?? "" });
  for (const name of FIELDS[rule.kind] ?? []) if (name in settings) values[name] = settings[name] ?? "";
  if (rule.kind === "map_local") {
    values.source = settings.source.kind;
    values[values.source === "file" ? "file_path" : "text"] = settings.source.value;
  }
  if (rule.kind === "header_rewrite") values.edits = formatEdits(settings.edits);
  if (rule.kind === "mock") {
    values.headers = formatHeaders(settings.headers);
    values.body = decodeText(settings.body);
  }
  return values;
}

/** Arguments of crab_rules_add. */
export function toArguments(values) {
  const { kind } = values;
  const made = { kind, matcher: values.matcher.trim(), matcher_kind: values.matcher_kind };
  if (values.method) made.method = values.method;
  const names = (FIELDS[kind] ?? []).filter((name) => name !== "source" && name !== "edits");
  for (const name of names) if (hasValue(values[name]) || name === "text") made[name] = plain(name, values[name] ?? "");
  if (kind === "map_local") delete made[values.source === "file" ? "text" : "file_path"];
  if (kind === "body_replace" && !values.find) delete made.find;
  if (kind === "header_rewrite") {
    for (const { action, name, value } of parseEdits(values.edits)) {
      if (action === "remove") (made.remove_headers ??= []).push(name);
      else (made[`${action}_headers`] ??= {})[name] = value;
    }
  }
  return made;
}

/** What `values` change in the rule, as `changes` of crab_rules_update; empty when nothing is. */
export function toChanges(values, rule) {
  const now = { matcher: values.matcher.trim(), matcher_kind: values.matcher_kind, method: values.method || null };
  const was = { matcher: rule.matcher, matcher_kind: rule.matcher_kind, method: rule.method ?? null };
  for (const [name, value] of Object.entries(toSettings(values, rule))) [now[name], was[name]] = [value, rule.settings[name] ?? null];
  return Object.fromEntries(Object.entries(now).filter(([name, value]) => !isEqual(value, was[name])));
}

function toSettings(values, rule) {
  const { kind } = values;
  const made = {};
  for (const name of FIELDS[kind] ?? []) {
    if (name === "source" || name === "file_path" || (name === "text" && kind === "map_local")) continue;
    made[name] = hasValue(values[name]) ? plain(name, values[name]) : DEFAULTS[kind][name] || null;
  }
  if (kind === "map_local") {
    made.source = { kind: values.source, value: values.source === "file" ? values.file_path : values.text };
  } else if (kind === "header_rewrite") {
    made.edits = parseEdits(values.edits);
  } else if (kind === "mock") {
    made.headers = parseHeaders(values.headers);
    if (values.body === null || values.body === decodeText(rule.settings.body)) delete made.body;
    else made.body = encodeText(values.body);
  } else if (kind === "body_replace") {
    made.text = values.text;
  }
  return made;
}

/** Lines of the editor: `Name: value` sets, `+Name: value` adds one more, `-Name` removes. */
export function parseEdits(text) {
  return text.split(/\r\n|\n|\r/).map((line, index) => ({ line: line.trim(), number: index + 1 })).filter(({ line }) => line)
    .map(({ line, number }) => {
      if (line.startsWith("-")) return { action: "remove", name: line.slice(1).replace(/:.*$/, "").trim(), value: "" };
      const action = line.startsWith("+") ? "add" : "set";
      const at = line.indexOf(":");
      if (at < 1) throw Object.assign(new Error(line), { line: number });
      return { action, name: line.slice(action === "add" ? 1 : 0, at).trim(), value: line.slice(at + 1).trim() };
    });
}

export function formatEdits(edits) {
  const marks = { set: "", add: "+", remove: "-" };
  return edits.map(({ action, name, value }) => marks[action] + name + (action === "remove" ? "" : `: ${value}`)).join("\n");
}

/** What the rule does, as values of the text `rules.does.<kind>`. */
export function effectOf({ kind, settings }) {
  if (kind === "map_local") {
    const { kind: from, value } = settings.source;
    return [`map_local_${from}`, { status: settings.status_code, value: firstLine(value) }];
  }
  if (kind === "status_rewrite") {
    return [settings.from_status_code ? "status_rewrite" : "status_rewrite_any", { from: settings.from_status_code, to: settings.to_status_code }];
  }
  if (kind === "header_rewrite") return [kind, { on: settings.on, value: settings.edits.map((edit) => formatEdits([edit])).join(", ") }];
  if (kind === "body_replace") {
    return [settings.find === null ? "body_replace_all" : kind, { on: settings.on, find: firstLine(settings.find ?? ""), value: firstLine(settings.text) }];
  }
  return [kind, settings];
}

/** A body in base64 as text; null when it is none. */
export function decodeText(base64) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(atob(base64 ?? ""), (one) => one.charCodeAt(0)));
  } catch {
    return null;
  }
}

function encodeText(text) {
  const bytes = new TextEncoder().encode(text);
  let made = "";
  for (let i = 0; i < bytes.length; i += 8192) made += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(made);
}

function firstLine(text) {
  const line = text.split("\n", 1)[0];
  return line.length > 80 || line.length < text.length ? `${line.slice(0, 80)}…` : line;
}

const hasValue = (value) => value !== "" && value !== null && value !== undefined;
const plain = (name, value) => (NUMBERS.has(name) ? Number(value) : value);
const isEqual = (a, b) => JSON.stringify(a) === JSON.stringify(b);
