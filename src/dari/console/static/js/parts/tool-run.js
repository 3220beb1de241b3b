// One tool: its form, its call with progress and cancel, its result. The Tools page and the palette over a pane use it.

import { cleanText, h, icon, replace } from "../lib/dom.js";
import { CallHistory } from "../lib/call-history.js";
import { duration } from "../lib/format.js";
import { addTexts, t } from "../lib/i18n.js";
import { live } from "../lib/live.js";
import { isObject } from "../lib/json-value.js";
import { withoutSecrets } from "../lib/schema.js";
import { loadStyle } from "../lib/style.js";
import { annotationsOf, listTools } from "../lib/tool-list.js";
import texts from "../texts/tools.js";
import { schemaForm } from "./schema-form.js";
import { hostRequests } from "./request-hosts.js";
import { badge, copyText } from "./widgets.js";

addTexts(texts);
loadStyle("tools.css");

export const calls = new CallHistory(localStorage, withoutSecrets);

/** Every listed tool with where it comes from, and what servers listed that cannot be used. */
export async function loadTools() {
  const [tools, known] = await Promise.all([live.tools(), live.call("dari_tool_origins").catch(() => null)]);
  const origins = new Map((known?.value?.tools ?? []).map((one) => [one.name, one]));
  return { entries: listTools(tools, origins), leftOut: known?.value?.left_out ?? [], held: known?.value?.held ?? [] };
}

export function annotationBadges(tool) {
  return annotationsOf(tool).map(([name, isWarning]) =>
    h("span", { class: ["badge", isWarning ? "bad" : "info"], title: t(`tools.about.${name}`) }, t(`tools.hint.${name}`)),
  );
}

/** toolRun(entry, {args, view, signal, onArgs, onView, onDone(result, text)}) → {el, run(), set(args), focus()}. */
export function toolRun(entry, { args, view = "", raw = true, signal, onArgs = () => {}, onView = () => {}, onDone = () => {} } = {}) {
  const { tool } = entry;
  const form = schemaForm(tool.inputSchema, args, { raw, onChange: onArgs });
  const output = h("div", { class: "stack" });
  const questions = h("div", { class: "stack" });
  const progress = h("progress", { "aria-label": t("tools.running") });
  const elapsed = h("span", { class: "muted small mono" });
  const said = h("span", { class: "muted small ellipsis" });
  const busy = h("div", { class: "row wrap run-busy", hidden: true }, progress, elapsed, said);
  const isDangerous = tool.annotations?.destructiveHint === true && tool.annotations?.readOnlyHint !== true;
  const runButton = h(
    "button",
    { class: ["btn", isDangerous ? "danger" : "primary"], type: "button", title: "Ctrl+Enter", on: { click: run } },
    icon("play"),
    t("tools.run"),
  );
  const stop = h(
    "button",
    { class: "btn", type: "button", hidden: true, on: { click: () => abort?.abort(new DOMException("", "AbortError")) } },
    icon("stop"),
    t("tools.cancel"),
  );
  const reset = h("button", { class: "btn ghost", type: "button", on: { click: () => form.set() } }, t("tools.reset"));
  let abort = null;

  const el = h(
    "div",
    { class: "stack tool-run", data: { state: "idle" }, on: { keydown: onKey } },
    form.el,
    h(
      "div",
      { class: "row wrap" },
      runButton,
      stop,
      reset,
      h("span", { class: "grow" }),
      copyMenu(entry, () => form.value),
    ),
    busy,
    questions,
    output,
  );
  signal?.addEventListener("abort", () => abort?.abort(signal.reason));

  function onKey(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      event.stopPropagation();
      if (!event.repeat) run();
    } else if (event.key === "Escape" && abort) {
      event.preventDefault();
      event.stopPropagation();
      stop.click();
    }
  }

  function onProgress({ progress: done, total, message }) {
    if (typeof total === "number" && total > 0) {
      progress.max = total;
      progress.value = Math.min(done, total);
    }
    replace(said, [typeof total === "number" ? `${done} / ${total}` : `${done ?? ""}`, cleanText(message ?? "")].filter(Boolean).join(" · "));
  }

  async function run() {
    if (abort) return;
    if (form.problems().length) return form.touchAll();
    const mine = (abort = new AbortController());
    const started = performance.now();
    const sent = form.value;
    const over = new AbortController();
    hostRequests(questions, entry.server || entry.name, over.signal);
    const tick = () => replace(elapsed, duration(Math.round((performance.now() - started) / 100) * 100));
    const timer = setInterval(tick, 100);
    tick();
    progress.removeAttribute("value");
    replace(said);
    el.dataset.state = "running";
    for (const [one, hidden] of [
      [busy, false],
      [stop, false],
      [runButton, true],
    ])
      one.hidden = hidden;
    let result = null;
    let outcome = "ok";
    try {
      result = await live.request("tools/call", { name: entry.name, arguments: sent }, { signal: mine.signal, onProgress });
      if (result?.isError) outcome = "error";
    } catch (error) {
      outcome = mine.signal.aborted ? "cancelled" : "error";
      result = {
        isError: true,
        content: outcome === "cancelled" ? [] : [{ type: "text", text: [error.message, error.hint].filter(Boolean).join("\n") }],
      };
    } finally {
      clearInterval(timer);
      over.abort();
      abort = null;
    }
    const ms = performance.now() - started;
    el.dataset.state = outcome;
    for (const [one, hidden] of [
      [busy, true],
      [stop, true],
      [runButton, false],
    ])
      one.hidden = hidden;
    calls.add({
      tool: entry.name,
      schema: isObject(tool.inputSchema) ? tool.inputSchema : {},
      args: sent,
      at: Date.now(),
      ms: Math.round(ms),
      outcome,
    });
    const { resultView } = await import("./tool-result.js");
    replace(
      output,
      outcome === "cancelled"
        ? badge(t("result.cancelled"), "warn")
        : resultView(result, { tool, ms, outcome, view, onView: (id) => ((view = id), onView(id)) }),
    );
    output.firstElementChild?.scrollIntoView({ block: "nearest" });
    onDone(result, outcome);
  }

  return { el, run, form, set: form.set, focus: form.focus };
}

/** A menu of the same call for other programs. */
function copyMenu(entry, args) {
  const call = () => ({ name: entry.name, args: args(), server: entry.server, own: entry.own, endpoint: `${location.origin}/mcp` });
  const hasCommand = entry.server || entry.name.startsWith("crewx_tools_");
  const kinds = entry.scope === "admin" ? ["mcp"] : ["mcp", "curl", "python", ...(hasCommand ? ["cli"] : [])];
  const select = h(
    "select",
    {
      class: "select",
      "aria-label": t("tools.copyAs"),
      title: t("tools.copy.token"),
      on: {
        change: async () => {
          const kind = select.value;
          select.value = "";
          const snippets = await import("../lib/snippets.js");
          await copyText({ mcp: snippets.asMcp, curl: snippets.asCurl, python: snippets.asPython, cli: snippets.asCli }[kind](call()));
          select.dataset.copied = kind;
        },
      },
    },
    h("option", { value: "" }, t("tools.copyAs")),
  );
  select.append(...kinds.map((kind) => h("option", { value: kind }, t(`tools.copy.${kind}`))));
  return select;
}
