import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.document = { createElement: () => ({}) };
const { pieceOf } = await import("../../../src/dari/console/static/js/parts/term-view.js");
const press = (key, held = {}) => pieceOf({ key, ...held });

test("named keys carry their modifiers", () => {
  assert.deepEqual(press("ArrowUp"), { key: "Up" });
  assert.deepEqual(press("Tab", { shiftKey: true }), { key: "S-Tab" });
  assert.deepEqual(press("F5", { ctrlKey: true, altKey: true }), { key: "C-M-F5" });
});

test("control and alt with a character are keys, plain characters are text input", () => {
  assert.deepEqual(press("c", { ctrlKey: true }), { key: "C-c" });
  assert.deepEqual(press("x", { altKey: true }), { key: "M-x" });
  assert.deepEqual(press(" ", { ctrlKey: true }), { key: "C-Space" });
  assert.equal(press("a"), null);
  assert.equal(press("ㅎ"), null);
});

test("what an input method, the clipboard or the system takes is left alone", () => {
  assert.equal(press("Process"), null);
  assert.equal(press("a", { isComposing: true, ctrlKey: true }), null);
  assert.equal(press("v", { ctrlKey: true }), null);
  assert.equal(press("M", { ctrlKey: true, shiftKey: true }), null);
  assert.equal(press("k", { metaKey: true }), null);
  assert.equal(press("@", { ctrlKey: true, altKey: true, getModifierState: (name) => name === "AltGraph" }), null);
});
