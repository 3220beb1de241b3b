import assert from "node:assert/strict";
import { test } from "node:test";

import {
  Backlog,
  FlowRows,
  ID,
  REPLAY_OF,
  STATE,
  bodyKind,
  headerPairs,
  hexRows,
  parseEvents,
  withTerm,
} from "../../../src/dari/console/static/js/lib/flow-rows.js";

const row = (id, state = "done") => {
  const made = Array(REPLAY_OF + 1).fill(null);
  made[ID] = id;
  made[STATE] = state;
  return made;
};
const ids = (table) => table.rows.map((each) => each[ID]);

test("rows stay sorted by id however they come in", () => {
  const table = new FlowRows();
  table.merge([row(5), row(6)]);
  table.merge([row(1), row(3), row(5)]);
  table.merge([row(2), row(7)]);
  table.merge([]);
  assert.deepEqual(ids(table), [1, 2, 3, 5, 6, 7]);
});

test("a row that is known already is replaced", () => {
  const table = new FlowRows();
  table.merge([row(1, "request"), row(2, "request")]);
  const same = table.rows;
  table.merge([row(1, "done"), row(3)]);
  assert.equal(table.rows[0][STATE], "done");
  assert.equal(table.rows, same, "in place: a change does not copy the table");
  assert.equal(table.count, 3);
});

test("an id is found at its place, or where it would stand", () => {
  const table = new FlowRows();
  table.merge([row(10), row(20)]);
  assert.deepEqual([5, 10, 15, 20, 25].map((id) => table.find(id)), [-1, 0, -2, 1, -3]);
});

test("no more rows are kept than the limit and a block", () => {
  const table = new FlowRows(2000);
  for (let id = 1; id <= 10_000; id++) table.merge([row(id)]);
  assert.ok(table.count <= 3000);
  assert.equal(table.rows.at(-1)[ID], 10_000);
});

test("rows that left the filter are removed", () => {
  const table = new FlowRows();
  table.merge([row(1), row(2), row(3)]);
  assert.equal(table.remove([2, 9]), 1);
  assert.deepEqual(ids(table), [1, 3]);
});

test("the oldest running row is found", () => {
  const table = new FlowRows();
  table.merge([row(1), row(2, "request"), row(3, "response"), row(4)]);
  assert.equal(table.oldestRunning(), 2);
  assert.equal(new FlowRows().oldestRunning(), null);
});

test("a backlog goes down page by page until nothing is older", () => {
  const backlog = new Backlog();
  backlog.reset(1000);
  backlog.advance(backlog.next, 500);
  assert.deepEqual(backlog.next, { before: 500, until: 0 });
  backlog.advance(backlog.next, null);
  assert.equal(backlog.next, null);
});

test("a gap is fetched before older rows, and two gaps that touch are one", () => {
  const backlog = new Backlog();
  backlog.reset(100);
  backlog.add(900, 400);
  backlog.add(1200, 850);
  assert.deepEqual(backlog.next, { before: 1200, until: 400 });
  backlog.advance(backlog.next, 399);
  assert.deepEqual(backlog.next, { before: 100, until: 0 });
});

test("a page that answers for an older plan changes nothing", () => {
  const backlog = new Backlog();
  backlog.reset(100);
  const range = backlog.next;
  backlog.add(300, 50);
  backlog.advance(range, 20);
  assert.deepEqual(backlog.next, { before: 300, until: 0 });
});

test("header lines become pairs, markup and odd names included", () => {
  assert.deepEqual(headerPairs("Host: a.test\n:authority: x\nX-<b>: <script>\nbroken\nEmpty:\n"), [
    ["Host", "a.test"],
    [":authority", "x"],
    ["X-<b>", "<script>"],
    ["broken", ""],
    ["Empty", ""],
  ]);
  assert.deepEqual(headerPairs(undefined), []);
});

test("server-sent events are read as the standard says", () => {
  const text = ": hello\nevent: tick\nid: 7\ndata: one\ndata: two\r\n\r\ndata:three\n\nretry: 5\n\ndata: unfinished";
  assert.deepEqual(parseEvents(text), [
    { event: "tick", id: "7", data: "one\ntwo" },
    { event: "message", id: "7", data: "three" },
    { event: "message", id: "7", data: "unfinished" },
  ]);
});

test("a hex dump has sixteen bytes a row", () => {
  const rows = hexRows(new Uint8Array(20).fill(65), 16);
  assert.equal(rows.length, 2);
  assert.deepEqual([rows[0][0], rows[1][0], rows[1][2]], ["00000010", "00000020", "AAAA"]);
  assert.equal(rows[0][1].length, rows[1][1].length);
});

test("a body is shown by its type", () => {
  const kinds = [
    [{ kind: "empty", mime: "text/html" }, "empty"],
    [{ kind: "json", mime: "application/json" }, "json"],
    [{ kind: "binary", mime: "image/png" }, "image"],
    [{ kind: "text", mime: "image/svg+xml" }, "text"],
    [{ kind: "binary", mime: "application/zip" }, "hex"],
    [{ kind: "text", mime: "text/event-stream" }, "events"],
    [{ kind: "text", mime: "application/x-www-form-urlencoded" }, "form"],
    [{ kind: "text", mime: "text/html" }, "text"],
  ];
  for (const [view, kind] of kinds) assert.equal(bodyKind(view), kind);
});

test("a term is added to a filter once, around what is there", () => {
  assert.equal(withTerm("", "host:a"), "host:a");
  assert.equal(withTerm("host:a", "host:a"), "host:a");
  assert.equal(withTerm("x", "host:a"), "x host:a");
  assert.equal(withTerm("x or y", "host:a"), "(x or y) host:a");
});
