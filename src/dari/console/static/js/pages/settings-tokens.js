// Tokens of clients: made, shown, replaced and taken away. What is taken away ends at once, so it is asked about first.

import { h, icon, keyed, replace } from "../lib/dom.js";
import { t } from "../lib/i18n.js";
import { count, when } from "../lib/format.js";
import { live } from "../lib/live.js";
import { confirmDialog, dialog } from "../parts/dialog.js";
import { secretField } from "../parts/secret.js";
import { toast, toastError } from "../parts/toast.js";
import { badge, field } from "../parts/widgets.js";

const LOOK_MS = 10000;

export function tokensPanel(signal) {
  let tokens = [];
  let sessions = new Map();
  const rows = h("tbody");
  const name = h("input", { class: "input", type: "text", autocomplete: "off", spellcheck: "false", placeholder: "claude-code", required: true, pattern: "[a-z0-9]([a-z0-9._\\-]{0,38}[a-z0-9])?" });
  const readOnly = h("input", { type: "checkbox" });
  const form = h("form", { class: "card settings-new", "aria-label": t("settings.token.new"), on: { submit: create } },
    field(t("settings.token.name"), name, t("settings.token.name.help")),
    h("label", { class: "check" }, readOnly, h("span", {}, t("settings.token.readonly"))),
    h("button", { class: "btn primary", type: "submit" }, icon("plus"), t("settings.token.create")));

  async function create(event) {
    event.preventDefault();
    try {
      const { value } = await live.call("dari_tokens_create", { name: name.value.trim(), read_only: readOnly.checked });
      form.reset();
      await load();
      reveal(value, t("settings.token.made", { name: value.name }));
    } catch (error) {
      toastError(error);
      name.focus();
    }
  }

  function reveal(token, title) {
    dialog({
      title,
      body: h("div", { class: "stack" }, h("p", {}, t("settings.token.send")), secretField({ label: token.name, load: async () => token.secret }),
        h("a", { href: `/?token=${encodeURIComponent(token.name)}`, on: { click: (event) => event.target.closest("dialog").close() } }, t("settings.token.connect"))),
      actions: [{ label: t("close"), kind: "primary", isDefault: true }],
    });
  }

  async function rotate(token) {
    const body = t("settings.token.rotate.body", { name: token.name, n: count(sessions.get(token.name) || 0) });
    if (!(await confirmDialog({ title: t("settings.token.rotate.ask", { name: token.name }), body, action: t("settings.token.rotate"), danger: true }))) return;
    try {
      const { value } = await live.call("dari_tokens_rotate", { name: token.name });
      await load();
      reveal(value, t("settings.token.rotated", { name: token.name }));
    } catch (error) {
      toastError(error);
    }
  }

  async function revoke(token) {
    const body = t("settings.token.revoke.body", { name: token.name, n: count(sessions.get(token.name) || 0) });
    if (!(await confirmDialog({ title: t("settings.token.revoke.ask", { name: token.name }), body, action: t("settings.token.revoke"), danger: true }))) return;
    try {
      await live.call("dari_tokens_revoke", { name: token.name });
      toast(t("settings.token.revoked", { name: token.name }), { kind: "ok" });
      await load();
    } catch (error) {
      toastError(error);
    }
  }

  function make(token) {
    const cells = { may: h("td"), made: h("td", { class: "wide-only" }), used: h("td", { class: "wide-only" }), now: h("td", { class: "num wide-only" }) };
    const secret = secretField({ label: token.name, load: async () => (await live.call("dari_tokens_show", { name: token.name })).value.secret });
    const el = h("tr", { data: { token: token.name } },
      h("th", { scope: "row" }, token.is_shared ? h("span", {}, t("settings.token.shared"), " ", h("code", { class: "muted" }, "mcp.token")) : token.name),
      cells.may, cells.made, cells.used, cells.now, h("td", { class: "settings-secret" }, secret),
      h("td", {}, h("div", { class: "row end" },
        h("button", { class: "btn", type: "button", on: { click: () => rotate(token) }, "aria-label": t("settings.token.rotate.one", { name: token.name }) }, t("settings.token.rotate")),
        token.is_shared ? null : h("button", { class: "btn danger", type: "button", on: { click: () => revoke(token) }, "aria-label": t("settings.token.revoke.one", { name: token.name }) }, t("settings.token.revoke")))));
    el.__shown = cells;
    return el;
  }

  function update(el, token) {
    const { may, made, used, now } = el.__shown;
    const isReadOnly = token.scopes.length === 1;
    replace(may, badge(t(isReadOnly ? "settings.token.may.read" : "settings.token.may.all"), isReadOnly ? "info" : ""));
    replace(made, token.created_unix ? when(token.rotated_unix || token.created_unix) : "–");
    replace(used, token.last_used_unix ? when(token.last_used_unix) : t("settings.token.never"));
    replace(now, token.is_shared ? "–" : count(sessions.get(token.name) || 0));
  }

  const draw = () => keyed(rows, tokens, (one) => one.name, make, update);

  async function load() {
    tokens = (await live.call("dari_tokens_list", {}, { signal })).value.entries;
    draw();
  }

  const safely = () => live.state === "open" && load().catch((error) => signal.aborted || toastError(error));
  live.onState(safely, signal);
  const timer = setInterval(safely, LOOK_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
  live.follow("clients", ({ clients }) => {
    sessions = new Map();
    for (const one of clients) if (one.client) sessions.set(one.client, (sessions.get(one.client) || 0) + one.sessions);
    draw();
  }, { signal });
  const head = ["client", "may", "made.on", "used", "sessions", "secret", "actions"];
  return [h("p", { class: "muted" }, t("settings.tokens.body")), form,
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": t("settings.tokens") }, h("table", { class: "table fold", "aria-label": t("settings.tokens") },
      h("thead", {}, h("tr", {}, head.map((key) => h("th", { scope: "col", class: key === "sessions" ? "num" : null }, t(`settings.token.${key}`))))), rows))];
}
