// What a JSON value is, and what a reference of a schema names.

export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
export const has = (object, key) => Object.hasOwn(object, key);

export function typeName(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "number" && Number.isInteger(value) ? "integer" : typeof value;
}

/** What a local reference names; undefined where nothing is there, or it is in another document. */
export function lookUp(ref, root) {
  if (ref === "#") return root;
  if (typeof ref !== "string" || !ref.startsWith("#")) return undefined;
  if (!ref.startsWith("#/")) return Object.values(root?.$defs ?? {}).find((one) => one?.$anchor === ref.slice(1) || one?.$dynamicAnchor === ref.slice(1));
  let node = root;
  for (const part of ref.slice(2).split("/")) {
    let key = part;
    try {
      key = decodeURIComponent(part);
    } catch {}
    key = key.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof node !== "object" || node === null || !has(node, key)) return undefined;
    node = node[key];
  }
  return node;
}
