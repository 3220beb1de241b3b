import assert from "node:assert/strict";
import { test } from "node:test";
import { parseRow, plainRow, styleOf } from "../../../src/dari/console/static/js/lib/sgr.js";

const shown = (row) => parseRow(row).map(({ text, width, style }) => [text, width, style.cls]);

test("a plain row is one run", () => assert.deepEqual(shown("$ ls -la"), [["$ ls -la", 8, ""]]));

test("colours of the sixteen are classes, and a reset ends them", () => {
  assert.deepEqual(shown("\x1b[0;31mred\x1b[0m plain \x1b[0;1;92;44mx"), [["red", 3, "f1"], [" plain ", 7, ""], ["x", 1, "b f10 g4"]]);
});

test("colours of the 256 and true colours are values", () => {
  assert.equal(styleOf("0;38;5;196").color, "#ff0000");
  assert.equal(styleOf("0;48;5;244").background, "#808080");
  assert.deepEqual(styleOf("0;38;2;1;2;3;48;2;255;254;253"), { cls: "", color: "#010203", background: "#fffefd" });
  assert.equal(styleOf("0;38;5;3").cls, "f3");
});

test("inverse swaps the colours, the terminal's own ones too", () => {
  assert.equal(styleOf("0;7").cls, "fi gi");
  assert.equal(styleOf("0;7;31").cls, "fi g1");
  assert.deepEqual(styleOf("0;7;38;2;1;2;3"), { cls: "fi", color: "", background: "#010203" });
});

test("underlines have their kinds", () => {
  assert.equal(styleOf("0;4").cls, "u1");
  assert.equal(styleOf("0;4:3;9").cls, "u3 s");
});

test("a wide character counts two columns and a cluster one", () => {
  assert.deepEqual(shown("a\x01한\x03\x02e\u0301\x03b"), [["a", 1, ""], ["한", 2, ""], ["e\u0301", 1, ""], ["b", 1, ""]]);
  assert.equal(plainRow("\x1b[0;1ma\x01한\x03\x1b[0mb"), "a한b");
});

test("characters beyond the first plane count once", () => assert.deepEqual(shown("𝄞x"), [["𝄞x", 2, ""]]));

test("nonsense is left out and breaks nothing", () => {
  assert.deepEqual(shown("a\x1b]0;title\x07b\x00c"), [["a", 1, ""], ["]0;title", 8, ""], ["b", 1, ""], ["c", 1, ""]]);
  for (const sgr of ["", "0", ";;;", "38", "38;5", "38;5;999", "38;2;1", "48;2;a;b;c", "9999", "4:99"]) styleOf(sgr);
  assert.equal(styleOf("38;5;999").color, "");
  assert.equal(styleOf("0;38;2;999;0;0").color, "");
});

test("markup stays text", () => assert.deepEqual(shown("<img src=x onerror=alert(1)>")[0][0], "<img src=x onerror=alert(1)>"));
