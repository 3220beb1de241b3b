/** Calls that a person made, kept in this browser: bounded, without results and without what looks like a secret. */

const KEY = "dari.calls";
const MAX_CALLS = 100;
const MAX_PINNED = 50;
const MAX_ARGS_CHARS = 8000;

export class CallHistory {
  constructor(storage, strip = (_, args) => ({ value: args, left: 0 })) {
    this.storage = storage;
    this.strip = strip;
    this.calls = this.#load();
  }

  /** The call as it is kept: {id, tool, args, at, ms, outcome, pinned, hidden}; args is null where they were too long. */
  add({ tool, schema, args, at, ms, outcome }) {
    const { value, left } = this.strip(schema, args);
    const fits = JSON.stringify(value ?? {}).length <= MAX_ARGS_CHARS;
    const call = {
      id: `${at.toString(36)}${Math.floor(Math.random() * 1e6).toString(36)}`,
      tool,
      args: fits ? value : null,
      at,
      ms,
      outcome,
      pinned: false,
      hidden: left,
    };
    this.calls = [call, ...this.calls];
    this.#save();
    return call;
  }

  pin(id, pinned) {
    this.calls = this.calls.map((call) => (call.id === id ? { ...call, pinned } : call));
    this.#save();
  }

  /** Forget all that is not pinned, or everything; returns what was there, for an undo. */
  clear({ pinned = false } = {}) {
    const before = this.calls;
    this.calls = pinned ? [] : before.filter((call) => call.pinned);
    this.#save();
    return before;
  }

  restore(calls) {
    this.calls = calls;
    this.#save();
  }

  of(tool) {
    return this.calls.filter((call) => !tool || call.tool === tool);
  }

  #load() {
    try {
      const calls = JSON.parse(this.storage.getItem(KEY) ?? "[]");
      return Array.isArray(calls) ? calls.filter((call) => typeof call?.tool === "string" && typeof call.id === "string") : [];
    } catch {
      return [];
    }
  }

  #save() {
    const pinned = this.calls.filter((call) => call.pinned).slice(0, MAX_PINNED);
    const kept = new Set([...pinned, ...this.calls.filter((call) => !call.pinned).slice(0, MAX_CALLS)]);
    this.calls = this.calls.filter((call) => kept.has(call));
    try {
      this.storage.setItem(KEY, JSON.stringify(this.calls));
    } catch {} // storage that is full or forbidden: the history lasts as long as the page
  }
}
