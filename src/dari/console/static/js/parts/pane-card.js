// A pane with what belongs to it: who types, taking over, its commands, its history.

import { cleanText, h, icon, keyed, replace } from "../lib/dom.js";
import { duration, when } from "../lib/format.js";
import { t, text } from "../lib/i18n.js";
import { live } from "../lib/live.js";
import { confirmDialog } from "./dialog.js";
import { termView } from "./term-view.js";
import { toast, toastError } from "./toast.js";
import { badge, copyButton, copyText } from "./widgets.js";

export function typistName(one) {
  if (!one) return "";
  if (one.kind === "agent") return t("block.agent", { name: cleanText(one.name, 60) });
  return t("block.person", { name: cleanText(one.name, 60), place: t(`place.${one.place || "terminal"}`) });
}

function button(name, label, run, props = {}) {
  return h("button", { class: "btn ghost icon", type: "button", "aria-label": label, title: label, on: { click: run }, ...props }, icon(name));
}

/** {id, signal, isMine, onClose, onSplit, onState}: `isMine` when this page has taken the pane over already. */
export function paneCard({ id, signal, isMine = false, showsCommands, find = "", onHide, onSplit, onFind }) {
  let wantsTyping = isMine;
  let isTaking = false;
  let holder = null;
  let taken = 0; // how often the pane had been taken over when we last did
  let bells = 0;
  let chosen = -1;
  let drawing = 0;
  const blocks = new Map();
  const view = termView({ paneId: id, signal, onFrame: take, onError: fail, onLeave: leave, onPalette: () => openPalette().catch(toastError) });
  const title = h("h2", { class: "ellipsis" }, id);
  const about = h("span", { class: "pane-about muted small ellipsis grow" });
  const state = h("span", { class: "row" });
  const takeButton = h("button", { class: "btn", type: "button", on: { click: () => takeOrBack().catch(toastError) } });
  const note = h("div", { class: "pane-note", role: "status", hidden: true });
  const waiting = h("div", { class: "stack tight" });
  const followButton = h("button", { class: "btn term-follow", type: "button", on: { click: view.follow } }, icon("down"), t("term.follow"));
  view.el.append(followButton);

  // Search

  const needle = h("input", { class: "input", type: "search", "aria-label": t("term.find.label"), placeholder: t("term.find.label"), value: find });
  const regex = h("input", { type: "checkbox" });
  const found = h("span", { class: "muted small", role: "status" });
  const hits = h("div", { class: "hits", hidden: true });
  const finder = h("form", { class: "pane-find", role: "search", "aria-label": t("term.findIn", { id }), hidden: !find, on: { submit: (event) => (event.preventDefault(), search().catch(toastError)) } },
    needle, h("label", { class: "check small nowrap" }, regex, t("term.regex")), found,
    button("close", t("close"), () => showFinder(false)));

  function showFinder(on) {
    finder.hidden = !on;
    if (on) needle.focus();
    else {
      hits.hidden = true;
      onFind(null);
      view.follow();
      view.focus();
    }
  }

  async function search() {
    onFind(needle.value);
    if (!needle.value) return;
    const { value } = await live.call("dari_terminal_search", { pane_id: id, text: needle.value, regex: regex.checked }, { signal });
    const n = value.hits.length;
    replace(found, n ? t(value.is_cut ? "term.find.more" : "term.find.count", { n }) : t("term.find.none"));
    finder.dataset.hits = String(n);
    hits.hidden = !n;
    replace(hits, value.hits.map((hit) =>
      h("button", { type: "button", on: { click: () => view.lookBack(value.history + hit.row).catch(toastError) } }, hit.text || " ")));
    if (n) await view.lookBack(value.history + value.hits[0].row);
  }

  // Commands

  const list = h("ol", { "aria-label": t("term.commandsOf", { id }) });
  const noBlocks = h("p", { class: "muted small pane-note" }, t("term.commands.none"));
  const side = h("section", { class: "blocks", "aria-label": t("term.commandsOf", { id }), hidden: !showsCommands },
    h("div", { class: "blocks-head" }, h("h3", { class: "grow" }, t("term.commands")),
      button("up", t("block.next"), () => jumpToFailure(-1)), button("down", t("block.previous"), () => jumpToFailure(1))),
    noBlocks, list);

  function stateOf(block) {
    if (block.is_running) return "running";
    if (block.exit_code === null || block.exit_code === undefined) return "unknown";
    return block.exit_code === 0 ? "ok" : "failed";
  }

  function blockItem(block) {
    const code = h("code", {}, block.command);
    const facts = h("div", { class: "facts" });
    const item = h("li", { class: "block", data: { id: block.id } }, code, facts,
      // A command that is shown shortened, or with its hidden characters spelled out, is another one than was run.
      h("div", { class: "row" }, block.is_exact
        ? [copyButton(block.command, t("block.copyCommand")), button("refresh", t("block.again"), () => again(block).catch(toastError))]
        : h("span", { class: "muted small grow" }, t("block.notExact")),
        button("file", t("block.copyOutput"), async () => copyText((await command(block.id)).output)),
        button("eye", t("block.jump"), () => jump(block.id).catch(toastError))));
    item.fill = (one) => {
      item.dataset.state = stateOf(one);
      const label = t(`block.${stateOf(one)}`, { code: one.exit_code });
      replace(facts, badge(one.is_running ? t("block.running") : String(one.exit_code ?? "?"), { ok: "ok", failed: "bad", running: "info" }[stateOf(one)]),
        h("span", { class: "visually-hidden" }, label), one.is_running ? null : h("span", {}, duration(one.duration_ms || 0)),
        (one.typists || []).map((who) => h("span", { data: { typist: who.kind } }, typistName(who))),
        h("span", { class: "ellipsis", title: cleanText(one.cwd) }, cleanText(one.cwd)), when(one.started));
    };
    return item;
  }

  function drawBlocks() {
    drawing = 0;
    const items = [...blocks.values()].reverse();
    noBlocks.hidden = items.length > 0;
    keyed(list, items, (one) => one.id, blockItem, (el, one) => {
      if (el.shown !== one) el.fill(one);
      el.shown = one;
    });
  }

  async function command(commandId) {
    return (await live.call("dari_terminal_command", { command_id: commandId }, { signal })).value;
  }

  async function jump(commandId) {
    const { row, history } = await command(commandId);
    if (row === null || row === undefined) return toast(t("block.gone"));
    await view.lookBack(history + row);
  }

  function jumpToFailure(step) {
    const items = [...blocks.values()].reverse();
    const failed = items.map((one, at) => (stateOf(one) === "failed" ? at : -1)).filter((at) => at >= 0);
    if (!failed.length) return toast(t("block.noFailure"));
    const next = step > 0 ? failed.find((at) => at > chosen) : failed.findLast((at) => at < chosen);
    chosen = next ?? (step > 0 ? failed[0] : failed.at(-1));
    [...list.children].forEach((el, at) => (el.dataset.chosen = at === chosen ? "yes" : "no"));
    list.children[chosen].scrollIntoView({ block: "nearest" });
    jump(items[chosen].id).catch(toastError);
  }

  async function again(block) {
    const body = h("code", {}, block.command);
    if (!(await confirmDialog({ title: t("block.again.title", { id }), body, action: t("block.again") }))) return;
    await takeOver();
    view.send({ paste: block.command });
    view.send({ key: "Enter" });
  }

  // Who types

  async function takeOver() {
    wantsTyping = isTaking = true;
    const taking = live.call("dari_terminal_take_over", { pane_id: id });
    if (view.facts?.exit_code === null) view.setTyping(true, taking);
    try {
      ({ holder, times_taken: taken } = (await taking).value);
    } catch (error) {
      wantsTyping = false;
      throw error;
    } finally {
      isTaking = false;
      drawState();
    }
  }

  async function handBack() {
    wantsTyping = false;
    view.setTyping(false);
    await live.call("dari_terminal_hand_back", { pane_id: id });
    takeButton.focus();
  }

  const takeOrBack = () => (holder && wantsTyping ? handBack() : takeOver());

  function leave() {
    handBack().catch(toastError);
  }

  async function openPalette() {
    const { openToolPalette } = await import("./tool-palette.js");
    openToolPalette({
      paneLabel: text(title.textContent),
      typeInto: async (typed, { enter }) => {
        await takeOver();
        // A server's text: no control characters, and no Enter where the program knows no pastes.
        const plain = String(typed).replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, "").trim();
        view.send({ paste: view.facts?.knows_paste ? plain : plain.replace(/\s*\n\s*/g, " ") });
        if (enter) view.send({ key: "Enter" });
        view.focus();
      },
    });
  }

  async function close() {
    const facts = view.facts;
    const running = [...blocks.values()].find((one) => one.is_running)?.command || (facts?.is_at_prompt ? "" : facts?.title || facts?.name);
    const what = running ? cleanText(running, 200) : t("term.close.idle");
    const yes = (facts && facts.exit_code !== null) || (await confirmDialog({ title: t("term.close.title", { id }), body: t("term.close.body", { what }), action: t("term.close"), danger: true }));
    if (!yes) return;
    await live.call("crux_close_pane", { pane_id: id });
    onHide();
  }

  // What the server tells

  function take(frame, facts) {
    if (frame.is_over) return drawState();
    if (frame.is_whole) blocks.clear();
    for (const block of frame.blocks || []) {
      const before = blocks.get(block.id);
      if (before?.is_running && !block.is_running) view.announce(t(`block.${stateOf(block)}`, { code: block.exit_code }));
      blocks.set(block.id, block);
    }
    while (blocks.size > 200) blocks.delete(blocks.keys().next().value);
    if (frame.blocks?.length || frame.is_whole) drawing ||= requestAnimationFrame(drawBlocks);
    if (frame.bells > bells && bells) view.announce(t("term.bell", { id }));
    bells = frame.bells || 0;
    if (!frame.facts) return;
    // A frame that was made before we took over may come after the answer to that: it does not take the keys away again.
    if (frame.is_whole || facts.times_taken >= taken) {
      holder = facts.holder;
      if (!holder && !isTaking) wantsTyping = false;
    }
    drawState();
  }

  function fail(error) {
    drawState();
    if (error?.name === "not_found") view.el.dataset.state = "over";
    else if (error?.name === "conflict") toastError(error);
    drawState();
  }

  function drawState() {
    const facts = view.facts;
    const shown = view.el.dataset.state;
    el.dataset.held = holder ? "yes" : "no";
    el.dataset.state = shown;
    const isTyping = (Boolean(holder) || isTaking) && wantsTyping && facts?.exit_code === null && shown !== "over";
    view.setTyping(isTyping);
    if (facts) {
      const label = cleanText(facts.title || facts.name, 80);
      replace(title, `${id} · ${label}`);
      replace(about, cleanText(facts.cwd));
    }
    replace(takeButton, icon("hand"), t(isTyping ? "term.back" : holder ? "term.type" : "term.take"));
    takeButton.className = `btn${isTyping ? " primary" : ""}`;
    takeButton.dataset.state = isTyping ? "typing" : holder ? "held" : "free";
    takeButton.disabled = !facts || facts.exit_code !== null || shown === "over";
    const last = facts?.last_typist;
    replace(state, facts && facts.exit_code !== null ? badge(t("term.exited", { code: facts.exit_code }), facts.exit_code ? "bad" : "ok") : null,
      holder ? badge(t("term.heldShort", { name: cleanText(holder.name, 40) }), "warn") : last ? h("span", { class: "pane-about muted small", data: { typist: last.kind } }, t("term.typed", { name: typistName(last) })) : null);
    const message = shown === "over" ? t("term.gone", { id }) : shown === "lost" ? t("term.lost")
      : isTyping && facts.is_asking_secret ? t("term.secret") : holder ? t("term.held", { name: typistName(holder) }) : null;
    note.hidden = !message;
    note.className = `pane-note${holder || shown !== "live" ? " warn" : ""}`;
    replace(note, message);
  }

  const head = h("header", { class: "pane-head" }, title, about, state, takeButton,
    button("search", t("term.find"), () => showFinder(finder.hidden)),
    button("clock", t("term.history"), () => view.lookBack().catch(toastError)),
    button("tools", t("term.palette"), () => openPalette().catch(toastError)),
    button("fit", t("term.fit"), async () => live.call("crux_resize_pane", { pane_id: id, ...view.roomFor() }).catch(toastError)),
    button("split", t("term.split"), () => onSplit(id)),
    button("minus", t("term.away", { id }), onHide), button("trash", t("term.close"), () => close().catch(toastError)));
  const el = h("article", { class: "pane", "aria-label": t("term.screen", { id }), data: { pane: id, held: "no", state: "waiting" } },
    head, waiting, note, finder, hits, h("div", { class: "pane-body" }, view.el, side));
  drawState();
  if (find) search().catch(toastError);

  return {
    el, view, takeOrBack, openPalette, showFinder,
    showCommands: (on) => (side.hidden = !on),
    /** Calls of agents for this pane that wait for a person. */
    setWaiting(calls) {
      keyed(waiting, calls, (one) => one.id, (one) => h("div", { class: "pane-note warn", role: "alert", data: { approval: one.id } },
        icon("approvals"), h("strong", {}, t("term.waits", { client: cleanText(one.client, 60) })), h("code", { class: "grow" }, cleanText(one.message, 400)),
        h("a", { class: "btn", href: `/approvals/${encodeURIComponent(one.id)}` }, t("term.review"))));
    },
  };
}
