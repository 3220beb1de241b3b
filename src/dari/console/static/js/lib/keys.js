// Keys of the page and commands of the palette. A key is "r", "Ctrl+k", "Shift+/", or a sequence "g t".

const bindings = new Set();
const commands = new Set();
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

export const keys = {
  /** {key, label, run(event), when?, always?}: `always` also while a person types. Removed with the signal. */
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
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    const name = nameOf(event);
    const typing = isTyping(event.target);
    const sequence = pending ? `${pending} ${name}` : name;
    clearTimeout(pendingTimer);
    pending = "";
    const usable = [...bindings].reverse().filter((one) => (one.always || !typing) && (!one.when || one.when()));
    const hit = usable.find((one) => one.key === sequence) || usable.find((one) => one.key === name);
    if (hit) {
      event.preventDefault();
      hit.run(event);
    } else if (usable.some((one) => one.key.startsWith(`${sequence} `))) {
      pending = sequence;
      pendingTimer = setTimeout(() => (pending = ""), 1200);
    }
  });
}
