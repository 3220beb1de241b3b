// Connect an agent: what to run or to write for each client, its token, and a mark that turns green at its first call.

import { cleanText, h, icon, replace } from "../lib/dom.js";
import { t, text } from "../lib/i18n.js";
import { clock, count, when } from "../lib/format.js";
import { live } from "../lib/live.js";
import { setQuery } from "../lib/route.js";
import { secretField } from "../parts/secret.js";
import { toast, toastError } from "../parts/toast.js";
import { badge, copyButton, dot, emptyState, field, tabs } from "../parts/widgets.js";

/** What clients call themselves at `initialize`; only for clients without a token of their own. */
export const CLIENTS = {
  "claude-code": { title: "Claude Code", called: /claude.?code/i },
  "claude-desktop": { title: "Claude Desktop", called: /claude.?(ai|desktop)/i },
  cursor: { title: "Cursor", called: /cursor/i },
  vscode: { title: "VS Code", called: /visual studio code|vs.?code/i },
  codex: { title: "Codex", called: /codex/i },
  gemini: { title: "Gemini CLI", called: /gemini/i },
};
const SHARED = "shared";

/** The first call of the agent that this view tells how to connect; null before it. */
export function firstCall(clients, { client, token }) {
  const isOwn = token !== SHARED;
  const matching = clients.filter((one) => one.calls && (isOwn ? one.client === token : !one.client && CLIENTS[client].called.test(one.name)));
  return matching.sort((a, b) => a.first_call_unix - b.first_call_unix)[0] || null;
}

export function connectCard({ route, signal }) {
  let view = read(route);
  let tokens = [];
  let clients = [];
  let asked = 0;
  const select = h("select", { class: "select grow", on: { change: () => setQuery({ token: select.value }) } });
  const make = h("button", { class: "btn", type: "button", hidden: true, on: { click: create } }, icon("plus"), h("span", {}));
  const secret = secretField({ label: t("home.token"), load: async () => (await live.call("dari_tokens_show", { name: view.token })).value.secret });
  const tokenRow = h("div", { class: "stack tight" }, field(t("home.token"), select, t("home.token.help")), h("div", { class: "row wrap" }, secret, make));
  const clientTabs = tabs({ label: t("home.clients"), items: Object.entries(CLIENTS).map(([id, one]) => ({ id, label: one.title })), current: view.client, onSelect: (id) => setQuery({ client: id, token: null, via: null }) });
  const via = h("div", { class: "row", role: "group", "aria-label": t("home.via") });
  // The button stays while its text changes: who tabbed to it keeps the focus.
  const where = h("div", { class: "row wrap" });
  const code = h("pre", { tabindex: "0", role: "group", "aria-label": t("home.snippet") });
  const snippet = h("div", { class: "stack tight home-snippet", hidden: true }, where, h("div", { class: "code home-code" }, code, copyButton(whole, t("home.copy.snippet"))));
  const mark = h("div", { class: "row home-mark", role: "status", data: { state: "waiting" } });
  const el = h("section", { class: "card", "aria-labelledby": "home-connect" },
    h("h2", { id: "home-connect" }, t("home.connect")), h("p", { class: "muted" }, t("home.connect.body")), clientTabs, via, tokenRow, snippet, mark);

  function read({ query }) {
    const client = query.get("client") in CLIENTS ? query.get("client") : "claude-code";
    const way = client === "claude-desktop" ? "stdio" : query.get("via") === "stdio" ? "stdio" : "http";
    return { client, via: way, token: query.get("token") || "" };
  }

  function settle() {
    const names = tokens.map((one) => one.name);
    if (!names.includes(view.token)) view.token = names.includes(view.client) ? view.client : SHARED;
  }

  function draw() {
    settle();
    clientTabs.select(view.client);
    const ways = view.client === "claude-desktop" ? ["stdio"] : ["http", "stdio"];
    replace(via, ways.map((one) => h("button", { class: "btn", type: "button", "aria-pressed": String(one === view.via), data: { via: one }, on: { click: () => setQuery({ via: one === "stdio" ? one : null }) } }, t(`home.via.${one}`))));
    secret.hidden = view.via === "stdio" && view.token === SHARED;
    replace(select, tokens.map((one) => h("option", { value: one.name, selected: one.name === view.token }, one.is_shared ? t("home.token.shared") : one.name)));
    make.hidden = tokens.some((one) => one.name === view.client);
    replace(make.lastChild, t("home.token.make", { client: CLIENTS[view.client].title }));
    secret.hide();
    drawMark();
    load();
  }

  const ask = async (with_secret) => (await live.call("dari_connect", { client: view.client, token: view.token, with_secret }, { signal })).value;
  const formOf = ({ forms }) => forms.find((one) => one.transport === view.via) || forms[0];

  /** What to copy for the program that is chosen now, which may not be shown yet. */
  async function whole() {
    return formOf(await ask(view.via !== "stdio" || view.token !== SHARED)).text;
  }

  async function load() {
    const turn = ++asked;
    try {
      const form = formOf(await ask(false));
      if (turn !== asked) return;
      replace(where, h("span", { class: "muted grow" }, t(form.path ? "home.snippet.file" : "home.snippet.run")),
        form.path ? [h("code", { class: "ellipsis" }, form.path), copyButton(form.path, t("home.copy.path"))] : null);
      replace(code, form.text);
      snippet.hidden = false;
    } catch (error) {
      if (turn === asked && !signal.aborted) toastError(error);
    }
  }

  function drawMark() {
    const found = firstCall(clients, view);
    mark.dataset.state = found ? "connected" : "waiting";
    if (found) replace(mark, dot("ok", t("home.mark.yes")), h("strong", {}, t("home.mark.yes")), h("span", { class: "muted" }, t("home.mark.at", { time: clock(found.first_call_unix), n: count(found.calls) })));
    else replace(mark, dot("busy", t("home.mark.no")), h("span", { class: "muted" }, t("home.mark.no")));
  }

  async function create() {
    make.disabled = true;
    try {
      await live.call("dari_tokens_create", { name: view.client });
      toast(t("home.token.made", { client: CLIENTS[view.client].title }), { kind: "ok" });
      await refresh();
      setQuery({ token: view.client });
    } catch (error) {
      toastError(error);
    } finally {
      make.disabled = false;
    }
  }

  async function refresh() {
    tokens = (await live.call("dari_tokens_list", {}, { signal })).value.entries;
    draw();
  }

  live.onState((state) => state === "open" && refresh().catch((error) => signal.aborted || toastError(error)), signal);
  return {
    el,
    update(next) {
      view = read(next);
      draw();
    },
    setClients(next) {
      clients = next;
      drawMark();
    },
  };
}

/** Which agents there are, and when they called. */
export function agentsCard() {
  const body = h("div", { class: "scroll", tabindex: "0", role: "group", "aria-labelledby": "home-agents" });
  const el = h("section", { class: "card", "aria-labelledby": "home-agents" }, h("h2", { id: "home-agents" }, t("home.agents")), body);
  return {
    el,
    setClients(clients) {
      el.dataset.state = clients.length ? "some" : "none";
      if (!clients.length) return replace(body, emptyState({ icon: "link", title: t("home.agents.none"), body: t("home.agents.none.body") }));
      const head = ["home.agent", "home.agent.token", "home.agent.sessions", "home.agent.calls", "home.agent.first", "home.agent.last"];
      replace(body, h("table", { class: "table", "aria-labelledby": "home-agents" },
        h("thead", {}, h("tr", {}, head.map((key, at) => h("th", { scope: "col", class: ["", "wide-only", "num wide-only", "num", "wide-only", ""][at] }, t(key))))),
        h("tbody", {}, clients.map((one) => h("tr", { data: { who: cleanText(one.who) } },
          h("th", { scope: "row" }, h("span", { class: "row" }, dot(one.sessions ? "ok" : "off", t(one.sessions ? "home.agent.here" : "home.agent.away")), h("bdi", {}, cleanText(one.name, 60) || t("home.agent.unnamed")))),
          h("td", { class: "wide-only" }, one.client ? badge(one.client, "ok") : h("span", { class: "muted" }, t("home.agent.nobody"))),
          h("td", { class: "num wide-only" }, count(one.sessions)), h("td", { class: "num" }, count(one.calls)),
          h("td", { class: "wide-only" }, one.calls ? when(one.first_call_unix) : "–"),
          h("td", {}, one.calls ? h("a", { href: `/audit?who=${encodeURIComponent(one.who)}`, title: text(t("home.agent.audit")) }, when(one.last_call_unix)) : "–"))))));
    },
  };
}
