import assert from "node:assert/strict";
import { test } from "node:test";

import * as tree from "../../../src/dari/console/static/js/lib/json-tree.js";

const open = (value) => tree.childrenOf(tree.rootNode(value));

test("a node's children are made when they are asked for, at most a hundred at once", () => {
  assert.deepEqual(open({ a: 1, b: [2] }).map((node) => node.key), ["a", "b"]);
  assert.equal(open(Array(100).fill(0)).length, 100);
  for (const n of [101, 10000, 10001, 1000000, 3000000]) {
    const ranges = open(Array(n).fill(0));
    assert.ok(ranges.length <= 100 && ranges.every(tree.isRange), String(n));
    assert.deepEqual([ranges[0].from, ranges.at(-1).to], [0, n]);
  }
});

test("ranges of an object's members keep their order and names", () => {
  const value = Object.fromEntries(Array.from({ length: 250 }, (_, i) => [`k${i}`, i]));
  const [, second] = open(value);
  const members = tree.childrenOf(second);
  assert.deepEqual([members[0].key, members.length], ["k100", 100]);
  assert.equal(tree.pathOfNode(members[5]), "$.k105");
});

test("a path leads through ranges", () => {
  const root = tree.rootNode(Array.from({ length: 25000 }, (_, i) => ({ i })));
  let node = root;
  while (tree.isRange(node) || node === root) node = tree.childrenOf(node)[tree.childToward(node, 12345)];
  assert.equal(node.value.i, 12345);
  assert.equal(tree.pathOfNode(node), "$[12345]");
});

test("search finds names and values in order, and lets others work in between", () => {
  const value = { a: [{ name: "Needle" }, "x"], needle: 1, list: Array.from({ length: 9000 }, (_, i) => i) };
  const found = [...tree.search(value, "needle")];
  assert.deepEqual(found.filter(Boolean), [["a", 0, "name"], ["needle"]]);
  assert.ok(found.filter((one) => one === null).length >= 4);
});

test("search ends at 500 matches and does not fall into depth", () => {
  assert.equal([...tree.search(Array(100000).fill("x"), "x")].filter(Boolean).length, 500);
  let deep = "needle";
  for (let i = 0; i < 20000; i++) deep = [deep];
  assert.equal([...tree.search(deep, "needle")].filter(Boolean)[0].length, 20000);
});

test("only lists of objects are tables", () => {
  assert.deepEqual(tree.tableOf([{ a: 1 }, { b: 2 }]).columns, ["a", "b"]);
  for (const value of [[], [1], [{ a: 1 }, 2], { a: 1 }, "x", null, [[]], [{}]]) assert.equal(tree.tableOf(value), null);
  assert.deepEqual(tree.tablesOf({ total: 1, rows: [{ a: 1 }] }).map(([name]) => name), ["rows"]);
});
