// Terminals: every pane of agents and people, live; several beside each other. /terminals/1,3 shows two of them.

import { cleanText, h, icon, keyed, replace } from "../lib/dom.js";
import { addTexts, t } from "../lib/i18n.js";
import { keys, palette } from "../lib/keys.js";
import { live } from "../lib/live.js";
import { go, setQuery } from "../lib/route.js";
import { paneCard, typistName } from "../parts/pane-card.js";
import { toastError } from "../parts/toast.js";
import { badge, dot, emptyState } from "../parts/widgets.js";
import texts from "../texts/terminals.js";

addTexts(texts);
export const css = ["terminals.css"];
const MAX_BESIDE = 6;

export function mount(root, { route, signal }) {
  const cards = new Map();
  const mine = new Set();
  let known = { is_running: true, panes: [], focused: "", waiting: [] };
  let hasHeard = false;
  const list = h("nav", { class: "pane-list", "aria-label": t("term.list") });
  const panes = h("div", { class: "panes" });
  const empty = h("div", { class: "pane-hint" });
  const place = h("div", { class: "terminals" }, list, h("div", { class: "stack grow" }, panes), empty);
  const commands = h("button", { class: "btn", type: "button", "aria-pressed": "false", on: { click: () => setQuery({ commands: showsCommands() ? null : 1 }) } }, icon("audit"), t("term.commands"));
  const add = () => h("button", { class: "btn primary", type: "button", on: { click: () => open().catch(toastError) } }, icon("plus"), t("term.new"));
  root.append(h("header", { class: "page-head" }, h("h1", {}, t("term.title")), commands, add()),
    place);

  const shownIds = () => (route.path[0] || "").split(",").filter(Boolean).slice(0, MAX_BESIDE);
  const showsCommands = () => route.query.get("commands") === "1";
  const address = (ids) => `/terminals${ids.length ? `/${ids.map(encodeURIComponent).join(",")}` : ""}${location.search}`;
  const hide = (id) => go(address(shownIds().filter((one) => one !== id)));
  const current = () => [...cards.values()].find(({ card }) => card.el.contains(document.activeElement))?.card || cards.values().next().value?.card;

  async function open(options = {}) {
    const { value } = await live.call("dari_terminal_open", options);
    mine.add(value.pane_id);
    go(address(options.target ? [...shownIds(), value.pane_id] : [value.pane_id]));
  }

  function drawPanes() {
    const ids = shownIds();
    for (const [id, one] of cards) {
      if (ids.includes(id)) continue;
      one.abort.abort();
      one.card.el.remove();
      cards.delete(id);
    }
    for (const id of ids) {
      if (cards.has(id)) continue;
      const abort = new AbortController();
      signal.addEventListener("abort", () => abort.abort(), { signal: abort.signal });
      const card = paneCard({
        id, signal: abort.signal, isMine: mine.delete(id), showsCommands: showsCommands(), find: ids.length === 1 ? route.query.get("find") || "" : "",
        onHide: () => hide(id), onSplit: (target) => open({ where: "split", target }).catch(toastError), onFind: (find) => setQuery({ find }),
      });
      cards.set(id, { card, abort });
      panes.append(card.el);
    }
    for (const { card } of cards.values()) card.showCommands(showsCommands());
    commands.setAttribute("aria-pressed", showsCommands());
    panes.style.setProperty("--across", ids.length < 2 ? 1 : 2);
    place.dataset.state = ids.length ? "panes" : known.panes.length ? "list" : "none";
    commands.hidden = !ids.length;
    empty.hidden = ids.length > 0 || !hasHeard;
    if (!empty.hidden) {
      const all = address(known.panes.slice(0, MAX_BESIDE).map((one) => one.id));
      replace(empty, known.panes.length
        ? [h("p", { class: "muted grow" }, t("term.pick.body")), known.panes.length > 1 ? h("a", { class: "btn", href: all }, icon("split"), t("term.all")) : null]
        : emptyState({ icon: "terminals", title: t("term.none"), body: t("term.none.body"), action: add() }));
    }
    drawList();
  }

  function item(pane) {
    const link = h("a", { class: "ellipsis", href: `/terminals/${encodeURIComponent(pane.id)}` });
    const beside = h("button", { class: "btn ghost icon", type: "button", on: { click: () => {
      const ids = shownIds();
      go(address(ids.includes(pane.id) ? ids.filter((one) => one !== pane.id) : [...ids, pane.id]));
    } } }, icon("split"));
    const mark = h("span", { class: "row" });
    const under = h("span", { class: "under ellipsis" });
    const el = h("div", { class: "pane-item", data: { pane: pane.id } }, mark, link, beside, under);
    el.fill = (one) => {
      const isOpen = shownIds().includes(one.id);
      el.dataset.open = isOpen ? "yes" : "no";
      el.dataset.state = stateOf(one);
      if (isOpen) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
      beside.setAttribute("aria-label", String(t(isOpen ? "term.away" : "term.beside", { id: one.id })));
      beside.title = beside.getAttribute("aria-label");
      replace(mark, dot({ running: "busy", exited: "bad" }[stateOf(one)] || "ok", one.exit_code === null ? one.process : t("term.exited", { code: one.exit_code })));
      replace(link, `${one.id} · ${cleanText(one.name, 40)}`);
      const calls = known.waiting.filter((call) => call.pane_id === one.id).length;
      replace(under, calls ? [badge(t("nav.waiting", { n: calls }), "warn"), " "] : null, one.holder ? [badge(t("term.heldShort", { name: cleanText(one.holder.name, 30) }), "warn"), " "] : null,
        one.running ? cleanText(one.running.command, 120) : cleanText(one.title || one.cwd, 120), one.last_typist ? [" – ", typistName(one.last_typist)] : null);
    };
    return el;
  }

  function stateOf(pane) {
    return pane.exit_code !== null ? "exited" : pane.running || !pane.is_at_prompt ? "running" : "idle";
  }

  function drawList() {
    list.hidden = !known.panes.length;
    keyed(list, known.panes, (one) => one.id, item, (el, one) => el.fill(one));
    for (const [id, { card }] of cards) card.setWaiting(known.waiting.filter((call) => call.pane_id === id));
  }

  live.follow("panes", (event) => {
    known = event;
    hasHeard = true;
    root.dataset.state = event.is_running ? "running" : "stopped";
    drawPanes();
  }, { signal });
  keys.add({ key: "n", label: t("key.new"), run: () => open().catch(toastError) }, signal);
  keys.add({ key: "t", label: t("key.take"), run: () => current()?.takeOrBack().catch(toastError) }, signal);
  keys.add({ key: "/", label: t("key.find"), run: () => current()?.showFinder(true) }, signal);
  keys.add({ key: "c", label: t("key.commands"), run: () => commands.click() }, signal);
  for (const key of ["Ctrl+Shift+m", "Alt+Shift+m", "Alt+m"]) {
    keys.add({ key, label: t("term.palette"), always: true, run: () => current()?.openPalette().catch(toastError) }, signal);
  }
  palette.add({ title: t("term.new"), group: t("term.title"), run: () => open().catch(toastError) }, signal);
  drawPanes();
  return { update: drawPanes };
}
