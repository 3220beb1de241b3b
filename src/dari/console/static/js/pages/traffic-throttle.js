// /traffic/throttle: how slow the network seems, what is recorded, who may use the proxy, its way out, its CA.

import { cleanText, h, icon, replace } from "../lib/dom.js";
import { bytes } from "../lib/format.js";
import { addTexts, getLanguage, t } from "../lib/i18n.js";
import { live } from "../lib/live.js";
import { confirmDialog } from "../parts/dialog.js";
import { download } from "../parts/download.js";
import { proxyOff, startButton } from "../parts/proxy-off.js";
import { toast, toastError } from "../parts/toast.js";
import { badge, copyButton, dot, field, toggle } from "../parts/widgets.js";
import texts from "../texts/traffic-tools.js";

addTexts(texts);
export const css = ["traffic-tools.css"];

const KB = 1000;
const GUIDES = ["browser", "phone"];

export function mount(root, { signal }) {
  let presets = [];
  let state = null;
  const drawn = new Map();
  const head = h("header", { class: "row wrap" });
  const empty = h("div");
  const names = ["throttle", "recording", "listen", "upstream", "ca"];
  const cards = Object.fromEntries(names.map((name) => [name, h("section", { class: "card stack", data: { card: name }, "aria-label": t(`proxy.${name}`) })]));
  const grid = h("div", { class: "settings-grid", hidden: true }, Object.values(cards));
  replace(root, h("section", { class: "stack", data: { state: "loading" }, "aria-labelledby": "proxy-title" }, head, empty, grid));
  const section = root.firstChild;
  live.call("dari_proxy_throttle_presets", {}, { signal }).then(({ value }) => ((presets = value.presets), state && draw()), () => {});
  live.follow("proxy", (event) => ((state = event), draw()), { signal, onError: off });
  drawHead();
  return {};

  function off(error) {
    state = null;
    section.dataset.state = "off";
    grid.hidden = true;
    drawHead();
    if (empty.childElementCount) return;
    replace(empty, proxyOff(error));
  }

  function drawHead() {
    const { info } = state ?? {};
    const isRunning = info?.status === "running";
    replace(head, h("h2", { id: "proxy-title", class: "grow" }, t("proxy.title")),
      info ? dot(isRunning ? "ok" : "off", isRunning ? t("proxy.running", { address: info.address }) : t("proxy.stopped")) : null,
      info ? h("span", { class: "muted" }, isRunning ? t("proxy.running", { address: info.address }) : t("proxy.stopped")) : null,
      !info ? null : !isRunning ? startButton("") : h("button", { class: "btn", type: "button", data: { action: "stop" }, on: { click: () => quietly("crab_proxy_stop") } }, t("proxy.stop")));
  }

  function draw() {
    section.dataset.state = "ready";
    grid.hidden = false;
    replace(empty);
    card("head", state.info, drawHead);
    const { config, info, ca } = state;
    card("throttle", [config.throttle, presets], () => replace(cards.throttle, throttle(config.throttle)));
    card("recording", [info.capture, info.pinned_hosts, config.inspect, config.passes_through_pinned, config.blocks_private_targets], () => replace(cards.recording, recording()));
    card("listen", [config.listen_addr, config.client_allowlist, config.transparent], () => replace(cards.listen, listen()));
    card("upstream", config.upstream, () => replace(cards.upstream, upstream(config.upstream)));
    card("ca", [ca, info.status], () => replace(cards.ca, authority(ca)));
  }

  /** A card is made anew only when what it shows has changed, so that nobody's typing is lost. */
  function card(name, value, make) {
    const mark = JSON.stringify(value);
    if (drawn.get(name) === mark) return;
    drawn.set(name, mark);
    make();
  }

  async function run(tool, args = {}) {
    try {
      await live.call(tool, args);
      toast(t("proxy.saved"), { kind: "ok" });
    } catch (error) {
      toastError(error);
      throw error;
    }
  }

  function quietly(tool, args) {
    return run(tool, args).catch(() => {});
  }

  function submits(run) {
    return { submit: (event) => (event.preventDefault(), run(Object.fromEntries(new FormData(event.target)))) };
  }

  // The cards

  function throttle(now) {
    const speed = (rate) => (rate ? bytes(rate) : "∞");
    const shown = now.enabled ? t("proxy.throttle.on", { latency: now.latency_ms, down: speed(now.downstream_bps), up: speed(now.upstream_bps) }) : t("proxy.throttle.off");
    const chosen = now.enabled ? presets.find((one) => one.latency_ms === now.latency_ms && one.downstream_bps === now.downstream_bps && one.upstream_bps === now.upstream_bps)?.name : "off";
    const hosts = () => lines(cards.throttle.querySelector("[name=hosts]").value);
    const choose = (preset) => quietly("crab_engine_set_throttle_preset", { preset, ...(preset !== "off" && hosts().length ? { selected_hosts: hosts() } : {}) });
    const button = (name, label, detail) => h("button", { class: "btn", type: "button", data: { preset: name }, "aria-pressed": String(chosen === name), on: { click: () => choose(name) } },
      h("span", {}, label), detail ? h("span", { class: "muted small" }, detail) : null);
    const apply = (values) => quietly("crab_engine_set_throttle", {
      enabled: true, latency_ms: Number(values.latency), downstream_bps: Math.round(values.down * KB), upstream_bps: Math.round(values.up * KB),
      only_selected_hosts: hosts().length > 0, selected_hosts: hosts(),
    });
    const number = (name, value) => h("input", { class: "input", type: "number", name, min: "0", step: name === "latency" ? "1" : "any", required: true, value: String(value) });
    return [
      h("h3", {}, t("proxy.throttle")),
      h("p", { data: { throttle: now.enabled ? "on" : "off" } }, t("proxy.throttle.now", { state: shown }), now.enabled && now.only_selected_hosts ? h("span", { class: "muted" }, " ", t("proxy.throttle.some", { hosts: cleanText(now.selected_hosts.join(", ")) })) : null),
      h("div", { class: "presets", role: "group", "aria-label": t("proxy.preset.group") }, button("off", t("proxy.preset.off")),
        presets.map((one) => button(one.name, one.name, t("proxy.preset.detail", { latency: one.latency_ms, down: bytes(one.downstream_bps) })))),
      h("form", { class: "stack", "aria-label": t("proxy.own"), on: submits(apply) },
        h("h4", {}, t("proxy.own")),
        h("div", { class: "field-row" }, field(t("proxy.latency"), number("latency", now.latency_ms)),
          field(t("proxy.down"), number("down", now.downstream_bps / KB), t("proxy.rate.help")), field(t("proxy.up"), number("up", now.upstream_bps / KB), t("proxy.rate.help"))),
        field(t("proxy.hosts"), area("hosts", now.selected_hosts), t("proxy.hosts.help")),
        h("div", { class: "row end" }, h("button", { class: "btn primary", type: "submit" }, t("proxy.apply")))),
    ];
  }

  function recording() {
    const { info, config } = state;
    const line = (name, checked, onChange) => h("label", { class: "check" }, toggle({ name, label: t(`proxy.${name}`), checked, onChange }), h("span", { "aria-hidden": "true" }, t(`proxy.${name}`)));
    return [
      h("h3", {}, t("proxy.recording")),
      line("capture", info.capture === "running", (isOn) => run(isOn ? "crab_capture_start" : "crab_capture_stop")),
      line("inspect", config.inspect.enabled, (enabled) => run("crab_engine_set_inspect_enabled", { enabled })),
      line("pinned", config.passes_through_pinned, (isOn) => run("crab_engine_set_policy", { passes_through_pinned: isOn })),
      line("private", config.blocks_private_targets, (isOn) => run("crab_engine_set_policy", { blocks_private_targets: isOn })),
      info.pinned_hosts.length ? h("p", { class: "rule-warning" }, icon("warn"), t("proxy.pinned.hosts", { hosts: cleanText(info.pinned_hosts.join(", "), 1000) })) : null,
    ];
  }

  function listen() {
    const { listen_addr: address, client_allowlist: allowed, transparent } = state.config;
    const redirect = (values) => quietly("crab_engine_set_transparent", { enabled: values.enabled === "on", listen_port: Number(values.port) });
    const save = async ({ address: wanted }) => {
      const isOpen = !/^(127\.|\[::1\])/.test(wanted);
      const isSure = !isOpen || wanted === address || await confirmDialog({ title: t("proxy.listen.sure"), body: t("proxy.listen.sure.body", { address: cleanText(wanted) }), action: t("proxy.listen.sure.action"), danger: true });
      if (isSure) await quietly("crab_engine_set_listen_addr", { listen_addr: wanted.trim() });
    };
    const allow = (values) => quietly("crab_engine_set_client_allowlist", { enabled: values.enabled === "on", ips: lines(values.ips) });
    return [
      h("h3", {}, t("proxy.listen")),
      h("form", { class: "stack", "aria-label": t("proxy.listen.address"), on: submits(save) },
        field(t("proxy.listen.address"), h("input", { class: "input mono", name: "address", value: address, required: true, spellcheck: "false" }), t("proxy.listen.help")),
        h("div", { class: "row end" }, h("button", { class: "btn", type: "submit" }, t("save")))),
      h("form", { class: "row", "aria-label": t("proxy.transparent"), on: submits(redirect) },
        h("label", { class: "check grow" }, h("input", { type: "checkbox", name: "enabled", checked: transparent.enabled }), t("proxy.transparent")),
        h("input", { class: "input method", type: "number", name: "port", min: "1", max: "65535", required: true, value: String(transparent.listen_port), "aria-label": t("proxy.port") }),
        h("button", { class: "btn", type: "submit" }, t("save"))),
      h("form", { class: "stack", "aria-label": t("proxy.allowlist"), on: submits(allow) },
        h("label", { class: "check" }, h("input", { type: "checkbox", name: "enabled", checked: allowed.enabled }), t("proxy.allowlist")),
        field(t("proxy.allowlist.ips"), area("ips", allowed.ips), t("proxy.allowlist.help")),
        h("div", { class: "row end" }, h("button", { class: "btn", type: "submit" }, t("save")))),
    ];
  }

  function upstream(now) {
    const text = (name, value, placeholder) => h("input", { class: "input mono", name, value: value ?? "", placeholder, spellcheck: "false" });
    const shown = now.client_certificates.map((one) => `${one.host} ${one.cert_path} ${one.key_path}`).join("\n");
    const save = (values) => {
      const changes = {};
      // A password in it is hidden: what was not touched is not sent.
      if (values.proxy.trim() !== (now.proxy ?? "")) changes.proxy = values.proxy.trim();
      if (values.ca_file.trim() !== (now.ca_file ?? "")) changes.ca_file = values.ca_file.trim();
      for (const name of ["bypass", "insecure_hosts"]) if (lines(values[name]).join() !== now[name].join()) changes[name] = lines(values[name]);
      if (values.certificates.trim() !== shown) changes.client_certificates = values.certificates.split("\n").map((line) => line.trim().split(/\s+/)).filter((line) => line[0]).map(([host, cert_path = "", key_path = ""]) => ({ host, cert_path, key_path }));
      if (Object.keys(changes).length) return quietly("crab_engine_set_upstream", changes);
    };
    return [
      h("h3", {}, t("proxy.upstream")),
      h("form", { class: "stack", "aria-label": t("proxy.upstream"), on: submits(save) },
        field(t("proxy.upstream.proxy"), text("proxy", now.proxy, t("proxy.upstream.none")), "http, https, socks5://[user:password@]host:port"),
        field(t("proxy.upstream.bypass"), area("bypass", now.bypass), t("proxy.lines")),
        field(t("proxy.upstream.insecure"), area("insecure_hosts", now.insecure_hosts), t("proxy.lines")),
        field(t("proxy.upstream.ca"), text("ca_file", now.ca_file, t("proxy.upstream.system"))),
        field(t("proxy.certificates"), area("certificates", shown ? [shown] : []), t("proxy.certificates.help")),
        h("div", { class: "row end" }, h("button", { class: "btn", type: "submit" }, t("save")))),
    ];
  }

  function authority(ca) {
    const generate = async () => {
      const isSure = !ca.loaded || await confirmDialog({ title: t("proxy.ca.sure"), body: t("proxy.ca.sure.body"), action: t("proxy.ca.replace"), danger: true });
      if (isSure) await quietly("crab_ca_generate", ca.loaded ? { replace: true } : {});
    };
    const save = () => live.call("dari_proxy_ca_certificate").then(({ value }) => download("crab-proxy-ca.pem", value.pem, "application/x-pem-file"), toastError);
    const row = (name, value, isCopied) => [h("dt", { class: "muted" }, t(`proxy.ca.${name}`)), h("dd", { class: "row" }, h("code", {}, value), isCopied ? copyButton(value) : null)];
    const ends = ca.not_after ? new Intl.DateTimeFormat(getLanguage(), { dateStyle: "medium" }).format(new Date(ca.not_after)) : "";
    return [
      h("div", { class: "row" }, h("h3", { class: "grow" }, t("proxy.ca")), badge(ca.loaded ? "OK" : "–", ca.loaded ? "ok" : "warn")),
      ca.loaded ? h("dl", { class: "stack tight" }, row("subject", cleanText(ca.subject)), row("fingerprint", ca.sha256, true), row("ends", t("proxy.ca.days", { date: ends, n: ca.days_left })), row("path", cleanText(ca.cert_path), true)) : h("p", {}, t("proxy.ca.none")),
      (ca.warnings ?? []).map((warning) => h("p", { class: "rule-warning" }, icon("warn"), cleanText(warning))),
      h("div", { class: "row wrap" },
        ca.loaded ? h("button", { class: "btn primary", type: "button", data: { action: "download" }, on: { click: save } }, icon("download"), t("proxy.ca.download")) : null,
        h("button", { class: ca.loaded ? "btn" : "btn primary", type: "button", data: { action: "generate" }, on: { click: generate } }, ca.loaded ? t("proxy.ca.replace") : t("proxy.ca.generate"))),
      ca.loaded ? guide() : null,
    ];
  }

  function guide() {
    const script = h("pre", { class: "code" });
    const shell = h("select", { class: "select", "aria-label": t("proxy.guide.shell.choice"), on: { change: show } }, ["sh", "fish", "powershell"].map((one) => h("option", { value: one }, one)));
    async function show() {
      try {
        replace(script, (await live.call("crab_env_snippet", { shell: shell.value }, { signal })).value.script);
      } catch (error) {
        replace(script, error.message);
      }
    }
    const first = h("details", { on: { toggle: () => first.open && show() } }, h("summary", {}, t("proxy.guide.shell")),
      h("div", { class: "stack" }, h("p", { class: "muted" }, t("proxy.guide.shell.body")), h("div", { class: "row" }, shell, copyButton(() => script.textContent)), script));
    return h("div", { class: "stack tight" }, h("h4", {}, t("proxy.guide")), first,
      GUIDES.map((name) => h("details", {}, h("summary", {}, t(`proxy.guide.${name}`)), h("p", { class: "muted" }, t(`proxy.guide.${name}.body`)))));
  }
}

const lines = (text) => text.split(/[\s,]+/).map((line) => line.trim()).filter(Boolean);
const area = (name, values) => h("textarea", { class: "input mono", name, rows: "2", spellcheck: "false", value: values.join("\n") });
