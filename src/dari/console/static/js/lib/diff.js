// Line and word differences of two texts: pure functions, bounded in time and memory.

export const MAX_LINES = 20000;
const MAX_EDITS = 1000; // of one text into the other; memory grows with its square
const MAX_WORDS = 400;
const WORDS = /[\p{L}\p{N}_]+|\s+|[^]/gu;

/** Rows {kind: "same"|"removed"|"added", a, b, text}: `a` and `b` are line numbers from 1, null where the side has none.
 *  `isCut`: a text has more than MAX_LINES lines; `isCoarse`: the texts differ so much that the middle is shown whole. */
export function diffLines(oldText, newText) {
  const all = [splitLines(oldText), splitLines(newText)];
  const isCut = all.some((lines) => lines.length > MAX_LINES);
  const [a, b] = all.map((lines) => lines.slice(0, MAX_LINES));
  const { steps, isCoarse } = compare(a, b, MAX_EDITS);
  let at = 0;
  let to = 0;
  const rows = steps.map((kind) => {
    if (kind === "removed") return { kind, a: ++at, b: null, text: a[at - 1] };
    if (kind === "added") return { kind, a: null, b: ++to, text: b[to - 1] };
    return { kind, a: ++at, b: ++to, text: a[at - 1] };
  });
  return { rows, isCut, isCoarse };
}

/** The changed parts of two lines that took each other's place: [[{text, changed}], [{text, changed}]], or null when
 *  they have too little in common. */
export function markLine(oldLine, newLine) {
  const a = oldLine.match(WORDS) ?? [];
  const b = newLine.match(WORDS) ?? [];
  if (a.length > MAX_WORDS || b.length > MAX_WORDS) return null;
  const { steps } = compare(a, b, MAX_WORDS);
  const sides = [[], []];
  let at = 0;
  let to = 0;
  let common = 0;
  for (const kind of steps) {
    if (kind === "same") common += a[at].trim().length;
    if (kind !== "added") push(sides[0], a[at++], kind !== "same");
    if (kind !== "removed") push(sides[1], b[to++], kind !== "same");
  }
  return common * 4 < Math.max(oldLine.trim().length, newLine.trim().length) ? null : sides;
}

/** Rows with their words marked: each removed line beside the added one that replaces it. */
export function markRows(rows) {
  const marked = rows.map((row) => ({ ...row, parts: null }));
  for (const [from, middle, to] of blocks(marked)) {
    for (let i = 0; i < Math.min(middle - from, to - middle); i++) {
      const [left, right] = [marked[from + i], marked[middle + i]];
      const sides = markLine(left.text, right.text);
      if (sides) [left.parts, right.parts] = sides;
    }
  }
  return marked;
}

/** Runs of unchanged rows that are longer than twice `context` are folded: items are rows or {fold: [rows]}. */
export function foldRows(rows, context = 3) {
  const near = new Uint8Array(rows.length);
  rows.forEach((row, i) => {
    if (row.kind !== "same") near.fill(1, Math.max(0, i - context), Math.min(rows.length, i + context + 1));
  });
  const items = [];
  for (let i = 0; i < rows.length; i++) {
    if (near[i]) {
      items.push(rows[i]);
      continue;
    }
    const from = i;
    while (i + 1 < rows.length && !near[i + 1]) i++;
    if (i - from < 1) items.push(rows[i]);
    else items.push({ fold: rows.slice(from, i + 1) });
  }
  return items;
}

/** Pairs {left, right} for two columns: removed lines beside added ones, null where a side has nothing. */
export function sideBySide(rows) {
  const pairs = [];
  for (let i = 0; i < rows.length; ) {
    if (rows[i].kind === "same") {
      pairs.push({ left: rows[i], right: rows[i++] });
      continue;
    }
    const [left, right] = [[], []];
    for (; i < rows.length && rows[i].kind !== "same"; i++) (rows[i].kind === "removed" ? left : right).push(rows[i]);
    for (let n = 0; n < Math.max(left.length, right.length); n++) {
      pairs.push({ left: left[n] ?? null, right: right[n] ?? null });
    }
  }
  return pairs;
}

export function countChanges(rows) {
  const count = { added: 0, removed: 0 };
  for (const row of rows) if (row.kind !== "same") count[row.kind]++;
  return count;
}

function splitLines(text) {
  const lines = String(text ?? "").split(/\r\n|\n|\r/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

function push(side, text, changed) {
  const last = side.at(-1);
  if (last && last.changed === changed) last.text += text;
  else side.push({ text, changed });
}

function* blocks(rows) {
  for (let i = 0; i < rows.length; i++) {
    if (rows[i].kind === "same") continue;
    const from = i;
    while (rows[i]?.kind === "removed") i++;
    const middle = i;
    while (rows[i]?.kind === "added") i++;
    yield [from, middle, i];
    i--;
  }
}

/** What turns `a` into `b`, as steps; what is alike at both ends costs nothing. */
function compare(a, b, most) {
  const least = Math.min(a.length, b.length);
  let head = 0;
  while (head < least && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < least - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const [left, right] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
  const found = shortestEdits(left, right, most);
  const middle = found ?? [...left.map(() => "removed"), ...right.map(() => "added")];
  return { steps: [...fill(head), ...middle, ...fill(tail)], isCoarse: !found };
}

const fill = (count) => new Array(count).fill("same");

/** Myers, "An O(ND) difference algorithm": null when more than `most` edits are needed. */
function shortestEdits(a, b, most) {
  const [n, m] = [a.length, b.length];
  const max = Math.min(n + m, most);
  const zero = max + 1;
  const reach = new Int32Array(2 * max + 3);
  const trace = [];
  for (let d = 0; d <= max; d++) {
    trace.push(reach.slice(zero - d - 1, zero + d + 2));
    for (let k = -d; k <= d; k += 2) {
      const goesDown = k === -d || (k !== d && reach[zero + k - 1] < reach[zero + k + 1]);
      let x = goesDown ? reach[zero + k + 1] : reach[zero + k - 1] + 1;
      while (x < n && x - k < m && a[x] === b[x - k]) x++;
      reach[zero + k] = x;
      if (x >= n && x - k >= m) return walkBack(trace, n, m);
    }
  }
  return null;
}

function walkBack(trace, n, m) {
  const steps = [];
  let [x, y] = [n, m];
  for (let d = trace.length - 1; d > 0; d--) {
    const at = (k) => trace[d][k + d + 1];
    const k = x - y;
    const before = k === -d || (k !== d && at(k - 1) < at(k + 1)) ? k + 1 : k - 1;
    const fromX = at(before);
    const fromY = fromX - before;
    for (; x > fromX && y > fromY; x--, y--) steps.push("same");
    if (x === fromX) (steps.push("added"), y--);
    else (steps.push("removed"), x--);
  }
  for (; x > 0 && y > 0; x--, y--) steps.push("same");
  return tidy(steps.reverse());
}

/** Removed before added in each run of changes, as people read it. */
function tidy(steps) {
  const made = [];
  for (let i = 0; i < steps.length; ) {
    if (steps[i] === "same") {
      made.push(steps[i++]);
      continue;
    }
    const from = i;
    while (i < steps.length && steps[i] !== "same") i++;
    const run = steps.slice(from, i);
    made.push(...run.filter((kind) => kind === "removed"), ...run.filter((kind) => kind === "added"));
  }
  return made;
}
