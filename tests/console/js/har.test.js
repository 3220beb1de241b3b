import assert from "node:assert/strict";
import test from "node:test";
import { MAX_ENTRY_CHARS, PART_CHARS, harPieces, splitHar } from "../../../src/dari/console/static/js/lib/har.js";

test("parts that came newest first make one file in the order of time", () => {
  const parts = [['{"n":4}', '{"n":3}'], ['{"n":2}', '{"n":1}']];
  const har = JSON.parse(harPieces(parts, "1.0").join(""));
  assert.deepEqual(har.log.entries.map((entry) => entry.n), [1, 2, 3, 4]);
  assert.deepEqual([har.log.version, har.log.creator.version], ["1.2", "1.0"]);
  assert.deepEqual(JSON.parse(harPieces([], "1").join("")).log.entries, []);
});

test("a long file is sent in parts that together have every entry once", () => {
  const entries = Array.from({ length: 100 }, (_, n) => ({ n, text: "x".repeat(20000) }));
  const { batches, tooLong, count } = splitHar(`\ufeff${JSON.stringify({ log: { entries } })}`);
  assert.ok(batches.length > 2 && batches.every(({ text }) => text.length < PART_CHARS * 1.1));
  assert.deepEqual(batches.flatMap(({ text }) => JSON.parse(text).log.entries.map((entry) => entry.n)), entries.map((entry) => entry.n));
  assert.deepEqual([tooLong, count], [0, 100]);
});

test("an entry that no message can carry is counted, and the rest is sent", () => {
  const entries = [{ text: "x".repeat(MAX_ENTRY_CHARS) }, { n: 1 }];
  const { batches, tooLong } = splitHar(JSON.stringify({ log: { entries } }));
  assert.deepEqual([batches.length, batches[0].count, tooLong], [1, 1, 1]);
});

test("what is no HAR is refused", () => {
  for (const wrong of ["nothing", "{}", '{"log":{"entries":3}}', "null"]) assert.throws(() => splitHar(wrong));
});
