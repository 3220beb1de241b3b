/** JSON as a person types it: where an error is, and numbers that JavaScript would change. */

/** {value}, or {error: {line, column, reason}}; `reason` is the engine's, or "unsafe" with the number in `text`. */
export function parseJson(text) {
  let unsafe = "";
  const keep = (key, value, context) => {
    if (typeof value === "number" && context?.source && isChanged(value, context.source)) unsafe ||= context.source;
    return value;
  };
  try {
    const value = JSON.parse(text, text.length < 200000 ? keep : undefined);
    if (!unsafe) return { value };
    return { error: { ...positionOf(text, text.indexOf(unsafe)), reason: "unsafe", text: unsafe } };
  } catch (error) {
    return { error: { ...locate(text, error.message), reason: error.message.replace(/ (in JSON )?at (position|line) .*$/s, "") } };
  }
}

const isChanged = (value, source) => /^-?\d+$/.test(source) && !Number.isSafeInteger(value);

/** Engines name a line and a column, an offset or nothing: where they do not, the text is read again. */
function locate(text, message) {
  const lines = /line (\d+) column (\d+)/.exec(message);
  if (lines) return { line: Number(lines[1]), column: Number(lines[2]) };
  const position = /position (\d+)/.exec(message);
  return positionOf(text, position ? Number(position[1]) : errorOffset(text));
}

const TOKEN =
  /[ \t\r\n]*(?:([{}[\],:])|("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*")|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/y;

/** The offset of the first thing that JSON does not allow. */
export function errorOffset(text) {
  if (text.length > 500000) return 0;
  const inside = [];
  let wanted = "value";
  for (let at = 0; ;) {
    TOKEN.lastIndex = at;
    const found = TOKEN.exec(text);
    const start = at + /^[ \t\r\n]*/.exec(text.slice(at, at + 10000))[0].length;
    if (!found) return start;
    const [, mark, string] = found;
    const ends = (mark === "}" && inside.at(-1) === "{") || (mark === "]" && inside.at(-1) === "[");
    if (ends && ["first", "next"].includes(wanted)) {
      inside.pop();
      wanted = inside.length ? "next" : "end";
    } else if (wanted === "next" && mark === ",") wanted = inside.at(-1) === "{" ? "name" : "value";
    else if (wanted === "colon" && mark === ":") wanted = "value";
    else if (string && (wanted === "name" || (wanted === "first" && inside.at(-1) === "{"))) wanted = "colon";
    else if (["next", "colon", "name", "end"].includes(wanted) || (wanted === "first" && inside.at(-1) === "{")) return start;
    else if (mark === "{" || mark === "[") {
      inside.push(mark);
      wanted = "first";
    } else if (mark) return start;
    else wanted = inside.length ? "next" : "end";
    at = TOKEN.lastIndex;
  }
}

function positionOf(text, offset) {
  const before = text.slice(0, offset).split("\n");
  return { line: before.length, column: before.at(-1).length + 1 };
}

/** Pretty JSON up to `limit` characters; "" where it would be longer. */
export function prettyJson(value, limit = 2_000_000) {
  try {
    const text = JSON.stringify(value, null, 2) ?? "";
    return text.length > limit ? "" : text;
  } catch {
    return ""; // nested deeper than the stack
  }
}
