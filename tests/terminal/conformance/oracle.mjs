// @xterm/headless as a terminal to compare with: one JSON array of streams a line in, one array of screens a line out.
// A stream is {cols, rows, steps}; a step is text to write or [cols, rows] to resize to.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { join } from "node:path";

const require = createRequire(join(process.env.DARI_NPM_DIR, "node_modules", "x.js"));
const { Terminal } = require("@xterm/headless");
const { Unicode11Addon } = require("@xterm/addon-unicode11");

let fell; // tells the stream under way that the parser threw, which it does outside of any call of ours
process.on("uncaughtException", (error) => fell(error));

async function show({ cols, rows, steps }) {
  const terminal = new Terminal({ cols, rows, scrollback: 1000, allowProposedApi: true, reflowCursorLine: true, logLevel: "off" });
  terminal.loadAddon(new Unicode11Addon());
  terminal.unicode.activeVersion = "11";
  let text = "";
  const flush = () => {
    const data = text;
    text = "";
    return new Promise((done, failed) => {
      fell = failed;
      terminal.write(data, done);
    });
  };
  for (const step of steps) {
    if (typeof step === "string") text += step;
    else {
      await flush();
      terminal.resize(...step);
    }
  }
  await flush();
  const screen = read(terminal);
  terminal.dispose();
  return screen;
}

function read(terminal) {
  const buffer = terminal.buffer.active;
  const lines = [];
  for (let row = 0; row < terminal.rows; row++) {
    const line = buffer.getLine(buffer.baseY + row);
    const cells = [];
    for (let col = 0; col < terminal.cols; col++) cells.push(cell(line.getCell(col)));
    lines.push(cells);
  }
  return {
    alternate: buffer.type === "alternate",
    cursor: [Math.min(buffer.cursorX, terminal.cols - 1), buffer.cursorY],
    lines,
    whole: unwrapped(buffer),
  };
}

// Every line from the oldest on, put together where it was wrapped.
function unwrapped(buffer) {
  const lines = [];
  for (let row = 0; row < buffer.length; row++) {
    const line = buffer.getLine(row);
    const next = buffer.getLine(row + 1);
    // A wide character that did not fit left a blank behind, which is not part of the line.
    const isCut = next?.isWrapped && next.getCell(0).getWidth() === 2 && !line.getCell(line.length - 1).getChars();
    const text = line.translateToString(!next?.isWrapped, 0, isCut ? line.length - 1 : line.length);
    if (line.isWrapped && lines.length) lines[lines.length - 1] += text;
    else lines.push(text);
  }
  return lines;
}

// A string for a character without style, which most are; else [text, width, foreground, background, attributes].
function cell(found) {
  const text = found.getChars();
  const width = found.getWidth();
  if (width === 1 && found.isAttributeDefault()) return text;
  const attributes =
    (found.isBold() && 1) | (found.isDim() && 2) | (found.isItalic() && 4) | (found.isUnderline() && 8) |
    (found.isInverse() && 16) | (found.isStrikethrough() && 32) | (found.isInvisible() && 64);
  return [text, width, color(found, "Fg"), color(found, "Bg"), attributes];
}

// null, an index of the palette, or "#rrggbb".
function color(found, plane) {
  if (found[`is${plane}Default`]()) return null;
  const value = found[`get${plane}Color`]();
  return found[`is${plane}RGB`]() ? `#${value.toString(16).padStart(6, "0")}` : value;
}

for await (const line of createInterface({ input: process.stdin })) {
  const screens = [];
  for (const stream of JSON.parse(line)) screens.push(await show(stream).catch(({ message }) => ({ fell: message })));
  process.stdout.write(JSON.stringify(screens) + "\n");
}
