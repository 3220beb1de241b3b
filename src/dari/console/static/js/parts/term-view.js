// One pane, live: the server's screen as rows of text. A person looks, scrolls back, and types once they have taken over.

import { h } from "../lib/dom.js";
import { t, text } from "../lib/i18n.js";
import { live } from "../lib/live.js";
import { plainRow, renderRow } from "../lib/sgr.js";

const CHUNK = 300;
const MAX_SHOWN_ROWS = 4000;
const SAY_MS = 600;
const SAID_ROWS = 8;
const NAMES = {
  ArrowUp: "Up", ArrowDown: "Down", ArrowLeft: "Left", ArrowRight: "Right", Enter: "Enter", Tab: "Tab", Escape: "Escape",
  Backspace: "Backspace", Delete: "Delete", Insert: "Insert", Home: "Home", End: "End", PageUp: "PageUp", PageDown: "PageDown",
};

/** The piece for a key press; null when the browser, an input method or plain text input takes care of it. */
export function pieceOf(event) {
  if (event.isComposing || event.key === "Process" || event.key === "Dead" || event.metaKey) return null;
  const named = NAMES[event.key] || (/^F([1-9]|1[0-2])$/.test(event.key) ? event.key : "");
  const modifiers = (event.ctrlKey ? "C-" : "") + (event.altKey ? "M-" : "");
  if (named) return { key: modifiers + (event.shiftKey ? "S-" : "") + named };
  if ([...event.key].length !== 1 || !modifiers || event.getModifierState?.("AltGraph")) return null;
  if (event.ctrlKey && event.shiftKey) return null; // the browser's, and ours: copy, the palette
  if (event.ctrlKey && event.key.toLowerCase() === "v") return null; // it becomes a paste
  return { key: modifiers + (event.key === " " ? "Space" : event.key) };
}

/** `onFrame(frame, facts)` for each frame of the server, `onError` when there is none, `onLeave` when keys should go elsewhere. */
export function termView({ paneId, signal, onFrame, onError, onLeave, onPalette }) {
  const rows = [];
  const screen = h("div", { class: "term-screen" });
  const cursor = h("div", { class: "term-cursor", hidden: true, "aria-hidden": "true" });
  screen.append(cursor);
  const past = h("div", { class: "term-past", hidden: true });
  const input = h("textarea", {
    class: "term-input", rows: "1", autocapitalize: "off", autocomplete: "off", spellcheck: "false", disabled: true,
    "aria-label": t("term.input", { id: paneId }), "data-keys": "own",
  });
  const scroll = h("div", { class: "term-scroll", tabindex: "0", role: "region", "aria-label": t("term.screen", { id: paneId }) }, past, screen, input);
  const said = h("div", { class: "visually-hidden", role: "log", "aria-live": "polite" });
  const probe = h("span", { class: "term-probe", "aria-hidden": "true" }, "0".repeat(50));
  const el = h("div", { class: "term", data: { state: "waiting", pane: paneId, typing: "off" } }, scroll, said, probe);
  let facts = null;
  let pendingRows = new Map();
  let pendingCursor = null;
  let drawing = 0;
  let latestHistory = 0;
  let isTyping = false;

  // The screen

  const stopFollowing = live.follow(`pane:${paneId}`, take, { onError: lost, signal });

  function take(frame) {
    if (frame.is_over) {
      el.dataset.state = "over";
      stopFollowing();
      onFrame(frame, facts);
      return;
    }
    if (frame.is_whole) pendingRows = new Map();
    if (frame.facts) facts = frame.facts;
    latestHistory = frame.history || 0;
    for (const [number, row] of frame.rows || []) pendingRows.set(number, row);
    pendingCursor = frame.cursor || null;
    el.dataset.state = past.hidden ? "live" : "past"; // not by the state before: it may have been "lost" meanwhile
    drawing ||= requestAnimationFrame(draw);
    onFrame(frame, facts);
  }

  function lost(error) {
    if (el.dataset.state !== "over") el.dataset.state = "lost";
    onError?.(error);
  }

  function draw() {
    drawing = 0;
    if (!facts) return;
    while (rows.length < facts.rows) {
      const row = h("div", { class: "term-row" });
      rows.push(row);
      screen.insertBefore(row, cursor);
    }
    while (rows.length > facts.rows) rows.pop().remove();
    for (const [number, row] of pendingRows) {
      if (rows[number]) renderRow(rows[number], row);
      if (rows[number]) rows[number].source = row;
    }
    say(pendingRows);
    pendingRows = new Map();
    if (facts.cols !== fittedCols) fit();
    cursor.hidden = !pendingCursor || !past.hidden;
    if (pendingCursor) {
      const [col, row, shape] = pendingCursor;
      cursor.dataset.shape = shape;
      for (const one of [cursor, input]) {
        one.style.setProperty("--col", col);
        one.style.setProperty("--row", row);
      }
      if (row !== shownRow) showRow(row);
    }
  }

  // What a screen reader hears: the rows that changed, once the screen is quiet, while the pane has the focus.

  let unsaid = new Map();
  let saying = 0;
  function say(changed) {
    if (!el.contains(document.activeElement)) return;
    for (const [number, row] of changed) unsaid.set(number, row);
    clearTimeout(saying);
    saying = setTimeout(() => {
      const lines = [...unsaid].sort(([a], [b]) => a - b).map(([, row]) => plainRow(row).trim()).filter(Boolean);
      unsaid = new Map();
      said.replaceChildren(...lines.slice(-SAID_ROWS).map((line) => h("div", {}, line)));
    }, SAY_MS);
  }

  // Size: the letters are as large as the columns allow.

  let fittedCols = 0;
  let rowHeight = 16;
  let height = 0;
  let shownRow = -1;
  function fit() {
    if (!facts || !scroll.clientWidth) return;
    fittedCols = facts.cols;
    height = scroll.clientHeight;
    const ratio = probe.getBoundingClientRect().width / 50 / parseFloat(getComputedStyle(probe).fontSize) || 0.6;
    const size = Math.floor(10 * Math.max(9, Math.min(13, (scroll.clientWidth - 16) / facts.cols / ratio))) / 10;
    el.style.setProperty("--term-size", `${size}px`);
    rowHeight = size * 1.25;
    if (shownRow >= 0) showRow(shownRow);
  }

  /** A screen that is higher than its place is scrolled to the cursor. */
  function showRow(row) {
    shownRow = row;
    if (past.hidden) scroll.scrollTop = Math.max(0, (row + 1) * rowHeight + 8 - height);
  }
  const observer = new ResizeObserver(() => fit());
  observer.observe(scroll);

  /** How many columns and rows would fit at the usual size. */
  function roomFor() {
    const width = probe.getBoundingClientRect().width / 50;
    const height = parseFloat(getComputedStyle(probe).lineHeight);
    return { cols: Math.max(20, Math.floor((scroll.clientWidth - 18) / width)), rows: Math.max(5, Math.floor((scroll.clientHeight - 10) / height)) };
  }

  // Looking back: rows of the history, asked for as they are needed, standing still. A row's number counts from the oldest.

  let first = 0;
  let end = 0;
  let total = 0;
  let loading = false;

  async function load(start, count) {
    const { value } = await live.call("dari_terminal_rows", { pane_id: paneId, start: start - latestHistory, count, seen_history: latestHistory }, { signal });
    total = value.history + value.screen_rows;
    return { start: value.history + value.start, rows: value.rows };
  }

  function chunk({ start, rows: texts }) {
    const made = h("div", { class: "term-chunk" });
    texts.forEach((source, at) => {
      const row = h("div", { class: "term-row", data: { row: String(start + at) } });
      renderRow(row, source);
      row.source = source;
      made.append(row);
    });
    made.style.setProperty("--rows", texts.length);
    return made;
  }

  /** Look at the history, with this row in view; without one, so many pixels above its end. */
  async function lookBack(row = null, above = 0) {
    if (loading) return;
    loading = true;
    try {
      const bottom = latestHistory + (facts?.rows || 0);
      const from = Math.max(0, row === null ? bottom - CHUNK : row - CHUNK / 2);
      const loaded = await load(from, row === null ? CHUNK + (facts?.rows || 0) : CHUNK);
      first = loaded.start;
      end = loaded.start + loaded.rows.length;
      past.replaceChildren(chunk(loaded));
      showPast(true);
      const target = row === null ? null : past.querySelector(`[data-row="${row}"]`);
      if (target) {
        target.classList.add("hit");
        target.scrollIntoView({ block: "center" });
      } else scroll.scrollTop = scroll.scrollHeight - scroll.clientHeight - above;
    } finally {
      loading = false;
    }
  }

  function showPast(on) {
    past.hidden = !on;
    screen.hidden = on;
    if (!/lost|over/.test(el.dataset.state)) el.dataset.state = on ? "past" : "live"; // those stay until a frame comes
  }

  function follow() {
    if (past.hidden) return;
    showPast(false);
    past.replaceChildren();
    shownRow = -1;
    drawing ||= requestAnimationFrame(draw);
  }

  async function extend() {
    if (loading || past.hidden) return;
    const nearTop = scroll.scrollTop < 200 && first > 0;
    const nearEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 200 && end < total;
    if (!nearTop && !nearEnd) return;
    loading = true;
    try {
      if (nearTop) {
        const from = Math.max(0, first - CHUNK);
        const loaded = await load(from, first - from);
        const before = scroll.scrollHeight;
        past.prepend(chunk(loaded));
        first = loaded.start;
        scroll.scrollTop += scroll.scrollHeight - before;
      } else {
        const loaded = await load(end, CHUNK);
        past.append(chunk(loaded));
        end = loaded.start + loaded.rows.length;
      }
      while (end - first > MAX_SHOWN_ROWS) {
        const far = nearTop ? past.lastChild : past.firstChild;
        if (nearTop) end -= far.childElementCount;
        else first += far.childElementCount;
        far.remove();
      }
    } finally {
      loading = false;
    }
  }

  scroll.addEventListener("scroll", () => extend().catch(() => {}), { signal, passive: true });
  scroll.addEventListener("wheel", wheel, { signal, passive: false });

  function wheel(event) {
    if (event.ctrlKey) return;
    const isUp = event.deltaY < 0;
    if (!past.hidden) {
      const atEnd = scroll.scrollTop + scroll.clientHeight >= scroll.scrollHeight - 2 && end >= total;
      if (!isUp && atEnd) follow();
      return;
    }
    if (!facts || event.shiftKey) return;
    if (isTyping && (facts.mouse !== "off" || facts.is_alternate)) {
      event.preventDefault();
      mouse(event, "press", isUp ? "wheel_up" : "wheel_down");
    } else if (isUp && !facts.is_alternate && latestHistory > 0) {
      lookBack(null, -event.deltaY).catch(() => {});
    }
  }

  // The person's hands: pieces are sent in order, one call at a time; what is typed meanwhile goes with the next.

  let queue = [];
  let sending = false;
  let gate = Promise.resolve();
  function send(piece) {
    const last = queue.at(-1);
    if (piece.text && last?.text) last.text += piece.text;
    else queue.push({ ...piece });
    flush();
  }

  async function flush() {
    if (sending) return;
    sending = true;
    try {
      await gate;
      while (queue.length) {
        const pieces = queue.splice(0, 500);
        await live.call("dari_terminal_type", { pane_id: paneId, pieces });
      }
    } catch (error) {
      queue = [];
      onError?.(error);
    } finally {
      sending = false;
    }
  }

  function cellAt(event) {
    const box = screen.getBoundingClientRect();
    const col = Math.floor(((event.clientX - box.left) / box.width) * facts.cols);
    const row = Math.floor(((event.clientY - box.top) / box.height) * facts.rows);
    return { col: Math.max(0, Math.min(facts.cols - 1, col)), row: Math.max(0, Math.min(facts.rows - 1, row)) };
  }

  let unread = 0;
  let lastMouse = Promise.resolve();
  function mouse(event, action, button) {
    if (unread && button.startsWith("wheel")) return; // a wheel turns faster than a program can read it
    const modifiers = [["shift", event.shiftKey], ["alt", event.altKey], ["ctrl", event.ctrlKey]].filter(([, on]) => on).map(([name]) => name);
    const report = { pane_id: paneId, action, button, ...cellAt(event), modifiers };
    unread += 1;
    // In order, and none left out: a program that is not told of the release sees a button that is held for ever.
    lastMouse = lastMouse.then(() => live.call("dari_terminal_mouse", report)).catch((error) => onError?.(error)).finally(() => (unread -= 1));
  }

  const BUTTONS = ["left", "middle", "right"];
  for (const [type, action] of [["mousedown", "press"], ["mouseup", "release"]]) {
    screen.addEventListener(type, (event) => {
      if (!isTyping || !facts || facts.mouse === "off" || event.shiftKey || !BUTTONS[event.button]) return;
      event.preventDefault();
      mouse(event, action, BUTTONS[event.button]);
      input.focus();
    }, { signal });
  }
  scroll.addEventListener("click", () => {
    if (isTyping && getSelection().isCollapsed) input.focus({ preventScroll: true });
  }, { signal });

  input.addEventListener("keydown", (event) => {
    if (event.ctrlKey && event.shiftKey && event.key === "Enter") {
      event.preventDefault();
      onLeave?.();
      return;
    }
    if ((event.ctrlKey || event.altKey) && event.shiftKey && event.key.toLowerCase() === "m") {
      event.preventDefault();
      onPalette?.();
      return;
    }
    if (event.ctrlKey && !event.shiftKey && event.key === "c" && !getSelection().isCollapsed) return; // copy
    const piece = pieceOf(event);
    if (!piece) return;
    event.preventDefault();
    event.stopPropagation();
    follow();
    send(piece);
  }, { signal });
  const takeText = () => {
    const typed = input.value;
    input.value = "";
    if (typed) {
      follow();
      send({ text: typed });
    }
  };
  input.addEventListener("input", (event) => event.isComposing || takeText(), { signal });
  input.addEventListener("compositionend", takeText, { signal });
  input.addEventListener("paste", (event) => {
    event.preventDefault();
    const pasted = event.clipboardData?.getData("text/plain");
    if (pasted) send({ paste: pasted });
  }, { signal });

  /** Keys go to the program from now on; with a promise, once that is kept, and what is typed meanwhile waits. */
  function setTyping(on, after) {
    if (after) gate = after;
    if (on === isTyping) return;
    isTyping = on;
    input.disabled = !on;
    el.dataset.typing = on ? "on" : "off";
    if (on) input.focus({ preventScroll: true });
  }

  signal.addEventListener("abort", () => {
    observer.disconnect();
    cancelAnimationFrame(drawing);
    clearTimeout(saying);
  });

  return {
    el, setTyping, lookBack, follow, send, roomFor,
    get facts() { return facts; },
    focus: () => (isTyping ? input : scroll).focus({ preventScroll: true }),
    /** The screen as plain text. */
    text: () => rows.map((row) => plainRow(row.source || "")).join("\n").trimEnd(),
    announce: (message) => said.replaceChildren(h("div", {}, text(message))),
  };
}
