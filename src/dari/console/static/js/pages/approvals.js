// What waits for a person: the queue, the exact effect first, the answer; what was answered; what holds for good.

import { cleanText, h, icon, keyed, replace } from "../lib/dom.js";
import { left as timeLeft, when } from "../lib/format.js";
import { addTexts, t, text } from "../lib/i18n.js";
import { keys } from "../lib/keys.js";
import { live } from "../lib/live.js";
import { go } from "../lib/route.js";
import { alerts, canAlert, start, turnOff, turnOn } from "../parts/approval-alerts.js";
import { confirmDialog } from "../parts/dialog.js";
import { effectView } from "../parts/effect-view.js";
import { askForRule } from "../parts/rule-dialog.js";
import { toast, toastError } from "../parts/toast.js";
import { badge, emptyState, tabs } from "../parts/widgets.js";
import texts from "../texts/approvals.js";

addTexts(texts);
export const css = ["approvals.css"];

const VIEWS = ["waiting", "history", "rules"];
const KINDS = { approved: "ok", denied: "bad", expired: "warn", withdrawn: "", waiting: "info" };
const URGENT_S = 30;
/** A call that has just come into view takes no answer: the last press may have been meant for another one. */
const CALM_MS = 400;

export function mount(root, { route, signal }) {
  let queue = { waiting: [], answered: [] };
  let offset = 0;
  let chosen = "";
  let shown = null;
  let asked = "";
  let seen = null;
  const head = h("div", { class: "page-head" }, h("h1", {}, t("approvals.title")), alertButton());
  const tabBar = tabs({ label: t("approvals.title"), items: VIEWS.map((id) => ({ id, label: t(`approvals.tab.${id}`) })), current: viewOf(route),
    onSelect: (id) => go(id === "waiting" ? "/approvals" : `/approvals/${id}`) });
  const list = h("ul", { class: "approval-list", "aria-label": t("approvals.tab.waiting") });
  const detail = h("section", { class: "approval-detail card", "aria-label": t("approvals.detail"), data: { state: "none" } });
  const desk = h("div", { class: "approval-desk" }, list, detail);
  const body = h("div", { class: "stack grow" });
  const news = h("p", { class: "visually-hidden", role: "status" });
  root.append(head, tabBar, body, news);

  function viewOf(at) {
    return VIEWS.includes(at.path[0]) ? at.path[0] : "waiting";
  }

  function show(at) {
    const view = viewOf(at);
    tabBar.select(view);
    if (view === "history") return showHistory();
    if (view === "rules") return showRules();
    // What a person looks at stays, also when somebody else answers it: no other call may slide under their finger.
    chosen = at.path[0] || chosen || queue.waiting[0]?.id || "";
    showQueue();
  }

  function showQueue() {
    if (!queue.waiting.length && !chosen) {
      body.dataset.view = "empty";
      return replace(body, emptyState({ icon: "approvals", title: t("approvals.none"), body: t("approvals.none.body"), action: h("a", { class: "btn", href: "/settings/policies" }, t("approvals.policies")) }));
    }
    if (body.dataset.view !== "queue") replace(body, desk);
    body.dataset.view = "queue";
    keyed(list, queue.waiting, (one) => one.id, makeItem, updateItem);
    list.hidden = !queue.waiting.length;
    showDetail();
  }

  function makeItem(one) {
    const left = h("span", { class: "approval-left small" });
    return h("li", {}, h("a", { class: "approval-item", href: `/approvals/${one.id}`, data: { id: one.id } },
      h("span", { class: "mono ellipsis" }, cleanText(one.effect)),
      h("span", { class: "row small muted" }, h("span", { class: "ellipsis grow" }, cleanText(`${one.client || one.who} · ${nameOf(one)}`, 120)), left)));
  }

  function updateItem(el, one) {
    const link = el.firstChild;
    if (one.id === chosen) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
    showLeft(el.querySelector(".approval-left"), one);
  }

  function showLeft(el, one) {
    if (!one.expires_unix) return replace(el, t("approvals.stays"));
    const left = Math.max(0, one.expires_unix - (Date.now() / 1000 + offset));
    el.dataset.state = left < URGENT_S ? "urgent" : "waiting";
    replace(el, t("approvals.left", { time: timeLeft(left) }));
  }

  async function showDetail() {
    const one = [...queue.waiting, ...queue.answered].find((each) => each.id === chosen);
    if (shown && shown.approval.id === chosen) {
      if (one && one.state !== "waiting" && one.state !== shown.approval.state) drawDetail({ ...shown, approval: one });
      return;
    }
    if (asked === chosen) return; // drawn a second time, it would take no answer for a moment more
    shown = null;
    detail.dataset.state = "loading";
    for (const one of detail.querySelectorAll("button, input")) one.disabled = true; // they are for the call before
    const mine = (asked = chosen);
    try {
      const { value } = await live.call("dari_approvals_show", { id: mine }, { signal });
      if (mine !== chosen) return;
      drawDetail(value);
      showDetail(); // it may have been answered meanwhile
    } catch (error) {
      if (signal.aborted || mine !== chosen) return;
      detail.dataset.state = "missing";
      replace(detail, emptyState({ icon: "warn", title: error.message, body: error.hint || "", action: h("a", { class: "btn", href: "/approvals" }, t("approvals.toQueue")) }));
    } finally {
      if (asked === mine) asked = "";
    }
  }

  function drawDetail(value) {
    shown = value;
    const { approval, effect } = value;
    const isOpen = approval.state === "waiting";
    const left = h("span", { class: "badge", data: { left: approval.id } });
    detail.dataset.state = approval.state;
    replace(detail,
      h("div", { class: "row wrap" }, h("h2", { class: "grow mono" }, cleanText(nameOf(approval))),
        isOpen ? left : badge(t(`approvals.state.${approval.state}`), KINDS[approval.state])),
      effectView(effect),
      h("dl", { class: "approval-facts small" },
        fact("approvals.who", approval.client && approval.client !== approval.who ? `${approval.client} (${approval.who})` : approval.who),
        approval.session ? fact("approvals.session", h("a", { href: `/audit?session=${encodeURIComponent(approval.session)}` }, cleanText(approval.session, 60))) : null,
        approval.asked_unix ? fact("approvals.asked", when(approval.asked_unix)) : null,
        fact("approvals.id", h("code", {}, approval.id)),
        approval.by ? fact("approvals.by", approval.by) : null,
        approval.reason ? fact("approvals.note", approval.reason) : null),
      isOpen ? buttons(value) : null);
    if (!isOpen) return;
    showLeft(left, approval);
    const pressed = [...detail.querySelectorAll("[data-decision]")];
    for (const one of pressed) one.disabled = true;
    setTimeout(() => shown === value && pressed.forEach((one) => (one.disabled = false)), CALM_MS);
  }

  function buttons({ approval, can_session: canSession, can_always: canAlways }) {
    const note = h("input", { class: "input", maxlength: "2000", placeholder: t("approvals.note.placeholder"), "aria-label": t("approvals.note.label"), data: { field: "note" },
      on: { keydown: (event) => event.key === "Enter" && !event.isComposing && answer(approval, "deny", { note: note.value }) } });
    const button = (decision, kind, key, run) => h("button", { class: ["btn", kind], type: "button", data: { decision }, on: { click: run || (() => answer(approval, decision)) } },
      t(`approvals.do.${decision === "once" && approval.kind !== "call" ? "agree" : decision}`), h("kbd", { class: "kbd", "aria-hidden": "true" }, key));
    return h("div", { class: "approval-answer stack" },
      h("div", { class: "row wrap" }, button("once", "primary", "a"), canSession ? button("session", "", "s") : null, canAlways ? button("always", "", "w", () => always(shown)) : null),
      h("div", { class: "row" }, note, button("deny", "danger", "d", () => answer(approval, "deny", { note: note.value }))));
  }

  async function answer(approval, decision, more = {}) {
    const next = nextOf(approval.id);
    for (const one of detail.querySelectorAll("button, input")) one.disabled = true;
    try {
      const { value } = await live.call("dari_approvals_answer", { id: approval.id, decision, ...more });
      toast(t(`approvals.done.${decision}`, { what: cleanText(nameOf(value), 80) }), { kind: decision === "deny" ? "info" : "ok" });
      queue = { ...queue, waiting: queue.waiting.filter((one) => one.id !== approval.id) }; // its event may come later
      if (chosen !== approval.id) return;
      chosen = "";
      if (viewOf(route) !== "waiting") return; // they have gone on by themselves
      go(next ? `/approvals/${next}` : "/approvals", { replace: true });
      show(route);
    } catch (error) {
      toastError(error);
      shown = null;
      showDetail();
    }
  }

  async function always(value) {
    const rule = await askForRule(value);
    if (rule) await answer(value.approval, "always", { rule });
  }

  function nextOf(id, step = 1) {
    const ids = queue.waiting.map((one) => one.id);
    const at = ids.indexOf(id);
    return ids[at + step] || (step > 0 ? ids[at - 1] : ids[0]) || "";
  }

  function showHistory() {
    body.dataset.view = "history";
    if (!queue.answered.length) return replace(body, emptyState({ icon: "clock", title: t("approvals.noHistory"), body: t("approvals.noHistory.body"), action: h("a", { class: "btn", href: "/audit?kind=decision" }, t("approvals.inAudit")) }));
    const head = ["when", "state", "effect", "who", "by", "note"].map((one) => h("th", { scope: "col" }, t(`approvals.${one}`)));
    replace(body, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("approvals.tab.history") }, h("table", { class: "table approval-history fold", "aria-label": t("approvals.tab.history") }, h("thead", {}, h("tr", {}, head)),
      h("tbody", {}, queue.answered.map((one) => h("tr", { data: { id: one.id, state: one.state } },
        h("td", { class: "nowrap" }, when(one.answered_unix)), h("td", {}, badge(t(`approvals.state.${one.state}`), KINDS[one.state]), one.for_session ? badge(t("approvals.forSession")) : null),
        h("td", { class: "line" }, h("a", { class: "mono", href: `/approvals/${one.id}` }, cleanText(one.effect, 160))), h("td", {}, cleanText(one.client || one.who, 60)),
        h("td", { class: "wide-only" }, cleanText(one.by, 60)), h("td", {}, cleanText(one.reason, 200))))))));
  }

  async function showRules() {
    if (body.dataset.view !== "rules") replace(body);
    body.dataset.view = "rules";
    let value;
    try {
      ({ value } = await live.call("dari_approvals_rules", {}, { signal }));
    } catch (error) {
      return signal.aborted ? null : toastError(error);
    }
    if (body.dataset.view !== "rules") return;
    const { standing, sessions } = value;
    const rows = [...standing.rules.map(({ rule, summary, uses, last_used_unix: last }) => ruleRow(rule.id, summary, rule.by, rule.expires_unix, uses, last)),
      ...sessions.map((one) => ruleRow(one.id, text(t("rule.session", { what: nameOf(one), who: one.client || one.who })), one.by, 0, null, 0))];
    replace(body, standing.problem ? h("p", { class: "error", role: "alert" }, standing.problem) : null,
      rows.length ? h("ul", { class: "stack rule-list" }, rows) : emptyState({ icon: "key", title: t("rule.none"), body: t("rule.none.body") }),
      standing.file ? h("p", { class: "muted small" }, t("rule.file"), " ", h("code", {}, standing.file)) : null);
  }

  function ruleRow(id, summary, by, expires, uses, last) {
    const remove = h("button", { class: "btn danger", type: "button", on: { click: async () => {
      if (!(await confirmDialog({ title: t("rule.forget.title"), body: t("rule.forget.body", { what: cleanText(summary, 300) }), action: t("rule.forget"), danger: true }))) return;
      try {
        await live.call("dari_approvals_forget", { id });
        toast(t("rule.forgotten"), { kind: "ok" });
      } catch (error) {
        toastError(error);
      }
      showRules();
    } } }, t("rule.forget"));
    return h("li", { class: "card", data: { id } }, h("p", { class: "mono" }, cleanText(summary, 1000)),
      h("div", { class: "row wrap small muted" }, h("span", {}, t("rule.by", { by: cleanText(by, 60) })), uses === null ? badge(t("approvals.forSession")) : h("span", {}, t("rule.uses", { n: uses })), last ? when(last) : null,
        expires ? badge(t("approvals.left", { time: timeLeft(expires - Date.now() / 1000 - offset) }), "warn") : null, h("span", { class: "grow" }), remove));
  }

  function hear(event) {
    queue = event;
    offset = event.now_unix - Date.now() / 1000;
    const fresh = event.waiting.filter((one) => seen && !seen.has(one.id));
    seen = new Set(event.waiting.map((one) => one.id));
    if (fresh.length) replace(news, t("approvals.new", { n: event.waiting.length }));
    show(route);
  }

  function alertButton() {
    const button = h("button", { class: "btn", type: "button", hidden: !canAlert(), "aria-pressed": String(alerts()), data: { state: alerts() ? "on" : "off" } }, icon("bolt"), t("approvals.alerts"));
    button.addEventListener("click", async () => {
      if (alerts()) turnOff();
      else if (!(await turnOn())) toast(t("approvals.alerts.refused"), { kind: "bad" });
      button.setAttribute("aria-pressed", String(alerts()));
      button.dataset.state = alerts() ? "on" : "off";
    });
    return button;
  }

  const press = (decision) => () => detail.querySelector(`[data-decision="${decision}"]:enabled`)?.click();
  const onQueue = () => viewOf(route) === "waiting";
  const bind = (key, label, run, repeats) => keys.add({ key, label: t(label), run, repeats, when: onQueue }, signal);
  bind("a", "approvals.do.once", press("once"));
  bind("s", "approvals.do.session", press("session"));
  bind("w", "approvals.do.always", press("always"));
  bind("d", "approvals.do.deny", () => detail.querySelector("[data-field=note]")?.focus());
  bind("j", "approvals.next", () => chosen && go(`/approvals/${nextOf(chosen, 1)}`), true);
  bind("k", "approvals.previous", () => chosen && go(`/approvals/${nextOf(chosen, -1)}`), true);
  live.follow("approvals", hear, { signal, onError: toastError });
  const timer = setInterval(() => {
    for (const one of queue.waiting) {
      const item = list.querySelector(`[data-id="${one.id}"] .approval-left`);
      if (item) showLeft(item, one);
      if (one.id === chosen) for (const el of detail.querySelectorAll("[data-left]")) showLeft(el, one);
    }
  }, 1000);
  signal.addEventListener("abort", () => clearInterval(timer));
  start();
  return { update: show };
}

function nameOf(one) {
  return one.tool ? `${one.server}/${one.tool}` : one.message || one.server;
}

function fact(label, value) {
  return h("div", { class: "row" }, h("dt", { class: "muted" }, t(label)), h("dd", { class: "ellipsis" }, typeof value === "string" ? cleanText(value, 2000) : value));
}
