import assert from "node:assert/strict";
import test from "node:test";
import {
  FIELDS, KINDS, effectOf, newValues, parseEdits, toArguments, toChanges, valuesOf,
} from "../../../src/dari/console/static/js/lib/rules.js";

const rule = (kind, settings, more = {}) => ({ id: "r1", kind, matcher: "a.test", matcher_kind: "prefix", method: null, settings, ...more });

test("a new rule has the arguments of its kind and no others", () => {
  const values = newValues("map_local", { matcher: " a.test/x ", text: "hi", file_path: "/left/over", method: "GET" });
  assert.deepEqual(toArguments(values), {
    kind: "map_local", matcher: "a.test/x", matcher_kind: "prefix", method: "GET", text: "hi", status_code: 200,
  });
  assert.deepEqual(toArguments({ ...values, source: "file" }).file_path, "/left/over");
  assert.equal("text" in toArguments({ ...values, source: "file" }), false);
  assert.deepEqual(toArguments(newValues("status_rewrite", { matcher: "/", to_status_code: "404" })), {
    kind: "status_rewrite", matcher: "/", matcher_kind: "prefix", to_status_code: 404,
  });
  assert.deepEqual(Object.keys(toArguments(newValues("body_replace", { matcher: "/" }))), ["kind", "matcher", "matcher_kind", "on", "text"]);
});

test("lines of header edits set, add and remove", () => {
  const edits = "Accept: text/html\n+Set-Cookie: a=1\n-Server\n\n-Via: old";
  assert.deepEqual(parseEdits(edits).map(({ action, name, value }) => [action, name, value]), [
    ["set", "Accept", "text/html"], ["add", "Set-Cookie", "a=1"], ["remove", "Server", ""], ["remove", "Via", ""],
  ]);
  const made = toArguments(newValues("header_rewrite", { matcher: "/", edits }));
  assert.deepEqual([made.set_headers, made.add_headers, made.remove_headers], [{ Accept: "text/html" }, { "Set-Cookie": "a=1" }, ["Server", "Via"]]);
  assert.throws(() => parseEdits("ok: 1\nwrong"), (error) => error.line === 2);
});

const STORED = [
  rule("allow", {}),
  rule("block", { status_code: 403 }),
  rule("breakpoint", { on: "response", time_limit_s: 5 }),
  rule("delay", { delay_ms: 10, jitter_ms: 0 }),
  rule("fault", { mode: "truncate", after_bytes: 0 }),
  rule("header_rewrite", { edits: [{ action: "add", name: "X", value: "<redacted>" }, { action: "remove", name: "Y", value: "" }], on: "request" }),
  rule("body_replace", { text: "", find: null, on: "response" }),
  rule("map_local", { source: { kind: "file", value: "/a" }, status_code: 200, content_type: null }),
  rule("map_remote", { destination: "http://b.test", keeps_credentials: false }),
  rule("status_rewrite", { to_status_code: 503, from_status_code: null }),
  rule("mock", { status_code: 200, headers: [["A", "1"], ["A", "2"]], body: btoa("hi") }),
  rule("mock", { status_code: 200, headers: [], body: btoa("\xff\xfe") }),
];

test("a rule that was opened and left as it is has no changes, of every kind", () => {
  for (const one of STORED) assert.deepEqual([one.kind, toChanges(valuesOf(one), one)], [one.kind, {}]);
  assert.deepEqual(new Set(STORED.map((one) => one.kind)), new Set([...KINDS, "mock"]));
  assert.deepEqual(new Set(Object.keys(FIELDS)), new Set([...KINDS, "mock"]));
});

test("only the members that were edited are changed", () => {
  const change = (index, edits) => toChanges({ ...valuesOf(STORED[index]), ...edits }, STORED[index]);
  assert.deepEqual(change(1, { status_code: "451", method: "POST" }), { method: "POST", status_code: 451 });
  assert.deepEqual(change(7, { source: "text", text: "hi", content_type: "text/x" }), { source: { kind: "text", value: "hi" }, content_type: "text/x" });
  assert.deepEqual(change(9, { from_status_code: "200" }), { from_status_code: 200 });
  assert.deepEqual(change(10, { body: "한" }), { body: "7ZWc" });
  assert.deepEqual(change(6, { find: "a", text: "b" }), { find: "a", text: "b" });
});

test("what a rule does is told with its first line", () => {
  assert.deepEqual(effectOf(rule("map_local", { source: { kind: "text", value: "a\nb" }, status_code: 200 })), ["map_local_text", { status: 200, value: "a…" }]);
  assert.equal(effectOf(STORED[9])[0], "status_rewrite_any");
});
