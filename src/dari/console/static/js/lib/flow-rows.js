// The rows of the traffic table, by id, and which older ones are still to be fetched. No DOM here.

// The places of a row's values: FlowRow in src/dari/proxy/query/rows.py.
export const [
  ID, STARTED, METHOD, SCHEME, HOST, PATH, STATUS, MIME, SENT, RECEIVED, DURATION, PROCESS, RULES, EVENT, STATE, ERROR,
  MESSAGES, REPLAY_OF,
] = Array.from({ length: 18 }, (_, place) => place);

const TRIM = 1000; // rows are dropped in blocks: moving 50,000 entries for each batch would cost more than the batch

export class FlowRows {
  constructor(limit = 50_000) {
    this.limit = limit;
    this.rows = []; // by id, the oldest first
  }

  get count() {
    return this.rows.length;
  }

  // The place of an id, or where it would stand as -place - 1.
  find(id) {
    const { rows } = this;
    let low = 0;
    let high = rows.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (rows[middle][ID] < id) low = middle + 1;
      else high = middle;
    }
    return low < rows.length && rows[low][ID] === id ? low : -low - 1;
  }

  // Take rows in, sorted by id: new ones to their place, known ones in place of the old.
  merge(added) {
    if (!added.length) return;
    const { rows } = this;
    const last = rows.length ? rows[rows.length - 1][ID] : -1;
    let fresh = 0;
    while (fresh < added.length && added[fresh][ID] <= last) fresh++;
    let missing = 0;
    for (let index = 0; index < fresh; index++) {
      const place = this.find(added[index][ID]);
      if (place >= 0) rows[place] = added[index];
      else missing++;
    }
    for (let index = fresh; index < added.length; index++) rows.push(added[index]);
    if (missing) this.rows = merged(rows, added);
    if (this.rows.length > this.limit + TRIM) this.rows.splice(0, this.rows.length - this.limit);
  }

  remove(ids) {
    const gone = new Set(ids.filter((id) => this.find(id) >= 0));
    if (gone.size) this.rows = this.rows.filter((row) => !gone.has(row[ID]));
    return gone.size;
  }

  clear() {
    this.rows = [];
  }

  // The lowest id among the newest rows that has not ended: changes that were missed may be about it.
  oldestRunning(depth = 5000) {
    let found = null;
    for (let index = this.rows.length - 1, end = Math.max(0, this.rows.length - depth); index >= end; index--) {
      if (this.rows[index][STATE] !== "done") found = this.rows[index][ID];
    }
    return found;
  }
}

function merged(first, second) {
  const all = [];
  let a = 0;
  let b = 0;
  while (a < first.length && b < second.length) {
    const difference = first[a][ID] - second[b][ID];
    if (difference < 0) all.push(first[a++]);
    else {
      all.push(second[b++]);
      if (difference === 0) a++;
    }
  }
  while (a < first.length) all.push(first[a++]);
  while (b < second.length) all.push(second[b++]);
  return all;
}

// Ranges of ids that are to be fetched, the newest first: [before, down to and including].
export class Backlog {
  constructor() {
    this.ranges = [];
  }

  get next() {
    return this.ranges[0] ?? null;
  }

  reset(before) {
    this.ranges = before === null ? [] : [{ before, until: 0 }];
  }

  // Rows from `until` up to `before` may be missing or old.
  add(before, until) {
    if (before <= until) return;
    const first = this.ranges[0];
    if (first && first.before >= until) this.ranges[0] = { before: Math.max(before, first.before), until: Math.min(until, first.until) };
    else this.ranges.unshift({ before, until });
  }

  // A page for the first range has come; `nextBefore` is null when nothing is older.
  advance(range, nextBefore) {
    if (this.ranges[0] !== range) return; // something newer came in between, and holds this range
    if (nextBefore === null) this.ranges = [];
    else if (nextBefore <= range.until) this.ranges.shift();
    else this.ranges[0] = { before: nextBefore, until: range.until };
  }

  clear() {
    this.ranges = [];
  }
}

// "name: value" lines as pairs, in the order of the wire.
export function headerPairs(lines) {
  return (lines ?? "")
    .split("\n")
    .filter((line) => line.trim())
    .map((line) => {
      const colon = line.indexOf(":", 1);
      return colon < 0 ? [line, ""] : [line.slice(0, colon), line.slice(colon + 1).trim()];
    });
}

// The events of a text/event-stream body, as the HTML standard reads them; a last one without its empty line counts too.
export function parseEvents(text) {
  const events = [];
  let data = [];
  let event = "";
  let id = "";
  const end = () => {
    if (data.length || event) events.push({ event: event || "message", id, data: data.join("\n") });
    data = [];
    event = "";
  };
  for (const line of text.split(/\r\n|\r|\n/)) {
    if (!line) {
      end();
      continue;
    }
    const colon = line.indexOf(":");
    if (colon === 0) continue;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") data.push(value);
    else if (field === "event") event = value;
    else if (field === "id") id = value;
  }
  end();
  return events;
}

// Rows of a hex dump: [offset, hex, text].
export function hexRows(bytes, start = 0) {
  const rows = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const part = bytes.subarray(at, at + 16);
    const hex = Array.from(part, (byte) => byte.toString(16).padStart(2, "0"));
    const text = Array.from(part, (byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "·")).join("");
    rows.push([(start + at).toString(16).padStart(8, "0"), hex.join(" ").padEnd(47), text]);
  }
  return rows;
}

// How to show a body: by its media type, and by what the daemon found it to be.
export function bodyKind(view) {
  const mime = view.mime ?? "";
  if (view.kind === "empty") return "empty";
  if (view.kind === "json") return "json";
  if (mime.startsWith("image/") && mime !== "image/svg+xml") return "image";
  if (view.kind === "binary") return "hex";
  if (mime === "text/event-stream") return "events";
  if (mime === "application/x-www-form-urlencoded") return "form";
  return "text";
}

// A filter that also wants `term`: what a click on a host or a status adds.
export function withTerm(filter, term) {
  const words = filter.trim();
  if (!words) return term;
  if (words.split(/\s+/).includes(term)) return words;
  return /\bor\b/i.test(words) ? `(${words}) ${term}` : `${words} ${term}`;
}
