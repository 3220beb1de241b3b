// Settings: tokens of clients, files that decide, a slow link, looks and language. Each is an address: /settings/tokens.

import { h, replace } from "../lib/dom.js";
import { LANGUAGES, addTexts, getLanguage, onLanguage, setLanguage, t } from "../lib/i18n.js";
import { bytes } from "../lib/format.js";
import { live } from "../lib/live.js";
import { go } from "../lib/route.js";
import { THEMES, getTheme, onTheme, setTheme } from "../lib/theme.js";
import { toastError } from "../parts/toast.js";
import { badge, copyButton, emptyState, tabs } from "../parts/widgets.js";
import texts from "../texts/settings.js";
import { tokensPanel } from "./settings-tokens.js";

addTexts(texts);
export const css = ["settings.css", "traffic-tools.css"];

const PANELS = { tokens: tokensPanel, policies: policiesPanel, throttle: throttlePanel, appearance: appearancePanel };

export function mount(root, { route, signal }) {
  const chosen = () => (route.path[0] in PANELS ? route.path[0] : "tokens");
  const panel = h("section", { class: "stack settings-panel" });
  const bar = tabs({ label: t("nav.settings"), items: Object.keys(PANELS).map((id) => ({ id, label: t(`settings.${id}`) })), current: chosen(), onSelect: (id) => go(`/settings/${id}`) });
  root.append(h("header", { class: "page-head" }, h("h1", {}, t("nav.settings"))), bar, panel);
  let shown = "";
  let abort = new AbortController();
  signal.addEventListener("abort", () => abort.abort());
  function show() {
    const id = chosen();
    if (id === shown) return;
    shown = id;
    abort.abort();
    abort = new AbortController();
    bar.select(id);
    panel.dataset.panel = id;
    panel.setAttribute("aria-labelledby", bar.querySelector(`[data-id="${id}"]`).id);
    replace(panel, PANELS[id](abort.signal));
  }
  show();
  return { update: show };
}

function policiesPanel(signal) {
  const body = h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": t("settings.policies") });
  const kinds = { "in force": "ok", "not there": "", untrusted: "warn", broken: "bad" };
  async function load() {
    try {
      const { files } = (await live.call("dari_policies", {}, { signal })).value;
      replace(body, h("table", { class: "table fold", "aria-label": t("settings.policies") },
        h("thead", {}, h("tr", {}, ["part", "file", "state", "says"].map((key) => h("th", { scope: "col" }, t(`settings.policy.${key}`))))),
        h("tbody", {}, files.map((one) => h("tr", { data: { part: one.part, state: one.state } },
          h("th", { scope: "row" }, t(`settings.part.${one.part}`)),
          h("td", { class: "line" }, h("span", { class: "row" }, h("code", { class: "grow" }, one.path), copyButton(one.path, t("settings.policy.copy")))),
          h("td", {}, badge(t(`settings.policy.${one.state.replace(" ", "-")}`), kinds[one.state])),
          h("td", { class: "line" }, one.problem ? h("p", { class: "error" }, one.problem) : null, one.hint ? h("p", { class: "muted" }, one.hint) : null,
            Object.entries(one.facts).filter(([, said]) => said).map(([name, said]) => h("p", { class: "small" }, h("span", { class: "muted" }, t(`settings.fact.${name}`), ": "), h("span", {}, said)))))))));
    } catch (error) {
      if (!signal.aborted) toastError(error);
    }
  }
  live.onState((state) => state === "open" && load(), signal);
  return [h("p", { class: "muted" }, t("settings.policies.body")), body];
}

function throttlePanel(signal) {
  const body = h("div", { class: "stack" });
  let isKnown = false;
  async function load() {
    isKnown = true;
    try {
      if (!(await live.tools()).some((one) => one.name === "dari_proxy_throttle_presets")) return replace(body, emptyState({ icon: "traffic", title: t("settings.throttle.none") }));
      const { presets } = (await live.call("dari_proxy_throttle_presets", {}, { signal })).value;
      draw(presets, (await live.call("crab_engine_config_get", {}, { signal })).value.throttle);
    } catch (error) {
      if (!signal.aborted) toastError(error);
    }
  }
  function draw(presets, now) {
    const set = async (preset) => {
      try {
        draw(presets, (await live.call("crab_engine_set_throttle_preset", { preset })).value);
        body.querySelector("[aria-pressed=true]")?.focus();
      } catch (error) {
        toastError(error);
      }
    };
    const rate = (bps) => (bps ? `${bytes(bps)}/s` : "∞");
    const isNow = (one) => now.enabled && ["latency_ms", "downstream_bps", "upstream_bps"].every((name) => one[name] === now[name]);
    const button = (name, isOn, label, detail) => h("button", { class: "btn", type: "button", data: { preset: name }, "aria-pressed": String(isOn), on: { click: () => set(name) } }, h("span", {}, label), h("span", { class: "muted small" }, detail));
    body.dataset.state = now.enabled ? "on" : "off";
    replace(body, h("p", { role: "status" }, now.enabled ? t("settings.throttle.on", { latency: now.latency_ms, down: rate(now.downstream_bps), up: rate(now.upstream_bps) }) : t("settings.throttle.off")),
      h("div", { class: "presets", role: "group", "aria-label": t("settings.throttle") }, button("off", !now.enabled, t("settings.throttle.full"), t("settings.throttle.full.body")),
        presets.map((one) => button(one.name, isNow(one), one.name, `${one.latency_ms} ms · ${rate(one.downstream_bps)}`))),
      h("p", {}, h("a", { href: "/traffic/throttle" }, t("settings.throttle.more"))));
  }
  live.follow("hub", ({ daemons }) => {
    if (isKnown) return;
    if (daemons.crabd) return load();
    replace(body, emptyState({ icon: "traffic", title: t("settings.throttle.stopped"), body: t("settings.throttle.stopped.body"), action: h("button", { class: "btn primary", type: "button", on: { click: load } }, t("settings.throttle.start")) }));
  }, { signal });
  return [h("p", { class: "muted" }, t("settings.throttle.body")), body];
}

function choice(legend, name, options, current, onChange) {
  const inputs = options.map(([value, label]) => h("label", { class: "check" }, h("input", { type: "radio", name, value, checked: value === current(), on: { change: () => onChange(value) } }), h("span", {}, label)));
  const el = h("fieldset", { class: "card" }, h("legend", { class: "label" }, legend), inputs);
  el.refresh = () => el.querySelectorAll("input").forEach((one) => (one.checked = one.value === current()));
  return el;
}

function appearancePanel(signal) {
  const theme = choice(t("settings.theme"), "theme", THEMES.map((one) => [one, t(`settings.theme.${one}`)]), getTheme, setTheme);
  const language = choice(t("settings.language"), "language", Object.entries(LANGUAGES), getLanguage, (code) => setLanguage(code).catch(toastError));
  onTheme(theme.refresh, signal);
  onLanguage(language.refresh, signal);
  return [h("p", { class: "muted" }, t("settings.appearance.body")), h("div", { class: "grid" }, theme, language)];
}
