// A table of any length: rows of one height, of which only those in view are in the page.
//
//   const list = virtualList({label, head, make, update, onOpen, onToggle, onFollow});
//   make() returns an empty row element, update(element, index) fills it: elements are used again for other rows.
//   list.setCount(n, shift) after the data changed: `shift` rows came in (or went, below 0) above the first in view.
//
// It is one tab stop: arrows, Page, Home and End move the active row, Enter opens it, Space marks it. While it follows,
// it stays at the end; scrolling up stops that, and scrolling back to the end starts it again.

import { h } from "../lib/dom.js";

const OVERSCAN = 4;
let lists = 0;

export function virtualList({
  label,
  head,
  make,
  update,
  rowHeight = 26,
  onOpen = () => {},
  onToggle = () => {},
  onFollow = () => {},
  onActive = () => {},
  follows = false,
}) {
  const prefix = `vl${++lists}-`;
  const space = h("div", { class: "vl-space", role: "rowgroup" });
  const element = h("div", { class: "vl", role: "grid", tabindex: "0", "aria-label": label, "aria-rowcount": "0" });
  if (head) {
    head.classList.add("vl-head");
    head.setAttribute("role", "row");
    head.setAttribute("aria-rowindex", "1");
    element.append(h("div", { role: "rowgroup", class: "vl-heads" }, head));
  }
  element.append(space);

  const headRows = head ? 1 : 0;
  const pool = []; // row elements by place; pool[i] shows row pool[i].index, or is hidden with -1
  let count = 0;
  let active = -1;
  let following = follows;
  let frame = 0;
  let isDirty = true;
  let viewHeight = 0;
  let headHeight = 0;
  let lastTop = 0;
  let described = "";

  const measure = () => {
    const wasInView = isInView(active);
    viewHeight = element.clientHeight;
    headHeight = head ? head.offsetHeight : 0;
    if (wasInView) reveal(active);
    schedule();
  };
  const resized = new ResizeObserver(measure);
  resized.observe(element);

  function schedule() {
    if (!frame) frame = requestAnimationFrame(draw);
  }

  function draw() {
    frame = 0;
    if (following) toEnd();
    const inView = Math.ceil(Math.max(viewHeight - headHeight, 0) / rowHeight) + 1;
    const first = Math.max(0, Math.floor(element.scrollTop / rowHeight) - OVERSCAN);
    const end = Math.min(count, first + inView + 2 * OVERSCAN);
    const wanted = Math.max(0, end - first);
    while (pool.length < wanted) pool.push(addRow());
    // Row i always has the place i modulo the pool, so scrolling by one row fills one element.
    for (let place = 0; place < pool.length; place++) {
      const offset = (((place - first) % pool.length) + pool.length) % pool.length;
      show(pool[place], offset < wanted ? first + offset : -1);
    }
    isDirty = false;
    describeActive(active >= first && active < end ? prefix + active : "");
  }

  function addRow() {
    const row = make();
    row.classList.add("vl-row");
    row.setAttribute("role", "row");
    row.hidden = true;
    space.append(row);
    return { row, index: -1, isActive: false };
  }

  function show(slot, index) {
    const { row } = slot;
    if (index < 0) {
      if (slot.index >= 0) {
        row.hidden = true;
        row.removeAttribute("id");
      }
      slot.index = -1;
      return;
    }
    if (slot.index !== index) {
      if (slot.index < 0) row.hidden = false;
      row.style.transform = `translateY(${index * rowHeight}px)`;
      row.id = prefix + index;
      row.setAttribute("aria-rowindex", index + 1 + headRows);
    } else if (!isDirty && slot.isActive === (index === active)) {
      return;
    }
    slot.index = index;
    slot.isActive = index === active;
    row.classList.toggle("active", slot.isActive);
    update(row, index);
  }

  function toEnd() {
    const end = count * rowHeight + headHeight - viewHeight;
    if (Math.abs(element.scrollTop - end) >= 1) element.scrollTop = Math.max(0, end);
  }

  function setFollowing(value) {
    if (following === value) return;
    following = value;
    onFollow(value);
    if (value) schedule();
  }

  function setCount(next, shift = 0) {
    if (next !== count) {
      count = next;
      space.style.height = `${count * rowHeight}px`;
      element.setAttribute("aria-rowcount", count + headRows);
    }
    if (active >= 0) active += shift;
    if (active >= count || active < 0) active = -1;
    if (shift && !following) element.scrollTop += shift * rowHeight;
    isDirty = true;
    schedule();
  }

  // Only a row that is in the page can be named.
  function describeActive(id) {
    if (id === described) return;
    described = id;
    if (id) element.setAttribute("aria-activedescendant", id);
    else element.removeAttribute("aria-activedescendant");
  }

  function setActive(index, scrolls = true) {
    active = index >= 0 && index < count ? index : -1;
    if (active >= 0 && scrolls) reveal(active);
    isDirty = true;
    schedule();
  }

  function isInView(index) {
    const top = index * rowHeight - element.scrollTop;
    return index >= 0 && !following && top >= 0 && top + rowHeight <= viewHeight - headHeight;
  }

  function reveal(index) {
    if (!viewHeight) viewHeight = element.clientHeight;
    const top = index * rowHeight;
    const room = viewHeight - headHeight;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + rowHeight > element.scrollTop + room) element.scrollTop = top + rowHeight - room;
  }

  function move(index) {
    if (!count) return;
    const next = Math.max(0, Math.min(count - 1, index));
    if (next < count - 1) setFollowing(false);
    setActive(next);
    onActive(next);
  }

  const rowsInView = () => Math.max(1, Math.floor((viewHeight - headHeight) / rowHeight) - 1);
  const KEYS = {
    ArrowDown: () => move(active + 1),
    ArrowUp: () => move(active < 0 ? count - 1 : active - 1),
    PageDown: () => move(active + rowsInView()),
    PageUp: () => move((active < 0 ? count : active) - rowsInView()),
    Home: () => move(0),
    End: () => {
      move(count - 1);
      setFollowing(true);
    },
    Enter: (event) => active >= 0 && onOpen(active, event),
    " ": (event) => active >= 0 && onToggle(active, event),
  };
  element.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target !== element) return;
    const act = KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    act(event);
  });
  element.addEventListener(
    "scroll",
    () => {
      // Rows may have come in since the scroll: only a way up means that somebody wants to stay where they are.
      const top = element.scrollTop;
      const left = count * rowHeight + headHeight - viewHeight - top;
      if (left < rowHeight / 2) setFollowing(follows);
      else if (top < lastTop - 1) setFollowing(false);
      lastTop = top;
      schedule();
    },
    { passive: true },
  );
  space.addEventListener("click", (event) => {
    const row = event.target.closest(".vl-row");
    if (!row || !row.id) return;
    const index = Number(row.id.slice(prefix.length));
    setActive(index, false);
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.target.closest("[data-toggle]")) onToggle(index, event);
    else onOpen(index, event);
  });

  return {
    element,
    setCount,
    setActive,
    refresh() {
      isDirty = true;
      schedule();
    },
    follow(value) {
      if (value) follows = true;
      setFollowing(value);
    },
    get active() {
      return active;
    },
    get following() {
      return following;
    },
    get firstInView() {
      return Math.min(Math.max(0, count - 1), Math.floor(element.scrollTop / rowHeight));
    },
    close() {
      resized.disconnect();
      cancelAnimationFrame(frame);
    },
  };
}

// Set a text only where it changed: the browser lays out what is written, changed or not.
export function setText(node, text) {
  if (node.data !== text) node.data = text;
}
