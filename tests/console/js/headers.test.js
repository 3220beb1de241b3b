import assert from "node:assert/strict";
import test from "node:test";
import {
  formatHeaders, headerEdits, parseHeaders,
} from "../../../src/dari/console/static/js/lib/headers.js";

test("lines become pairs and come back as they were", () => {
  const pairs = parseHeaders("Host: a.test\r\n\nX-Time: 10:30\nX-Empty:");
  assert.deepEqual(pairs, [["Host", "a.test"], ["X-Time", "10:30"], ["X-Empty", ""]]);
  assert.equal(formatHeaders(pairs), "Host: a.test\nX-Time: 10:30\nX-Empty: ");
});

test("a line without a name is named by its number", () => {
  for (const wrong of ["no colon", ": value"]) {
    assert.throws(() => parseHeaders(`A: 1\n${wrong}`), (error) => error.line === 2);
  }
});

test("only what changed is sent, so that hidden secrets stay as they were", () => {
  const old = [["Authorization", "<redacted>"], ["Accept", "*/*"], ["X-Old", "1"]];
  const edited = [["authorization", "<redacted>"], ["Accept", "text/html"], ["X-New", "2"]];
  assert.deepEqual(headerEdits(old, edited), { remove_headers: ["x-old"], set_headers: { Accept: "text/html", "X-New": "2" } });
  assert.deepEqual(headerEdits(old, old), {});
});

test("a repeated header may stay or go, and a change of it is refused by name", () => {
  const old = [["Set-Cookie", "a=1"], ["Set-Cookie", "b=2"]];
  assert.deepEqual(headerEdits(old, old), {});
  assert.deepEqual(headerEdits(old, []), { remove_headers: ["set-cookie"] });
  assert.deepEqual(headerEdits(old, [["Set-Cookie", "a=1"]]), { set_headers: { "Set-Cookie": "a=1" } });
  assert.throws(() => headerEdits(old, [["Set-Cookie", "a=9"], ["Set-Cookie", "b=2"]]), (error) => error.header === "Set-Cookie");
});
