// /traffic/breakpoints?held=b3: what breakpoint rules hold now; one of them in the editor.

import { cleanText, h, keyed, replace } from "../lib/dom.js";
import { addTexts, t, text } from "../lib/i18n.js";
import { keys } from "../lib/keys.js";
import { live } from "../lib/live.js";
import { setQuery } from "../lib/route.js";
import { messageEditor } from "../parts/message-editor.js";
import { proxyOff } from "../parts/proxy-off.js";
import { toast, toastError } from "../parts/toast.js";
import { badge, emptyState } from "../parts/widgets.js";
import texts from "../texts/traffic-tools.js";

addTexts(texts);
export const css = ["traffic-tools.css"];

const SOON_S = 10;
/** What has just come into the editor takes no answer: the last press may have been meant for another one. */
const CALM_MS = 400;

export function mount(root, { route, signal }) {
  let held = [];
  let chosen = "";
  let editor = null;
  let isGone = false; // what was in the editor went on by itself: nothing else opens before a person chooses it
  const list = h("div", { class: "held-list", role: "group", "aria-label": t("breakpoints.held") });
  const panel = h("div", { class: "grow" });
  const body = h("div", { class: "held", hidden: true }, list, panel);
  const empty = h("div");
  const news = h("p", { class: "visually-hidden", role: "status" });
  const section = h("section", { class: "stack", data: { state: "loading" }, "aria-labelledby": "breakpoints-title" },
    h("header", { class: "row wrap" }, h("h2", { id: "breakpoints-title", class: "grow" }, t("breakpoints.title")),
      h("a", { class: "btn", href: "/traffic/rules?new=breakpoint" }, t("breakpoints.add"))),
    empty, body, news);
  replace(root, section);
  live.follow("breakpoints", onEvent, { signal, onError: (error) => (draw("off", error), choose()) });
  const clock = setInterval(tick, 500);
  signal.addEventListener("abort", () => clearInterval(clock));
  keys.add({ key: "Ctrl+Enter", label: t("breakpoints.resume"), always: true, when: () => Boolean(editor), run: () => resume(false) }, signal);
  return { update: (next) => ((route = next), choose()) };

  function onEvent(event) {
    const now = Date.now() / 1000;
    const known = new Set(held.map((one) => one.id));
    held = event.held.map((one) => ({ ...one, endsAt: now + one.resumes_in_s }));
    if (held.some((one) => !known.has(one.id))) replace(news, t("breakpoints.count", { n: held.length }));
    draw(held.length ? "held" : "empty");
    choose();
  }

  function draw(state, error) {
    if (state === "off") held = [];
    section.dataset.state = state;
    body.hidden = !held.length && !editor;
    keyed(list, held, (one) => one.id, makeItem, updateItem);
    if (empty.dataset.state === state) return;
    empty.dataset.state = state;
    replace(empty, state === "empty" ? emptyState({ icon: "pause", title: t("breakpoints.empty"), body: t("breakpoints.empty.body") })
      : state === "off" ? proxyOff(error) : null);
  }

  function makeItem(one) {
    return h("button", { class: "btn held-item", type: "button", data: { id: one.id }, on: { click: () => setQuery({ held: one.id }) } },
      h("span", { class: "row" }, badge(t(`rules.word.${one.on}`), one.on === "request" ? "info" : "ok"), badge(cleanText(one.status ?? one.method)), h("span", { class: "countdown muted" })),
      h("span", { class: "mono" }, cleanText(one.url)));
  }

  function updateItem(item, one) {
    item.setAttribute("aria-pressed", String(one.id === chosen));
    showTime(item.querySelector(".countdown"), one);
  }

  function showTime(el, one) {
    const left = Math.max(0, Math.ceil(one.endsAt - Date.now() / 1000));
    if (el.dataset.left === String(left)) return;
    el.dataset.left = String(left);
    el.dataset.state = left <= SOON_S ? "soon" : "waiting";
    replace(el, t("breakpoints.left", { n: left }));
  }

  function tick() {
    for (const one of held) {
      const item = list.querySelector(`[data-id="${CSS.escape(one.id)}"] .countdown`);
      if (item) showTime(item, one);
    }
    const one = held.find((each) => each.id === chosen);
    const el = panel.querySelector("header .countdown");
    if (one && el) showTime(el, one);
  }

  /** Open what the URL names, else the longest held; say so when what is being edited has gone on. */
  function choose() {
    const wanted = route.query.get("held");
    if (chosen && !held.some((one) => one.id === chosen)) {
      isGone = !editor.isAnswered;
      if (isGone && editor.isChanged()) toast(t("breakpoints.gone", { id: chosen }), { kind: "warn" });
      replace(panel, isGone ? h("p", { class: "muted" }, t("breakpoints.over", { id: chosen })) : null);
      const isNamed = chosen === wanted;
      chosen = "";
      editor = null;
      body.hidden = !held.length;
      if (isNamed) return setQuery({ held: null }); // crabd gives its name again after a restart
    }
    const found = held.find((one) => one.id === wanted) ?? (editor || isGone ? null : held[0]);
    if (!found || found.id === chosen) return;
    isGone = false;
    chosen = found.id;
    open(found);
    for (const item of list.children) item.setAttribute("aria-pressed", String(item.dataset.id === chosen));
  }

  function open(one) {
    const made = messageEditor({
      method: one.method, url: one.url, status: one.on === "response" ? one.status : null, headers: one.headers,
      body: one.body_note && !one.body_sample ? null : one.body_sample, note: one.body_note ? cleanText(one.body_note) : "",
    });
    const answers = [
      h("button", { class: "btn danger", type: "button", disabled: true, on: { click: () => resume(true) } }, t("breakpoints.abort")),
      h("button", { class: "btn primary", type: "submit", disabled: true, title: "Ctrl+Enter" }, t("breakpoints.resume"))];
    const mine = (editor = { ...made, id: one.id, isCalm: true, isAnswered: false, isChanged: () => { try { return Object.keys(made.edits()).length > 0; } catch { return true; } } });
    setTimeout(() => {
      mine.isCalm = false;
      for (const button of answers) button.disabled = false;
    }, CALM_MS);
    replace(panel, h("form", { class: "card stack", data: { held: one.id }, "aria-label": t("breakpoints.edit", { on: t(`rules.word.${one.on}`), id: one.id }), on: { submit: (event) => (event.preventDefault(), resume(false)) } },
      h("header", { class: "row wrap" }, h("h3", { class: "grow" }, t("breakpoints.edit", { on: t(`rules.word.${one.on}`), id: one.id })), h("span", { class: "countdown muted" })),
      one.on === "response" ? h("p", { class: "mono" }, `${cleanText(one.method)} ${cleanText(one.url)}`) : null,
      made.el,
      h("div", { class: "row end" }, answers)));
    tick();
  }

  async function resume(abort) {
    const mine = editor;
    if (mine.isCalm || mine.isAnswered) return;
    const { id } = mine;
    try {
      const edits = abort ? { abort: true } : mine.edits();
      mine.isAnswered = true; // the topic may tell that it is gone before the call returns
      const { value } = await live.call("crab_breakpoints_resume", { id, ...edits });
      const dropped = value.dropped_headers ?? [];
      const said = dropped.length ? text(t("breakpoints.dropped", { names: dropped.join(", ") })) : "";
      toast(`${text(t(abort ? "breakpoints.aborted" : "breakpoints.resumed", { id }))} ${said}`.trim(), { kind: said ? "warn" : "ok" });
      if (route.query.get("held") === id) setQuery({ held: null });
    } catch (error) {
      mine.isAnswered = false;
      toastError(error);
    }
  }
}
