// Home: what runs, how an agent is connected, which agents there are, what the doctor finds.

import { h, icon, keyed, replace } from "../lib/dom.js";
import { addTexts, t } from "../lib/i18n.js";
import { keys } from "../lib/keys.js";
import { live } from "../lib/live.js";
import { toast, toastError } from "../parts/toast.js";
import { copyButton, dot } from "../parts/widgets.js";
import texts from "../texts/home.js";
import { agentsCard, connectCard } from "./home-connect.js";
import { crabCard } from "./home-crab.js";
import { loadCard } from "./home-load.js";

addTexts(texts);
export const css = ["home.css"];

const STATES = { ok: "ok", warning: "warn", failed: "bad" };

export function mount(root, { route, signal }) {
  const runs = h("ul", { class: "home-runs", "aria-label": t("home.runs") });
  const address = h("code", { class: "muted ellipsis" });
  const connect = connectCard({ route, signal });
  const agents = agentsCard();
  const doctor = doctorCard(signal);
  root.append(
    h("header", { class: "page-head" }, h("h1", {}, t("nav.home")), address, copyButton(() => address.textContent, t("home.copy.url"))), runs,
    h("div", { class: "home-columns" }, h("div", { class: "stack" }, connect.el, agents.el), h("div", { class: "stack" }, doctor.el, crabCard(signal), loadCard(signal))));
  let hub = null;
  const draw = () => hub && drawRuns(runs, hub, live.state === "open");
  live.follow("hub", (state) => {
    replace(address, (hub = state).url);
    draw();
  }, { signal });
  live.onState(draw, signal);
  live.follow("clients", ({ clients }) => {
    connect.setClients(clients);
    agents.setClients(clients);
  }, { signal });
  keys.add({ key: "r", label: t("home.doctor.again"), run: doctor.check }, signal);
  return { update: connect.update };
}

/** Without a connection the numbers are those of before, and say nothing of what runs now. */
function drawRuns(list, state, isKnown) {
  const daemons = Object.entries(state.daemons).map(([name, isOn]) => ({ id: name, name, href: { crabd: "/traffic", cruxd: "/terminals", kebabd: "/knowledge" }[name], state: isOn ? "ok" : "off", label: t(isOn ? "home.on" : "home.off"), note: t(`home.${name}`) }));
  const items = [
    { id: "hub", name: "hub", state: isKnown ? "ok" : "bad", label: t(isKnown ? "home.on" : "home.lost"), note: t("home.hub"), href: null },
    ...daemons,
    { id: "servers", name: t("home.servers"), state: state.failing ? "warn" : state.servers ? "ok" : "off", label: String(state.servers), note: state.failing ? t("home.servers.failing", { n: state.failing }) : t("home.servers.note"), href: "/servers" },
    { id: "agents", name: t("home.agents.now"), state: state.agents ? "ok" : "off", label: String(state.agents), note: t("home.agents.note"), href: null },
    { id: "waiting", name: t("home.waiting"), state: state.waiting ? "warn" : "off", label: String(state.waiting), note: t("home.waiting.note"), href: "/approvals" },
  ];
  if (!isKnown) for (const one of items.slice(1)) one.state = "off";
  keyed(list, items, (one) => one.id, (one) => h("li", { class: "card row", data: { id: one.id } }), (el, one) => {
    const shown = { state: one.state, label: String(one.label), note: String(one.note) };
    if (Object.entries(shown).every(([name, value]) => el.dataset[name] === value)) return; // keeps the focus of a link
    Object.assign(el.dataset, shown);
    const name = h("strong", {}, one.name);
    replace(el, dot(one.state, one.label), one.href ? h("a", { href: one.href, class: "grow", title: one.note }, name) : h("span", { class: "grow", title: one.note }, name),
      /^\d+$/.test(one.label) ? h("span", { class: "home-number" }, one.label) : null);
  });
}

function doctorCard(signal) {
  const list = h("ul", { class: "stack tight" });
  const again = h("button", { class: "btn ghost icon", type: "button", "aria-label": t("home.doctor.again"), title: t("home.doctor.again"), on: { click: check } }, icon("refresh"));
  const el = h("section", { class: "card", "aria-labelledby": "home-doctor", data: { state: "checking" } },
    h("div", { class: "row" }, h("h2", { id: "home-doctor", class: "grow" }, t("home.doctor")), again), list);
  async function check() {
    el.dataset.state = "checking";
    try {
      const { value } = await live.call("dari_doctor", {}, { signal });
      el.dataset.state = value.status;
      replace(list, value.checks.map((one) => h("li", { class: "home-check", data: { check: one.name, state: one.status } },
        h("div", { class: "row top" }, dot(STATES[one.status], t(`home.doctor.${one.status}`)), h("div", { class: "grow" }, h("strong", {}, one.name), " ", h("span", { class: "muted" }, one.found))),
        one.hint ? h("div", { class: "row home-fix" }, h("span", { class: "grow" }, h("span", { class: "label" }, t("home.doctor.fix")), " ", one.hint), copyButton(one.hint, t("home.doctor.copy")),
          /^chmod /.test(one.hint) ? h("button", { class: "btn", type: "button", on: { click: () => fix(one.name) } }, t("home.doctor.mend")) : null) : null)));
    } catch (error) {
      if (!signal.aborted) toastError(error);
    }
  }
  async function fix(name) {
    try {
      toast((await live.call("dari_doctor_fix", { check: name })).value.done, { kind: "ok" });
    } catch (error) {
      toastError(error);
    }
    check();
  }
  live.onState((state) => (state === "open" ? check() : (el.dataset.state = "checking")), signal);
  return { el, check };
}
