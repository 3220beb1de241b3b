// The toggle of design 000: crab-mcp over HTTP, with its port, address, token, last error and a guide for editors.

import { h, replace } from "../lib/dom.js";
import { t } from "../lib/i18n.js";
import { live } from "../lib/live.js";
import { secretField } from "../parts/secret.js";
import { toastError } from "../parts/toast.js";
import { badge, copyButton, field, toggle } from "../parts/widgets.js";

const KIND = { running: "ok", stopped: "", error: "bad" };

export function crabCard(signal) {
  let state = null;
  const port = h("input", { class: "input", type: "number", min: "1", max: "65535", inputmode: "numeric" });
  const box = toggle({ label: t("home.crab.enable"), name: "crab-endpoint", onChange: set });
  const status = h("span", { role: "status" });
  const error = h("p", { class: "error", hidden: true });
  const endpoint = h("dd", { class: "row" });
  const tokenPath = h("dd", { class: "row" });
  const secret = secretField({ label: t("home.crab.token"), load: async () => (await live.call("dari_crab_endpoint_token")).value.secret });
  const guide = h("pre", { class: "code", tabindex: "0", role: "group", "aria-label": t("home.crab.guide") });
  const facts = h("dl", { class: "home-facts" },
    h("dt", {}, t("home.crab.endpoint")), endpoint, h("dt", {}, t("home.crab.path")), tokenPath, h("dt", {}, t("home.crab.token")), h("dd", {}, secret));
  const el = h("section", { class: "card", id: "crab", "aria-labelledby": "home-crab", data: { state: "loading" } },
    h("h2", { id: "home-crab" }, t("home.crab")), h("p", { class: "muted" }, t("home.crab.body")),
    h("div", { class: "row wrap" }, h("label", { class: "check grow" }, box, h("span", {}, t("home.crab.enable"))), status),
    field(t("home.crab.port"), port, t("home.crab.port.help")), error, facts,
    h("details", {}, h("summary", {}, t("home.crab.guide")), guide));

  async function set(isOn) {
    error.hidden = true;
    el.dataset.state = "busy";
    replace(status, badge(t("home.crab.busy"), "info"));
    try {
      const number = Number(port.value) || 0;
      const { value } = await live.call(isOn ? "dari_crab_endpoint_start" : "dari_crab_endpoint_stop", isOn ? { port: number } : {});
      draw(value);
    } catch (failure) {
      draw((await live.call("dari_crab_endpoint_status")).value);
      toastError(failure);
    }
  }

  function draw(next) {
    state = next;
    const isOn = state.state === "running";
    el.dataset.state = state.state;
    if (!box.disabled || box.checked !== isOn) box.checked = isOn;
    port.disabled = isOn;
    if (document.activeElement !== port || isOn) port.value = state.port;
    replace(status, badge(t(`home.crab.${state.state}`), KIND[state.state]));
    error.hidden = !state.error;
    replace(error, state.hint ? `${state.error} – ${state.hint}` : state.error);
    facts.hidden = !isOn;
    replace(endpoint, h("code", { class: "grow ellipsis" }, state.endpoint), copyButton(state.endpoint, t("home.crab.copy.endpoint")));
    replace(tokenPath, h("code", { class: "grow ellipsis" }, state.token_path), copyButton(state.token_path, t("home.crab.copy.path")));
    if (!isOn) secret.hide();
    const url = isOn ? state.endpoint : `http://127.0.0.1:${state.port}/mcp`;
    replace(guide, JSON.stringify({ mcpServers: { crab: { url, headers: { Authorization: "Bearer <TOKEN>" } } } }, null, 2));
  }

  live.follow("crab-endpoint", draw, { signal });
  return el;
}
