import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";

import { CallHistory } from "../../../src/dari/console/static/js/lib/call-history.js";
import { errorOffset, parseJson } from "../../../src/dari/console/static/js/lib/json-text.js";
import { withoutSecrets } from "../../../src/dari/console/static/js/lib/schema.js";
import { asCli, asCurl, asMcp, asPython, safeJson, shellQuote } from "../../../src/dari/console/static/js/lib/snippets.js";
import * as list from "../../../src/dari/console/static/js/lib/tool-list.js";

const named = (name, more = {}) => ({ name, inputSchema: { type: "object" }, ...more });
const names = (entries) => entries.map((entry) => entry.name);

test("tools are grouped by part, then by server, with the names that servers gave them", () => {
  const origins = new Map([["odd_ping", { server: "odd", tool: "ping" }]]);
  const groups = list.groupTools(list.listTools([named("files__read"), named("odd_ping"), named("crux_list_panes"), named("crab_status")], origins));
  assert.deepEqual(groups.map((group) => group.id), ["proxy", "terminal", "server:files", "server:odd"]);
  assert.equal(groups[2].entries[0].own, "read");
  assert.equal(groups[3].entries[0].own, "ping");
});

test("a name counts before a description, and every word has to fit", () => {
  const entries = list.listTools([named("a__copy", { description: "delete nothing" }), named("b__delete_file"), named("c__file_delete")]);
  assert.deepEqual(names(list.findTools("delete", entries)), ["b__delete_file", "c__file_delete", "a__copy"]);
  assert.deepEqual(names(list.findTools("file delete", entries)).length, 2);
  assert.deepEqual(names(list.findTools("dltfl", entries)), ["b__delete_file"]);
  assert.deepEqual(list.findTools("zzz", entries), []);
});

test("Korean is found whole, in parts, composed or not, and by first consonants", () => {
  const entries = list.listTools([named("s__a", { title: "터미널 열기" }), named("s__b", { description: "문서 검색" })]);
  assert.deepEqual(names(list.findTools("터미", entries)), ["s__a"]);
  assert.deepEqual(names(list.findTools("검색".normalize("NFD"), entries)), ["s__b"]);
  assert.deepEqual(names(list.findTools("ㅌㅁㄴ", entries)), ["s__a"]);
  assert.deepEqual(names(list.findTools("터미널", list.listTools([named("crux_x"), named("crab_x")]))), ["crux_x"]);
});

test("tools that cannot be used are told apart and do not hide the others", () => {
  const odd = [null, {}, { name: 3 }, { name: "a" }, { name: "b", inputSchema: [] }, { name: "c", inputSchema: { type: "string" } }, named("d", { outputSchema: 1 }), named("e")];
  assert.deepEqual(list.listTools(odd).map((entry) => entry.problem), ["name", "name", "name", "inputSchema", "inputSchema", "type", "outputSchema", ""]);
});

test("5,000 tools are filtered without a second look at their texts", () => {
  const entries = list.listTools(Array.from({ length: 5000 }, (_, i) => named(`s${i % 50}__tool_${i}`, { description: "x".repeat(500) })));
  assert.equal(list.findTools("tool_4999", entries).length, 1);
});

test("annotations are shown only where a server states them", () => {
  assert.deepEqual(list.annotationsOf({ annotations: { readOnlyHint: true, destructiveHint: true, idempotentHint: true } }), [["readOnly", false]]);
  assert.deepEqual(list.annotationsOf({ annotations: { destructiveHint: true, openWorldHint: true } }), [["destructive", true], ["openWorld", false]]);
  assert.deepEqual(list.annotationsOf({ annotations: "x" }), []);
});

test("a tool named like a part of the page has an address of its own", () => {
  assert.equal(list.toolPath("crab_status"), "/tools/crab_status");
  assert.equal(list.toolPath("resources"), "/tools/-/resources");
});

test("templates of resources have their fields and are filled as RFC 6570 says", () => {
  const template = "file:///{+path}{?q,lang*}{#part:3}";
  assert.deepEqual(list.templateFields(template), ["path", "q", "lang", "part"]);
  assert.equal(list.fillTemplate(template, { path: "a b/c", q: "x&y", part: "abcdef" }), "file:///a%20b/c?q=x%26y#abc");
  assert.equal(list.fillTemplate("demo://{id}/x", { id: "a/b" }), "demo://a%2Fb/x");
});

const HOSTILE = "it's $(touch /tmp/x) `id` \"q\" \\ \n\u202egpj\u200b한글";

test("a copied command gives the shell exactly what was typed", () => {
  const echoed = (word) => execFileSync("sh", ["-c", `printf %s ${shellQuote(word)}`]).toString();
  for (const word of [HOSTILE, "", "-rf", "a b", "plain"]) assert.equal(echoed(word), word);
  const command = asCli({ name: "s__t", server: "my server", own: "t'", args: { a: HOSTILE } }).replace(/^dari/, "printf '%s\\0'");
  const words = execFileSync("sh", ["-c", command]).toString().split("\0");
  assert.deepEqual(words.slice(0, 6), ["remote", "call-tool", "t'", "--server", "my server", "--params"]);
  assert.deepEqual(JSON.parse(words[6]), { a: HOSTILE });
});

test("what is invisible or turns text around is an escape in every snippet", () => {
  const call = { name: "s__t", own: "t", server: "s", args: { a: HOSTILE, "\u2066k": [true, null, 1.5] }, endpoint: "http://127.0.0.1:3847/mcp" };
  for (const text of [asMcp(call), asCurl(call), asPython(call), asCli(call)]) assert.doesNotMatch(text, /[\u200b\u202e\u2066]/);
  assert.deepEqual(JSON.parse(safeJson(call.args)), call.args);
  assert.deepEqual(JSON.parse(safeJson("\u{e0041}x")), "\u{e0041}x");
});

test("the Python of a call is Python", () => {
  const code = asPython({ name: "s__t", args: { a: HOSTILE, b: [true, false, null, 1.5, { c: "x".repeat(100) }] }, endpoint: "http://x/mcp" });
  const value = execFileSync("python3", ["-c", "import ast,json,sys; t=ast.parse(sys.stdin.read()); print(json.dumps([ast.literal_eval(n.value) for n in ast.walk(t) if isinstance(n, ast.Assign) and isinstance(n.value, ast.Dict)][0]))"], { input: code });
  assert.deepEqual(JSON.parse(value.toString()), { a: HOSTILE, b: [true, false, null, 1.5, { c: "x".repeat(100) }] });
});

test("our own tools have a command only where the command line has them", () => {
  assert.equal(asCli({ name: "crab_status", args: {}, server: "", own: "" }), "");
  assert.equal(asCli({ name: "crewx_tools_search", args: { a: 1 }, server: "", own: "" }), `dari remote call-tool crewx_tools_search --server crewx-tools --params '{"a":1}'`);
});

test("an error in JSON says where it is, and a number that would change is one", () => {
  const { error } = parseJson('{\n  "a": 1,\n  "b": tru\n}');
  assert.equal(error.line, 3);
  assert.deepEqual(parseJson("[1, 2]"), { value: [1, 2] });
  assert.equal(parseJson('{"a": ').error.line, 1);
});

test("the first thing that is wrong in JSON is found without the engine's help", () => {
  const places = [['{"a": tru}', 6], ["[1,]", 3], ['{"a" 1}', 5], ["[1 2]", 3], ['{"a":1,}', 7], ["{a:1}", 1], ['["x\ny"]'.replace("\\n", "\n"), 1], ["[1]]", 3], ["", 0], ['{"a":[1,{"b":', 13], ["[01]", 2]];
  for (const [text, offset] of places) assert.equal(errorOffset(text), offset, text);
});

class Storage {
  items = new Map();
  getItem = (key) => this.items.get(key) ?? null;
  setItem = (key, value) => this.items.set(key, value);
}

test("history is bounded, keeps pins, leaves secrets out and survives a broken store", () => {
  const storage = new Storage();
  const history = new CallHistory(storage, withoutSecrets);
  const first = history.add({ tool: "a", schema: {}, args: { token: "s3cret", b: 1 }, at: 1, ms: 2, outcome: "ok" });
  assert.deepEqual([first.args, first.hidden], [{ b: 1 }, 1]);
  history.pin(first.id, true);
  for (let i = 0; i < 300; i++) history.add({ tool: "b", args: { i }, at: i, ms: 1, outcome: "ok" });
  history.add({ tool: "big", args: { x: "y".repeat(10000) }, at: 1, ms: 1, outcome: "ok" });
  assert.equal(history.calls.length, 101);
  assert.equal(history.calls[0].args, null);
  assert.ok(!JSON.stringify([...storage.items]).includes("s3cret"));
  assert.deepEqual(new CallHistory(storage).of("a").map((call) => call.pinned), [true]);
  const before = history.clear();
  assert.equal(history.calls.length, 1);
  history.restore(before);
  assert.equal(history.calls.length, 101);
  storage.setItem("dari.calls", "{broken");
  assert.deepEqual(new CallHistory(storage).calls, []);
});
