import assert from "node:assert/strict";
import { test } from "node:test";

import * as schema from "../../../src/dari/console/static/js/lib/schema.js";
import { check, safePattern } from "../../../src/dari/console/static/js/lib/validate.js";

const kind = (s, root = s) => schema.fieldOf(s, root).kind;
const words = (s, value) => check(s, value).map((one) => `${schema.pathText(one.path)}:${one.keyword}`);

test("every plain type is a field of its kind", () => {
  for (const type of ["string", "number", "integer", "boolean", "array", "object"]) assert.equal(kind({ type }), type);
  assert.equal(kind({}), "json");
  assert.equal(kind({ enum: ["a", "b"] }), "enum");
  assert.equal(kind({ const: 3 }), "const");
  assert.equal(kind({ type: "null" }), "const");
  assert.equal(kind({ type: "array", items: { enum: ["a", "b"] }, uniqueItems: true }), "set");
});

test("a type is inferred where a server left it out", () => {
  assert.equal(kind({ properties: { a: {} } }), "object");
  assert.equal(kind({ items: { type: "string" } }), "array");
  assert.equal(kind({ minLength: 1 }), "string");
  assert.equal(kind({ minimum: 1 }), "number");
});

test("null beside one type makes the field nullable, in all four spellings", () => {
  for (const s of [
    { type: ["string", "null"] },
    { anyOf: [{ type: "string" }, { type: "null" }], default: null },
    { type: "string", nullable: true },
    { oneOf: [{ type: "string" }, { const: null }] },
  ]) {
    const field = schema.fieldOf(s, s);
    assert.deepEqual([field.kind, field.nullable], ["string", true]);
  }
});

test("two types are a choice, and so are branches with objects", () => {
  const field = schema.fieldOf({ type: ["string", "number"] }, {});
  assert.deepEqual(field.variants.map((one) => one.title), ["string", "number"]);
  assert.equal(kind({ anyOf: [{ type: "object", properties: { a: {} } }, { type: "string" }] }), "union");
});

test("branches that only restrict leave the field what it is", () => {
  assert.equal(kind({ type: "object", properties: { a: {}, b: {} }, anyOf: [{ required: ["a"] }, { required: ["b"] }] }), "object");
  assert.equal(kind({ type: "string", anyOf: [{ format: "ipv4" }, { format: "ipv6" }] }), "string");
});

test("branches of constants are one list of choices with their titles", () => {
  const field = schema.fieldOf({ oneOf: [{ const: "r", title: "Red" }, { const: "g", title: "Green" }] }, {});
  assert.deepEqual(field.options, [{ value: "r", label: "Red" }, { value: "g", label: "Green" }]);
});

test("references, also with escapes and siblings, are followed and merged", () => {
  const root = {
    properties: { a: { $ref: "#/$defs/x~1y", description: "mine" }, b: { $ref: "#odd" } },
    $defs: { "x/y": { type: "integer", description: "theirs" }, z: { $anchor: "odd", type: "boolean" } },
  };
  const field = schema.fieldOf(root.properties.a, root);
  assert.deepEqual([field.kind, field.description], ["integer", "mine"]);
  assert.equal(kind(root.properties.b, root), "boolean");
});

test("a reference to itself, to nothing or to another document is edited as JSON and named", () => {
  const root = { $defs: { loop: { $ref: "#/$defs/loop" } } };
  for (const ref of ["#/$defs/loop", "#/$defs/none", "https://example.com/schema"]) {
    const field = schema.fieldOf({ $ref: ref }, root);
    assert.deepEqual([field.kind, field.note, field.reference], ["json", "reference", ref]);
  }
});

test("a recursive schema costs one level at a time and a bounded beginning", () => {
  const root = { $ref: "#/$defs/node", $defs: { node: { type: "object", required: ["next"], properties: { next: { $ref: "#/$defs/node" } } } } };
  assert.equal(schema.fieldOf(root, root).fields[0].name, "next");
  assert.ok(JSON.stringify(schema.initialValue(root, root)).length < 200);
});

test("allOf joins properties and requirements", () => {
  const s = { allOf: [{ type: "object", properties: { n: { type: "integer", minimum: 1 } }, required: ["n"] }, { properties: { n: { minimum: 5 }, m: {} } }] };
  const field = schema.fieldOf(s, s);
  assert.deepEqual(field.fields.map((one) => [one.name, one.required]), [["n", true], ["m", false]]);
  assert.deepEqual(words(s, { n: 3 }), ["n:minimum"]);
});

test("a value finds its branch by the tag that differs", () => {
  const cat = { type: "object", properties: { kind: { const: "cat" }, lives: { type: "integer" } }, required: ["kind"] };
  const dog = { type: "object", properties: { kind: { const: "dog" } }, required: ["kind"] };
  const field = schema.fieldOf({ oneOf: [cat, dog] }, {});
  assert.equal(field.tag, "kind");
  assert.deepEqual(field.variants.map((one) => one.title), ["cat", "dog"]);
  assert.equal(schema.variantOf(field, { kind: "dog", lives: "x" }, {}), 1);
});

test("maps and free members have a field for what is added", () => {
  assert.deepEqual(schema.fieldOf({ type: "object", additionalProperties: { type: "string" } }, {}).extra, { type: "string" });
  assert.deepEqual(schema.fieldOf({ type: "object" }, {}).extra, {});
  assert.equal(schema.fieldOf({ type: "object", properties: {} }, {}).extra, null);
  assert.equal(schema.fieldOf({ type: "object", additionalProperties: false }, {}).extra, null);
});

test("a form begins with constants, false, and what is required below", () => {
  const s = { type: "object", required: ["a", "b", "c", "d", "e"], properties: { a: { type: "string" }, b: { type: "boolean" }, c: { const: 1 }, d: { type: "object", required: ["x"], properties: { x: { default: 7 } } }, e: { type: "array" }, f: { default: 1 } } };
  assert.deepEqual(schema.initialValue(s, s), { b: false, c: 1, d: { x: 7 }, e: [] });
  assert.equal(schema.initialValue(s, s, { all: true }).f, 1);
});

test("schemas that are too large, too deep or no schema get no form", () => {
  let deep = {};
  for (let i = 0; i < 5000; i++) deep = { properties: { a: deep } };
  assert.equal(schema.whyNoForm(deep), "depth");
  const wide = { properties: Object.fromEntries(Array.from({ length: 50000 }, (_, i) => [`p${i}`, { type: "string" }])) };
  assert.equal(schema.whyNoForm(wide), "size");
  for (const odd of [null, [], "x", 3, undefined]) assert.equal(schema.whyNoForm(odd), "shape");
  assert.equal(schema.whyNoForm({ type: "object" }), "");
});

test("names like __proto__ are members as any other", () => {
  const s = JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"string"}}}');
  assert.deepEqual(schema.fieldOf(s, s).fields.map((one) => one.name), ["__proto__", "constructor"]);
  const value = schema.setIn({}, ["__proto__"], "x");
  assert.equal(JSON.stringify(value), '{"__proto__":"x"}');
  assert.equal({}.polluted, undefined);
  assert.deepEqual(words(s, {}), []);
});

test("values are read and changed by path, and what did not change is shared", () => {
  const before = { a: [{ b: 1 }, { b: 2 }], c: {} };
  const after = schema.setIn(before, ["a", 1, "b"], 3);
  assert.deepEqual(after, { a: [{ b: 1 }, { b: 3 }], c: {} });
  assert.equal(after.c, before.c);
  assert.deepEqual(schema.setIn(before, ["a", 0], undefined).a, [{ b: 2 }]);
  assert.deepEqual(Object.keys(schema.renameIn({ x: 1, y: 2 }, [], "x", "z")), ["z", "y"]);
  assert.equal(schema.getIn(before, ["a", 7, "b"]), undefined);
});

test("typed text becomes a number only where it is one, exactly", () => {
  const number = { kind: "number" };
  assert.equal(schema.fromText(number, " 1.5 "), 1.5);
  for (const text of ["1x", "", "0x10", "Infinity", "12345678901234567890"]) assert.equal(schema.fromText(number, text), text);
  assert.equal(schema.fromText({ kind: "string" }, "5"), "5");
});

test("what is kept has no member that looks like a secret", () => {
  const s = { properties: { note: { writeOnly: true }, a: { properties: { pin: { format: "password" } } } } };
  const { value, left } = schema.withoutSecrets(s, { apiKey: "k", note: "n", a: { pin: 1, b: [{ password: "p", c: 2 }] } });
  assert.deepEqual(value, { a: { b: [{ c: 2 }] } });
  assert.equal(left, 4);
});

test("every finding names its place", () => {
  const s = {
    type: "object", required: ["name"], additionalProperties: false,
    properties: { name: { type: "string", minLength: 2 }, n: { type: "integer", minimum: 1 }, list: { type: "array", items: { enum: ["a"] }, maxItems: 1 } },
  };
  assert.deepEqual(words(s, { n: 0, list: ["b", "a"], x: 1 }).sort(), ["list:maxItems", "list[0]:enum", "n:minimum", "name:required", "x:additionalProperties"]);
  assert.deepEqual(words(s, { name: "ab", n: 1.5 }), ["n:type"]);
  assert.deepEqual(words(s, []), [":type"]);
});

test("keywords of 2020-12 and of older drafts are checked", () => {
  const bad = [
    [{ exclusiveMinimum: 3 }, 3], [{ minimum: 3, exclusiveMinimum: true }, 3], [{ multipleOf: 0.1 }, 0.25], [{ const: { a: 1 } }, { a: 2 }],
    [{ pattern: "^a+$" }, "b"], [{ format: "email" }, "x"], [{ uniqueItems: true }, [{ a: 1, b: 2 }, { b: 2, a: 1 }]], [{ contains: { const: 1 } }, [2]],
    [{ prefixItems: [{ type: "string" }], items: false }, ["a", 1]], [{ items: [{ type: "string" }], additionalItems: false }, ["a", 1]],
    [{ propertyNames: { maxLength: 1 } }, { ab: 1 }], [{ dependentRequired: { a: ["b"] } }, { a: 1 }], [{ not: { type: "string" } }, "x"],
    [{ if: { const: 1 }, then: false }, 1], [{ oneOf: [{ type: "number" }, { minimum: 1 }] }, 2], [{ anyOf: [{ const: 1 }, { const: 2 }] }, 3],
    [{ patternProperties: { "^n": { type: "number" } } }, { nn: "x" }], [{ minProperties: 1 }, {}], [false, 1], [{ $ref: "#/$defs/a", $defs: { a: { type: "string" } } }, 1],
  ];
  for (const [s, value] of bad) assert.ok(check(s, value).length, JSON.stringify(s));
  const good = [[{ multipleOf: 0.1 }, 0.3], [{ type: "number" }, 3], [{ maxLength: 1 }, "😀"], [true, 1], [{ nullable: true, type: "string" }, null], [{ enum: [{ a: [1] }] }, { a: [1] }]];
  for (const [s, value] of good) assert.deepEqual(check(s, value), [], JSON.stringify(s));
});

test("of several branches the one that was meant says what is wrong", () => {
  const s = { oneOf: [{ type: "object", properties: { kind: { const: "a" }, n: { type: "integer" } } }, { type: "object", properties: { kind: { const: "b" } } }] };
  assert.deepEqual(words(s, { kind: "a", n: "x" }), ["n:type"]);
  assert.deepEqual(words({ anyOf: [{ type: "string", minLength: 3 }, { type: "null" }] }, "ab"), [":minLength"]);
});

test("a hostile schema or value ends the check early and says so", () => {
  assert.deepEqual(check({ $ref: "#" }, 1), []);
  const bomb = { $defs: {} };
  for (let i = 0; i < 30; i++) bomb.$defs[`a${i}`] = { anyOf: [{ $ref: `#/$defs/a${i + 1}` }, { $ref: `#/$defs/a${i + 1}` }] };
  bomb.$defs.a30 = false;
  bomb.$ref = "#/$defs/a0";
  assert.equal(check(bomb, 1, { budget: 20000 }).at(-1).keyword, "unfinished");
  let deep = [];
  for (let i = 0; i < 100000; i++) deep = [deep];
  assert.equal(check({ const: [] }, deep).at(-1).keyword, "unfinished");
});

test("a pattern that could hang the page is left to the server", () => {
  for (const hostile of ["(a+)+$", "(a|a)*b", "^(([a-z])+.)+$", "(?:x*)*", ".*.*.*.*=", "a*a*a*$", "^(a?b?)+$", `^${"a?".repeat(26)}$`, "(a)\\1+", "["]) assert.equal(safePattern(hostile), null, hostile);
  for (const plain of ["^[a-z]+$", "^\\d{4}-\\d{2}$", "^(a|b)$", "^(?:www\\.)?x", "^[^@ ]+@[^@ ]+\\.[a-z]+$"]) assert.ok(safePattern(plain), plain);
});

test("a path reads as a person would write it", () => {
  assert.equal(schema.pathText(["a", 0, "b c", "값"]), 'a[0]["b c"].값');
  assert.equal(schema.pathText(["a", 1], "$"), "$.a[1]");
});
