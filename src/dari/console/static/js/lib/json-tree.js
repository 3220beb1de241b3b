/** A JSON value as a tree that is made where it is looked at: children in hundreds, long lists in ranges of them. */

import { pathText } from "./schema.js";

const PAGE = 100;
const MAX_MATCHES = 500;
export const LONG_TEXT = 200;

/** A node: {value, key, parent, from, to}; `from` and `to` are set for a range of a list or of an object's members. */
export const rootNode = (value) => ({ value, key: null, parent: null, from: 0, to: null });

const isContainer = (value) => typeof value === "object" && value !== null;

function keysOf(node) {
  for (let at = node; ; at = at.parent) {
    if (at.keys) return at.keys;
    if (at.to === null) return (at.keys = Array.isArray(at.value) ? null : Object.keys(at.value));
  }
}

export const sizeOf = (value) => (Array.isArray(value) ? value.length : Object.keys(value).length);
export const isRange = (node) => node.to !== null;
export const canOpen = (node) =>
  isContainer(node.value) ? isRange(node) || sizeOf(node.value) > 0 : typeof node.value === "string" && node.value.length > LONG_TEXT;

/** The nodes right below: members, or ranges where there are more than a hundred. */
export function childrenOf(node) {
  if (!isContainer(node.value)) return [];
  const keys = keysOf(node);
  const end = node.to ?? (keys ? keys.length : node.value.length);
  const count = end - node.from;
  const step = count <= PAGE ? 1 : PAGE ** Math.ceil(Math.log(count) / Math.log(PAGE) - 1e-9 - 1);
  const children = [];
  for (let i = node.from; i < end; i += step) {
    if (step === 1) {
      const key = keys ? keys[i] : i;
      children.push({ value: node.value[key], key, parent: node, from: 0, to: null });
    } else children.push({ value: node.value, key: null, parent: node, from: i, to: Math.min(i + step, end) });
  }
  return children;
}

/** Keys from the root to a node. */
export function pathOf(node) {
  const path = [];
  for (let at = node; at; at = at.parent) if (at.key !== null) path.unshift(at.key);
  return path;
}

export const pathOfNode = (node) => pathText(pathOf(node), "$");

/** Which child of a node leads to a path of keys. */
export function childToward(node, key) {
  const keys = keysOf(node);
  const index = keys ? keys.indexOf(key) : key;
  return childrenOf(node).findIndex((child) => (isRange(child) ? index >= child.from && index < child.to : child.key === key));
}

/** Paths of members whose name or value has the text, as they come; yields null from time to time, to let others work. */
export function* search(value, query) {
  const wanted = query.toLowerCase();
  const stack = [{ value, key: null, parent: null }];
  let steps = 0;
  let found = 0;
  while (stack.length && found < MAX_MATCHES) {
    const at = stack.pop();
    if (++steps % 2000 === 0) yield null;
    const text = isContainer(at.value) ? "" : String(at.value);
    if ((typeof at.key === "string" && at.key.toLowerCase().includes(wanted)) || (text && text.toLowerCase().includes(wanted))) {
      found++;
      yield pathOf({ ...at });
    }
    if (!isContainer(at.value)) continue;
    const keys = Array.isArray(at.value) ? null : Object.keys(at.value);
    for (let i = (keys ?? at.value).length - 1; i >= 0; i--) {
      const key = keys ? keys[i] : i;
      stack.push({ value: at.value[key], key, parent: at });
    }
  }
}

/** Columns and rows of a list of objects, for a table; null where it is none. */
export function tableOf(value, maxColumns = 30) {
  const rows = Array.isArray(value) ? value : null;
  if (!rows || !rows.length || !rows.slice(0, 1000).every((row) => isContainer(row) && !Array.isArray(row))) return null;
  const columns = new Set();
  for (const row of rows.slice(0, 200)) for (const key of Object.keys(row)) if (columns.size < maxColumns) columns.add(key);
  return columns.size ? { columns: [...columns], rows } : null;
}

/** The lists of objects in a result: itself, or its members, as [name, table]. */
export function tablesOf(value) {
  const own = tableOf(value);
  if (own) return [["", own]];
  if (!isContainer(value) || Array.isArray(value)) return [];
  return Object.entries(value)
    .slice(0, 50)
    .flatMap(([name, one]) => {
      const table = tableOf(one);
      return table ? [[name, table]] : [];
    });
}
