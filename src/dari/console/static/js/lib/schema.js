/** JSON Schema as a form sees it: what kind of field a schema is and what is below it, one level at a time.
 *
 * Nothing here follows a schema further than one field, so a recursive one costs no more than a flat one. */

import { has, isObject, lookUp, typeName } from "./json-value.js";
import { check } from "./validate.js";

const MAX_NODES = 20000;
const MAX_DEPTH = 60;
const MAX_MERGES = 60;
const MAX_VARIANTS = 50;
export const MAX_OPTIONS = 1000;
export const MAX_FORM_DEPTH = 8;

const LONG_TEXT = /content|text|body|code|quer(y|ies)|prompt|message|html|css|sql|script|patch|diff|instruction|note/i;
const SECRET = /passw|secret|token|api_?-?key|authorization|credential|cookie|private_?-?key/i;
const OBJECT_WORDS = ["properties", "additionalProperties", "patternProperties", "required", "propertyNames"];
const ARRAY_WORDS = ["items", "prefixItems", "minItems", "maxItems", "contains"];
const STRING_WORDS = ["pattern", "minLength", "maxLength", "format", "contentEncoding"];
const NUMBER_WORDS = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];

export const isSecretName = (name) => SECRET.test(String(name));

/** Why no form is made of a schema: "size", "depth", "shape", or "" when one can be. */
export function whyNoForm(schema) {
  if (!isObject(schema)) return "shape";
  const stack = [[schema, 0]];
  let nodes = 0;
  while (stack.length) {
    const [node, depth] = stack.pop();
    if (depth > MAX_DEPTH) return "depth";
    const below = Object.values(node);
    nodes += below.length + 1;
    if (nodes > MAX_NODES) return "size";
    for (const value of below) if (typeof value === "object" && value !== null) stack.push([value, depth + 1]);
  }
  return "";
}

/** The schema without `$ref` and `allOf`: what they name is merged in. `unresolved` is a reference that leads nowhere. */
export function resolve(schema, root) {
  let merges = 0;
  const flatten = (node, seen) => {
    if (node === false) return { not: {} };
    if (!isObject(node) || ++merges > MAX_MERGES) return {};
    const { $ref, $dynamicRef, allOf, ...own } = node;
    let result = own;
    const ref = $ref ?? $dynamicRef;
    if (ref !== undefined) {
      const target = lookUp(ref, root);
      if (target === undefined || seen.includes(ref)) return { ...own, unresolved: String(ref) };
      result = merge(result, flatten(target, [...seen, ref]));
    }
    for (const part of Array.isArray(allOf) ? allOf : []) result = merge(result, flatten(part, seen));
    return result;
  };
  return flatten(schema, []);
}

/** Both schemas at once, as a form needs it; what else both have is the first one's (validation sees the original). */
function merge(first, second) {
  const result = { ...first };
  for (const [key, value] of Object.entries(second)) {
    if (key === "__proto__") continue;
    const there = has(result, key) ? result[key] : undefined;
    if (there === undefined) result[key] = value;
    else if (key === "properties" && isObject(there) && isObject(value)) result[key] = mergeProperties(there, value);
    else if (key === "required" && Array.isArray(there) && Array.isArray(value)) result[key] = [...new Set([...there, ...value])];
  }
  return result;
}

function mergeProperties(first, second) {
  const joined = new Map(Object.entries(first));
  for (const [name, schema] of Object.entries(second)) joined.set(name, joined.has(name) ? { allOf: [joined.get(name), schema] } : schema);
  return Object.fromEntries(joined);
}

/** One field of a form. `kind` is const, enum, set, string, number, integer, boolean, object, array, union or json. */
export function fieldOf(schema, root, name = "", nullable = false) {
  const s = resolve(schema, root);
  const field = {
    kind: "json",
    schema: s,
    note: "",
    nullable: nullable || s.nullable === true,
    title: typeof s.title === "string" ? s.title : "",
    description: typeof s.description === "string" ? s.description : "",
    default: s.default,
    deprecated: s.deprecated === true,
  };
  if (s.unresolved) return { ...field, note: "reference", reference: s.unresolved };
  if (has(s, "const")) return { ...field, kind: "const", value: s.const };
  if (Array.isArray(s.enum) && s.enum.length)
    return enumField(
      field,
      s.enum.map((value, i) => ({ value, label: enumName(s, i) })),
    );
  const branches = [s.oneOf, s.anyOf].find((list) => Array.isArray(list) && list.length);
  if (branches && branches.length <= MAX_VARIANTS) {
    const joined = unionField(field, branches, root, name);
    if (joined) return joined;
  } else if (branches) return { ...field, note: "variants" };
  const types = typesOf(s).filter((type) => type !== "null");
  if (typesOf(s).includes("null")) field.nullable = true;
  if (types.length > 1) {
    const variants = types.map((type) => ({ title: type, schema: { ...s, type, title: undefined, description: undefined } }));
    return { ...field, kind: "union", variants, tag: "" };
  }
  if (!types.length) return field.nullable ? { ...field, kind: "const", value: null, nullable: false } : field;
  return typedField(field, types[0], root, name);
}

function typedField(field, type, root, name) {
  const s = field.schema;
  if (type === "string") {
    const isSecret = s.format === "password" || s.writeOnly === true || isSecretName(name);
    const isLong = !isSecret && !s.format && (s.maxLength > 200 || (!(s.maxLength <= 200) && LONG_TEXT.test(name)));
    return { ...field, kind: "string", isSecret, isLong, format: typeof s.format === "string" ? s.format : "" };
  }
  if (type === "array") {
    const items = isObject(s.items) ? fieldOf(s.items, root) : null;
    if (items?.kind === "enum" && s.uniqueItems === true && items.options.length <= 50) return { ...field, kind: "set", options: items.options };
    const first = Array.isArray(s.prefixItems) ? s.prefixItems : Array.isArray(s.items) ? s.items : [];
    const rest = Array.isArray(s.items) ? s.additionalItems : s.items;
    return {
      ...field,
      kind: "array",
      itemAt: (i) => (i < first.length ? first[i] : (rest ?? {})),
      isFixed: rest === false,
      first: first.length,
    };
  }
  if (type === "object") {
    const required = new Set(Array.isArray(s.required) ? s.required : []);
    const properties = isObject(s.properties) ? s.properties : {};
    const fields = Object.entries(properties).map(([key, schema]) => ({ name: key, schema, required: required.has(key) }));
    for (const key of required) if (typeof key === "string" && !has(properties, key)) fields.push({ name: key, schema: {}, required: true });
    const patterned = isObject(s.patternProperties) ? Object.values(s.patternProperties)[0] : undefined;
    const more = s.additionalProperties ?? patterned;
    const extra = isObject(more) ? more : (patterned ?? (more === true || (more !== false && !fields.length && !isObject(s.properties)) ? {} : null));
    return { ...field, kind: "object", fields, extra };
  }
  return { ...field, kind: ["number", "integer", "boolean"].includes(type) ? type : "json" };
}

function enumField(field, options) {
  const nullable = field.nullable || options.some((one) => one.value === null);
  const rest = options.filter((one) => one.value !== null);
  if (rest.length > MAX_OPTIONS) return { ...field, note: "options" };
  if (!rest.length) return { ...field, kind: "const", value: null };
  return { ...field, kind: "enum", options: rest, nullable };
}

function enumName(schema, i) {
  const names = schema.enumNames ?? schema["x-enumNames"] ?? schema["x-enum-varnames"];
  return Array.isArray(names) && typeof names[i] === "string" ? names[i] : "";
}

/** A choice of schemas; null where the branches only restrict what the schema itself says. */
function unionField(field, branches, root, name) {
  const { oneOf, anyOf, ...own } = field.schema;
  const flat = branches.map((branch) => resolve(branch, root));
  const real = flat.filter((s) => !(s.type === "null" || (has(s, "const") && s.const === null)));
  if (real.length < flat.length) field.nullable = true;
  const single = (s) => (has(s, "const") ? [s.const] : Array.isArray(s.enum) ? s.enum : null);
  if (real.length && real.every(single))
    return enumField(
      field,
      real.flatMap((s) => single(s).map((value) => ({ value, label: has(s, "const") && typeof s.title === "string" ? s.title : "" }))),
    );
  const [type, ...others] = typesOf(own);
  const says = type === "object" ? ["properties", "additionalProperties", "oneOf", "anyOf"] : ["enum", "const", "type", "items", "oneOf", "anyOf"];
  if (type && !others.length && real.every((s) => !s.unresolved && !says.some((word) => has(s, word)))) return null;
  const schemas = real.map((s) => merge(s, own));
  if (schemas.length === 1) {
    const only = fieldOf(schemas[0], root, name, field.nullable);
    return {
      ...only,
      title: field.title || only.title,
      description: field.description || only.description,
      default: field.default ?? only.default,
    };
  }
  const tag = field.schema.discriminator?.propertyName ?? commonTag(schemas, root);
  const variants = schemas.map((s, i) => ({ schema: s, title: variantTitle(s, root, tag, i) }));
  return { ...field, kind: "union", variants, tag: typeof tag === "string" ? tag : "" };
}

/** The property that is a different constant in every branch. */
function commonTag(schemas, root) {
  const first = isObject(schemas[0]?.properties) ? Object.keys(schemas[0].properties) : [];
  return first.find((key) => schemas.every((s) => tagValue(s, root, key) !== undefined)) ?? "";
}

function tagValue(schema, root, key) {
  if (!key || !isObject(schema.properties) || !has(schema.properties, key)) return undefined;
  const s = resolve(schema.properties[key], root);
  return has(s, "const") ? s.const : Array.isArray(s.enum) && s.enum.length === 1 ? s.enum[0] : undefined;
}

function variantTitle(schema, root, tag, i) {
  const value = tagValue(schema, root, tag);
  if (typeof schema.title === "string" && schema.title) return schema.title;
  return value !== undefined ? String(value) : typesOf(schema).join(" | ") || `${i + 1}`;
}

export function typesOf(s) {
  if (Array.isArray(s.type)) return s.type.filter((type) => typeof type === "string");
  if (typeof s.type === "string") return [s.type];
  if (OBJECT_WORDS.some((word) => has(s, word))) return ["object"];
  if (ARRAY_WORDS.some((word) => has(s, word))) return ["array"];
  if (STRING_WORDS.some((word) => has(s, word))) return ["string"];
  return NUMBER_WORDS.some((word) => has(s, word)) ? ["number"] : [];
}

/** Which branch of a union a value is of. */
export function variantOf(field, value, root) {
  if (field.tag && isObject(value) && has(value, field.tag)) {
    const tagged = field.variants.findIndex((one) => tagValue(one.schema, root, field.tag) === value[field.tag]);
    if (tagged >= 0) return tagged;
  }
  if (value === undefined) return 0;
  const fits = field.variants.findIndex((one) => !check(one.schema, value, { root, limit: 1, budget: 5000 }).length);
  if (fits >= 0) return fits;
  return Math.max(
    0,
    field.variants.findIndex((one) => typesOf(one.schema).includes(typeName(value))),
  );
}

/** What a form starts with: required parts that have only one beginning, and every default where `all` is set. */
export function initialValue(schema, root, { all = false, depth = 0, name = "" } = {}) {
  const field = fieldOf(schema, root, name);
  if (field.default !== undefined) return structuredClone(field.default);
  if (field.kind === "const") return field.value;
  if (field.kind === "boolean") return false;
  if (field.kind === "array" || field.kind === "set") return [];
  if (field.kind === "union" && depth < MAX_FORM_DEPTH) return initialValue(field.variants[0].schema, root, { all, depth: depth + 1 });
  if (field.kind !== "object" || depth >= MAX_FORM_DEPTH) return undefined;
  const made = [];
  for (const one of field.fields) {
    const wanted = one.required || (all && isObject(one.schema) && one.schema.default !== undefined);
    const value = wanted ? initialValue(one.schema, root, { all, depth: depth + 1, name: one.name }) : undefined;
    if (value !== undefined) made.push([one.name, value]);
  }
  return Object.fromEntries(made);
}

export function getIn(value, path) {
  for (const key of path) {
    if (typeof value !== "object" || value === null || !has(value, key)) return undefined;
    value = value[key];
  }
  return value;
}

/** The value with another one at `path`; `undefined` takes the member or the item away. Shares what did not change. */
export function setIn(value, path, next) {
  if (!path.length) return next;
  const [key, ...rest] = path;
  const below = setIn(getIn(value, [key]), rest, next);
  if (typeof key === "number") {
    const list = Array.isArray(value) ? [...value] : [];
    if (below === undefined) list.splice(key, 1);
    else list[key] = below;
    return list;
  }
  const entries = isObject(value) ? Object.entries(value) : [];
  const at = entries.findIndex(([name]) => name === key);
  if (below === undefined) return Object.fromEntries(entries.filter(([name]) => name !== key));
  if (at < 0) entries.push([key, below]);
  else entries[at] = [key, below];
  return Object.fromEntries(entries);
}

/** The value with one member called differently, in the same place. */
export function renameIn(value, path, from, to) {
  const entries = Object.entries(getIn(value, path) ?? {}).map(([name, one]) => [name === from ? to : name, one]);
  return setIn(value, path, Object.fromEntries(entries));
}

/** What typed text is as a value of a field: text that cannot be read as a number stays text, so that validation can name it. */
export function fromText(field, text) {
  if (field.kind === "string") return text;
  const trimmed = text.trim();
  const number = Number(trimmed);
  const isNumber = trimmed !== "" && Number.isFinite(number) && /^[-+.\deE]+$/.test(trimmed);
  return isNumber && !(Number.isInteger(number) && !Number.isSafeInteger(number)) ? number : text;
}

/** The value without members that look like secrets, and how many those were: for what is kept or put into a link. */
export function withoutSecrets(schema, value) {
  let left = 0;
  const strip = (node, at, depth) => {
    if (Array.isArray(node)) return depth > 20 ? [] : node.map((one) => strip(one, undefined, depth + 1));
    if (!isObject(node)) return node;
    const properties = isObject(at) && isObject(at.properties) ? at.properties : {};
    const kept = Object.entries(node).filter(([name]) => {
      const s = has(properties, name) ? properties[name] : {};
      const isSecret = isSecretName(name) || s?.format === "password" || s?.writeOnly === true;
      left += isSecret ? 1 : 0;
      return !isSecret;
    });
    return Object.fromEntries(
      kept.map(([name, one]) => [name, depth > 20 ? null : strip(one, has(properties, name) ? properties[name] : undefined, depth + 1)]),
    );
  };
  return { value: strip(value, schema, 0), left };
}

/** `a.b[0]["odd name"]`: how a person names a place in a value. */
export function pathText(path, start = "") {
  return path.reduce((text, key) => {
    if (typeof key === "number") return `${text}[${key}]`;
    if (!/^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(key)) return `${text}[${JSON.stringify(key)}]`;
    return text ? `${text}.${key}` : key;
  }, start);
}
