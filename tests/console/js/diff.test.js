import assert from "node:assert/strict";
import test from "node:test";
import {
  MAX_LINES, countChanges, diffLines, foldRows, markLine, markRows, sideBySide,
} from "../../../src/dari/console/static/js/lib/diff.js";

const short = ({ rows }) => rows.map((row) => ({ same: " ", removed: "-", added: "+" })[row.kind] + row.text);
const sides = (rows) => ["added", "removed"].map((kind) => rows.filter((row) => row.kind !== kind).map((row) => row.text));

test("equal texts have no changes, whatever their line ends", () => {
  assert.deepEqual(short(diffLines("a\r\nb\n", "a\nb")), [" a", " b"]);
  assert.deepEqual(diffLines("", "").rows, []);
});

test("a changed line is removed and added, with the numbers of both sides", () => {
  const { rows } = diffLines("a\nb\nc", "a\nB\nc\nd");
  assert.deepEqual(short({ rows }), [" a", "-b", "+B", " c", "+d"]);
  assert.deepEqual(rows.map((row) => [row.a, row.b]), [[1, 1], [2, null], [null, 2], [3, 3], [null, 4]]);
  assert.deepEqual(countChanges(rows), { added: 2, removed: 1 });
});

test("the rows give both texts back for any pair, and never more edits than lines", () => {
  let seed = 7;
  const random = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
  for (let round = 0; round < 300; round++) {
    const [a, b] = [0, 1].map(() => Array.from({ length: random(30) }, () => "abcd"[random(4)]));
    const { rows } = diffLines(a.join("\n"), b.join("\n"));
    assert.deepEqual(sides(rows), [a, b]);
  }
});

test("words that changed inside a line are marked, and lines with little in common are not", () => {
  assert.deepEqual(markLine("status: 200 ok", "status: 404 ok"), [
    [{ text: "status: ", changed: false }, { text: "200", changed: true }, { text: " ok", changed: false }],
    [{ text: "status: ", changed: false }, { text: "404", changed: true }, { text: " ok", changed: false }],
  ]);
  assert.equal(markLine("alpha beta gamma", "one two three"), null);
  assert.equal(markLine("x ".repeat(1000), "x ".repeat(999)), null);
});

test("a removed line is paired with the line that replaces it", () => {
  const marked = markRows(diffLines("key = 1\nold", "key = 2").rows);
  assert.deepEqual(marked.map((row) => row.parts?.filter((part) => part.changed).map((part) => part.text) ?? null), [
    ["1"], null, ["2"],
  ]);
  assert.deepEqual(sideBySide(marked).map(({ left, right }) => [left?.text, right?.text]), [["key = 1", "key = 2"], ["old", undefined]]);
});

test("long unchanged runs are folded and nothing is lost in a fold", () => {
  const lines = Array.from({ length: 50 }, (_, i) => `line ${i}`);
  const { rows } = diffLines(lines.join("\n"), lines.with(25, "changed").join("\n"));
  const items = foldRows(rows, 3);
  assert.deepEqual(items.map((item) => item.fold?.length ?? 1), [22, ...Array(8).fill(1), 21]);
  assert.equal(items.flatMap((item) => item.fold ?? [item]).length, rows.length);
});

test("texts that have nothing in common end soon, with the middle shown whole", () => {
  const [a, b] = ["a", "b"].map((mark) => Array.from({ length: 5000 }, (_, i) => `${mark}${i}`).join("\n"));
  const made = diffLines(`same\n${a}\nend`, `same\n${b}\nend`);
  assert.equal(made.isCoarse, true);
  assert.equal(made.rows.length, 10002);
  assert.deepEqual([made.rows[0].kind, made.rows.at(-1).kind], ["same", "same"]);
});

test("more lines than a reader wants are cut, and it is said", () => {
  const made = diffLines("x\n".repeat(MAX_LINES + 5), "x\n".repeat(MAX_LINES));
  assert.equal(made.isCut, true);
  assert.equal(made.rows.length, MAX_LINES);
});
