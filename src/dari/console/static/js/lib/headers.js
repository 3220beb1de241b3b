// Headers as lines of text that a person edits, and what of them changed.

/** Pairs [name, value] of "Name: value" lines. Throws {line} for one without a name or colon. */
export function parseHeaders(text) {
  const pairs = [];
  text.split(/\r\n|\n|\r/).forEach((line, index) => {
    if (!line.trim()) return;
    const at = line.indexOf(":");
    if (at < 1) throw Object.assign(new Error(line), { line: index + 1 });
    pairs.push([line.slice(0, at).trim(), line.slice(at + 1).trim()]);
  });
  return pairs;
}

export function formatHeaders(pairs) {
  return pairs.map(([name, value]) => `${name}: ${value}`).join("\n");
}

/** {set_headers, remove_headers} that turn one block into the other, without what is empty. Throws {header} where a header
 *  that stands there more than once was changed: tools set a header by its name. */
export function headerEdits(oldPairs, newPairs) {
  const [before, after] = [group(oldPairs), group(newPairs)];
  const edits = {};
  for (const key of before.keys()) if (!after.has(key)) (edits.remove_headers ??= []).push(key);
  for (const [key, { name, values }] of after) {
    if (isSame(before.get(key)?.values, values)) continue;
    if (values.length > 1) refuse(name);
    (edits.set_headers ??= {})[name] = values[0];
  }
  return edits;
}

function group(pairs) {
  const found = new Map();
  for (const [name, value] of pairs) {
    const key = name.toLowerCase();
    if (!found.has(key)) found.set(key, { name, values: [] });
    found.get(key).values.push(value);
  }
  return found;
}

const isSame = (a, b) => a?.length === b.length && a.every((value, i) => value === b[i]);

function refuse(name) {
  throw Object.assign(new Error(name), { header: name });
}
