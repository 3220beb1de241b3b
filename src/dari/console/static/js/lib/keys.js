// Keys of the page and commands of the palette. A key is "r", "Ctrl+k", "Shift+/", or a sequence "g t".

const bindings = new Set();
const commands = new Set();
/** So long after its last letter a text goes on, also when its field has gone. */
const TYPING_MS = 3000;
const NOTHING = { field: null, at: 0 };
let typed = NOTHING;
let pending = "";
let pendingTimer = 0;

function isTyping(target) {
  return target.closest?.("input, textarea, select, [contenteditable], [data-keys='own']");
}

function nameOf(event) {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const parts = [];
  if (event.ctrlKey || event.metaKey) parts.push("Ctrl");
  if (event.altKey) parts.push("Alt");
  if (event.shiftKey && (event.key.length > 1 || /[a-z]/i.test(event.key))) parts.push("Shift");
  return [...parts, key].join("+");
}

function noteTyping(event) {
  const isLetter = event.key.length === 1 || event.isComposing || event.key === "Process";
  const { field } = typed;
  if (isLetter && isTyping(event.target)) typed = { field: event.target, at: event.timeStamp };
  // A field that goes away under a person's hands leaves the rest of their text to the page: its letters are no commands.
  else if (isLetter && isInText() && (field.disabled || !field.getClientRects().length)) typed = { field, at: event.timeStamp };
  else typed = NOTHING;
}

/** Whether a person is in the middle of a text. */
export const isInText = () => typed.field && performance.now() - typed.at < TYPING_MS;

export const keys = {
  /** {key, label, run(event), when?, always?, repeats?}: `always` also while a person types, `repeats` while the key is
   *  held down. Removed with the signal. */
  add(binding, signal) {
    bindings.add(binding);
    signal?.addEventListener("abort", () => bindings.delete(binding));
    return () => bindings.delete(binding);
  },
  all: () => [...bindings],
};

export const palette = {
  /** {title, group, hint?, run} */
  add(command, signal) {
    commands.add(command);
    signal?.addEventListener("abort", () => commands.delete(command));
    return () => commands.delete(command);
  },
  all: () => [...commands].filter((one) => !one.when || one.when()),
};

export function startKeys() {
  document.addEventListener("pointerdown", () => (typed = NOTHING), true);
  document.addEventListener("keydown", noteTyping, true);
  document.addEventListener("keydown", (event) => {
    const typing = isInText() || isTyping(event.target);
    if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
    const name = nameOf(event);
    const sequence = pending ? `${pending} ${name}` : name;
    clearTimeout(pendingTimer);
    pending = "";
    const usable = [...bindings].reverse().filter((one) => (one.always || !typing) && (!one.when || one.when()));
    const hit = usable.find((one) => one.key === sequence) || usable.find((one) => one.key === name);
    if (hit) {
      event.preventDefault();
      if (!event.repeat || hit.repeats) hit.run(event);
    } else if (usable.some((one) => one.key.startsWith(`${sequence} `))) {
      pending = sequence;
      pendingTimer = setTimeout(() => (pending = ""), 1200);
    }
  });
}
