// Rows of a terminal as runs of text with a style. The server draws the screen; a row is text with SGR sequences, each
// complete in itself, and three marks: \x01字\x03 takes two columns, \x02é\x03 is several characters in one column.

const PART = /\x1b\[([\d;:]*)m|([\x01\x02])([^\x03]*)\x03|([^\x00-\x1f]+)/g;
const FLAGS = { 1: "b", 2: "d", 3: "i", 5: "k", 8: "x", 9: "s", 53: "o" };
const STEPS = [0, 95, 135, 175, 215, 255];
const PLAIN = { cls: "", color: "", background: "" };
const styles = new Map([["", PLAIN], ["0", PLAIN]]);

/** → [{text, width, style}]: `width` counts columns, `style` is {cls, color, background}, the same object for equal ones. */
export function parseRow(row) {
  const runs = [];
  let style = PLAIN;
  for (const [, sgr, mark, cell, text] of row.matchAll(PART)) {
    if (sgr !== undefined) style = styleOf(sgr);
    else if (mark) runs.push({ text: cell, width: mark === "\x01" ? 2 : 1, style, isCell: true });
    else runs.push({ text, width: [...text].length, style, isCell: false });
  }
  return runs;
}

export function styleOf(sgr) {
  let style = styles.get(sgr);
  if (!style) {
    style = readStyle(sgr);
    if (styles.size > 5000) styles.clear(); // a picture in true colours has many
    styles.set(sgr, style);
  }
  return style;
}

function readStyle(sgr) {
  const words = sgr.split(";");
  const classes = [];
  let fg = null;
  let bg = null;
  let inverse = false;
  for (let at = 0; at < words.length; at += 1) {
    const [code, kind] = words[at].split(":").map(Number);
    if (code === 0) {
      classes.length = 0;
      fg = bg = null;
      inverse = false;
    } else if (code === 4) classes.push(kind ? `u${kind}` : "u1");
    else if (code === 7) inverse = true;
    else if (code === 38 || code === 48) {
      const [color, used] = readColor(words, at + 1);
      if (code === 38) fg = color;
      else bg = color;
      at += used;
    } else if (code >= 30 && code <= 37) fg = code - 30;
    else if (code >= 90 && code <= 97) fg = code - 82;
    else if (code >= 40 && code <= 47) bg = code - 40;
    else if (code >= 100 && code <= 107) bg = code - 92;
    else if (FLAGS[code]) classes.push(FLAGS[code]);
  }
  if (inverse) [fg, bg] = [bg ?? "i", fg ?? "i"];
  for (const [letter, color] of [["f", fg], ["g", bg]]) {
    if (color !== null && !String(color).startsWith("#")) classes.push(letter + color);
  }
  const inline = (color) => (String(color ?? "").startsWith("#") ? color : "");
  return { cls: classes.join(" "), color: inline(fg), background: inline(bg) };
}

function readColor(words, at) {
  if (words[at] === "5") return [indexed(Number(words[at + 1])), 2];
  if (words[at] !== "2") return [null, 0];
  return [hex(words.slice(at + 1, at + 4).map(Number)), 4];
}

/** Sixteen colours are the theme's; the other ones of the 256 are fixed. */
function indexed(n) {
  if (!(n >= 0 && n <= 255)) return null;
  if (n < 16) return n;
  if (n >= 232) return hex(Array(3).fill(8 + 10 * (n - 232)));
  const at = n - 16;
  return hex([STEPS[Math.floor(at / 36)], STEPS[Math.floor(at / 6) % 6], STEPS[at % 6]]);
}

function hex(rgb) {
  return rgb.length === 3 && rgb.every((one) => one >= 0 && one <= 255)
    ? `#${rgb.map((one) => one.toString(16).padStart(2, "0")).join("")}`
    : null;
}

/** The row as it is read aloud and copied. */
export function plainRow(row) {
  return parseRow(row).map((run) => run.text).join("");
}

/** Show the row in an element. Every character outside ASCII has a box of its columns: fonts differ about its width. */
export function renderRow(el, row) {
  const parts = [];
  for (const { text, width, style, isCell } of parseRow(row)) {
    if (isCell) parts.push(box(text, width, style));
    else if (!style.cls && !style.color && !style.background && !/[^ -~]/.test(text)) parts.push(text);
    else {
      for (const piece of text.match(/[ -~]+|[^ -~]+/g)) {
        parts.push(/[^ -~]/.test(piece) ? box(piece, [...piece].length, style) : span(piece, style));
      }
    }
  }
  el.replaceChildren(...parts);
}

function span(text, { cls, color, background }) {
  const el = document.createElement("span");
  if (cls) el.className = cls;
  if (color) el.style.color = color;
  if (background) el.style.backgroundColor = background;
  el.textContent = text;
  return el;
}

function box(text, width, style) {
  const el = span(text, style);
  el.classList.add("box");
  el.style.width = `${width}ch`;
  return el;
}
