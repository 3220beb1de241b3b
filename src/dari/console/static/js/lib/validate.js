/** Checks a value against a JSON Schema (2020-12, and what older ones say differently). Bounded: a hostile schema ends early.
 *
 * A finding is {path, keyword, params}; its words are `schema.<keyword>` in the texts. */

import { has, isObject, lookUp, typeName } from "./json-value.js";

const MAX_DEPTH = 120;
const MAX_PATTERN_CHARS = 300;
const MAX_WAYS = 3e7;

/** What is wrong, at most `limit` findings. After `budget` steps the last one is `unfinished`. */
export function check(schema, value, { root = schema, limit = 100, budget = 300000 } = {}) {
  const state = { root, limit, left: budget, found: [] };
  try {
    visit(schema, value, [], state, 0);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    state.left = 0; // nested deeper than the stack
  }
  if (state.left <= 0 && state.found.length < limit) state.found.push({ path: [], keyword: "unfinished", params: {} });
  return state.found;
}

function fits(schema, value, state, depth) {
  const inner = { ...state, limit: 1, found: [] };
  visit(schema, value, [], inner, depth);
  state.left = inner.left;
  return !inner.found.length;
}

function visit(schema, value, path, state, depth) {
  if (state.found.length >= state.limit || --state.left <= 0 || depth > MAX_DEPTH) return;
  const report = (keyword, params = {}, at = path) => {
    if (state.found.length < state.limit) state.found.push({ path: at, keyword, params });
  };
  if (schema === false) return report("nothing");
  if (!isObject(schema)) return;
  const ref = schema.$ref ?? schema.$dynamicRef;
  if (ref !== undefined) {
    const target = lookUp(ref, state.root);
    if (target !== undefined) visit(target, value, path, state, depth + 1);
  }
  if (schema.nullable === true && value === null) return;
  if (!hasType(schema.type, value)) return report("type", { type: [schema.type].flat().join(" | "), got: brief(value) });
  if (has(schema, "const") && !same(schema.const, value)) report("const", { values: brief(schema.const), got: brief(value) });
  if (Array.isArray(schema.enum) && !schema.enum.some((one) => same(one, value)))
    report("enum", { values: schema.enum.slice(0, 12).map(brief).join(", ") + (schema.enum.length > 12 ? ", …" : ""), got: brief(value) });
  if (typeof value === "number") checkNumber(schema, value, report);
  else if (typeof value === "string") checkString(schema, value, report);
  else if (Array.isArray(value)) checkArray(schema, value, path, state, depth, report);
  else if (isObject(value)) checkObject(schema, value, path, state, depth, report);
  checkBranches(schema, value, path, state, depth, report);
}

function hasType(type, value) {
  if (type === undefined) return true;
  const name = typeName(value);
  return [type].flat().some((one) => typeof one !== "string" || one === name || (one === "number" && name === "integer"));
}

function checkNumber(s, value, report) {
  const low = s.exclusiveMinimum === true ? s.minimum : s.exclusiveMinimum;
  const high = s.exclusiveMaximum === true ? s.maximum : s.exclusiveMaximum;
  if (typeof low === "number" && value <= low) report("exclusiveMinimum", { sign: ">", n: low, got: value });
  else if (typeof s.minimum === "number" && value < s.minimum) report("minimum", { sign: "≥", n: s.minimum, got: value });
  if (typeof high === "number" && value >= high) report("exclusiveMaximum", { sign: "<", n: high, got: value });
  else if (typeof s.maximum === "number" && value > s.maximum) report("maximum", { sign: "≤", n: s.maximum, got: value });
  const times = s.multipleOf > 0 ? value / s.multipleOf : 0;
  if (Math.abs(times - Math.round(times)) > 1e-9 * Math.max(1, Math.abs(times))) report("multipleOf", { rule: `× ${s.multipleOf}`, got: value });
}

const FORMATS = {
  date: /^\d{4}-\d\d-\d\d$/,
  time: /^\d\d:\d\d(:\d\d(\.\d+)?)?(z|[+-]\d\d:?\d\d)?$/i,
  "date-time": /^\d{4}-\d\d-\d\d[t ]\d\d:\d\d(:\d\d(\.\d+)?)?(z|[+-]\d\d:?\d\d)$/i,
  email: /^[^\s@]+@[^\s@]+$/,
  uri: /^[a-z][a-z\d+.-]*:\S+$/i,
  url: /^[a-z][a-z\d+.-]*:\S+$/i,
  uuid: /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i,
  ipv4: /^((25[0-5]|2[0-4]\d|1?\d?\d)(\.|$)){4}$/,
};

function checkCount(what, low, high, got, report) {
  if (got < low) report(`min${what}`, { sign: "≥", n: low, got });
  if (got > high) report(`max${what}`, { sign: "≤", n: high, got });
}

function checkString(s, value, report) {
  const { minLength: low, maxLength: high } = s;
  if (typeof low === "number" || typeof high === "number") {
    const length = value.length > 100000 ? value.length : [...value].length;
    checkCount("Length", low, high, length, report);
  }
  const pattern = safePattern(s.pattern);
  if (pattern && value.length <= MAX_PATTERN_CHARS && !pattern.test(value)) report("pattern", { rule: s.pattern, got: brief(value) });
  const format = typeof s.format === "string" && has(FORMATS, s.format) ? FORMATS[s.format] : null;
  if (format && value.length < 10000 && !format.test(value)) report("format", { rule: s.format, got: brief(value) });
}

/** A pattern that cannot hang the page; null for others, which only the server checks. The ways to read a text count:
 *  each repeat has as many as characters (the begin without `^` too), each `?` and `|` two, with the steps back to it. */
export function safePattern(source) {
  if (typeof source !== "string" || source.length > MAX_PATTERN_CHARS) return null;
  const plain = source.replace(/\\./g, "x").replace(/\[[^\]]*\]/g, "x").replace(/\(\?/g, "(");
  if (/\)[*+{]/.test(plain) && /[*+{?|][^()]*\)|\([^)]*\(/.test(plain)) return null;
  const repeats = plain.split(/[*+]|\{\d*,/).length - (plain[0] === "^");
  const choices = plain.split(/[?|]/).length - 1;
  if (4 ** choices * MAX_PATTERN_CHARS ** repeats > MAX_WAYS || /\\\d/.test(source)) return null;
  try {
    return new RegExp(source, "u");
  } catch {
    return null;
  }
}

function checkArray(s, value, path, state, depth, report) {
  checkCount("Items", s.minItems, s.maxItems, value.length, report);
  if (s.uniqueItems === true && value.length <= 5000 && new Set(value.map(canonical)).size < value.length)
    report("uniqueItems", { rule: "uniqueItems", got: value.length });
  const first = Array.isArray(s.prefixItems) ? s.prefixItems : Array.isArray(s.items) ? s.items : [];
  const rest = Array.isArray(s.items) ? s.additionalItems : s.items;
  if (first.length || rest !== undefined)
    for (let i = 0; i < value.length && state.left > 0 && state.found.length < state.limit; i++)
      visit(i < first.length ? first[i] : rest, value[i], [...path, i], state, depth + 1);
  if (s.contains !== undefined) {
    const count = value.filter((one) => state.left > 0 && fits(s.contains, one, state, depth + 1)).length;
    if (state.left > 0 && (count < (s.minContains ?? 1) || count > s.maxContains)) report("contains", { rule: "contains", got: count });
  }
}

function checkObject(s, value, path, state, depth, report) {
  const names = Object.keys(value);
  for (const name of Array.isArray(s.required) ? s.required : [])
    if (typeof name === "string" && !has(value, name)) report("required", { name }, [...path, name]);
  checkCount("Properties", s.minProperties, s.maxProperties, names.length, report);
  const properties = isObject(s.properties) ? s.properties : {};
  const patterns = isObject(s.patternProperties) ? Object.entries(s.patternProperties).map(([p, sub]) => [safePattern(p), sub]) : [];
  for (const name of names) {
    if (state.left <= 0 || state.found.length >= state.limit) return;
    const at = [...path, name];
    const matching = patterns.filter(([pattern]) => !pattern || pattern.test(name.slice(0, MAX_PATTERN_CHARS)));
    if (has(properties, name)) visit(properties[name], value[name], at, state, depth + 1);
    for (const [pattern, sub] of matching) if (pattern) visit(sub, value[name], at, state, depth + 1);
    if (!has(properties, name) && !matching.length) {
      if (s.additionalProperties === false) report("additionalProperties", { name, names: Object.keys(properties).slice(0, 12).join(", ") }, at);
      else if (isObject(s.additionalProperties)) visit(s.additionalProperties, value[name], at, state, depth + 1);
    }
    if (s.propertyNames !== undefined && !fits(s.propertyNames, name, state, depth + 1)) report("propertyNames", { rule: "propertyNames", got: name }, at);
    const needs = s.dependentRequired?.[name];
    for (const other of Array.isArray(needs) ? needs : []) if (!has(value, other)) report("required", { name: other }, [...path, other]);
    const dependent = isObject(s.dependentSchemas) && has(s.dependentSchemas, name) ? s.dependentSchemas[name] : undefined;
    if (dependent !== undefined) visit(dependent, value, path, state, depth + 1);
  }
}

function checkBranches(s, value, path, state, depth, report) {
  for (const part of Array.isArray(s.allOf) ? s.allOf : []) visit(part, value, path, state, depth + 1);
  if (Array.isArray(s.anyOf) && s.anyOf.length && !s.anyOf.some((one) => fits(one, value, state, depth + 1))) explain("anyOf", s.anyOf);
  if (Array.isArray(s.oneOf) && s.oneOf.length) {
    const count = s.oneOf.filter((one) => fits(one, value, state, depth + 1)).length;
    if (count > 1 && state.left > 0) report("oneOfMany", { got: count });
    if (!count) explain("oneOf", s.oneOf);
  }
  if (s.not !== undefined && state.left > 0 && fits(s.not, value, state, depth + 1)) report("not", { got: brief(value) });
  if (s.if !== undefined) {
    const then = fits(s.if, value, state, depth + 1) ? s.then : s.else;
    if (then !== undefined) visit(then, value, path, state, depth + 1);
  }

  /** Of the branches that a value fails, the one it was most likely meant for says why. */
  function explain(keyword, branches) {
    if (state.left <= 0) return;
    const typed = branches.filter((one) => typeof one === "object" && one !== null && hasType((lookUp(one.$ref, state.root) ?? one)?.type, value));
    const meant = typed.filter((one) => sharesTag(lookUp(one.$ref, state.root) ?? one, value));
    const only = meant.length === 1 ? meant[0] : typed.length === 1 ? typed[0] : null;
    if (only) visit(only, value, path, state, depth + 1);
    else report(keyword, { n: branches.length, got: brief(value) });
  }
}

function sharesTag(schema, value) {
  if (!isObject(value) || !isObject(schema?.properties)) return false;
  return Object.entries(schema.properties).some(([name, s]) => isObject(s) && has(s, "const") && has(value, name) && same(s.const, value[name]));
}

function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical)}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
  return `{${members}}`;
}

const same = (a, b) => a === b || (typeof a === "object" && typeof b === "object" && canonical(a) === canonical(b));

function brief(value) {
  const text = typeof value === "object" && value !== null ? (Array.isArray(value) ? `[… ${value.length}]` : "{…}") : (JSON.stringify(value) ?? "");
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}
