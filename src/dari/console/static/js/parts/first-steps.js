// What to do when nothing was recorded yet: start, point a program at the proxy, trust its certificate.

import { h, icon, replace } from "../lib/dom.js";
import { t } from "../lib/i18n.js";
import { live } from "../lib/live.js";
import { toastError } from "./toast.js";
import { copyButton } from "./widgets.js";

export function firstSteps({ start, signal }) {
  const title = h("h2", {});
  const body = h("p", {});
  const startButton = h("button", { class: "btn primary", type: "button", on: { click: start } }, icon("play"), t("traffic.start"));
  const startText = h("p", { class: "muted" });
  const script = h("pre", { class: "code", tabindex: "0", "aria-label": t("traffic.step.env") });
  const copy = copyButton(() => script.textContent);
  const waiting = h("p", { class: "muted" }, t("traffic.step.env.wait"));
  const make = h("button", { class: "btn", type: "button", on: { click: makeAuthority } }, icon("key"), t("traffic.step.ca.make"));
  const ready = h("p", { class: "muted" }, t("traffic.step.ca.ready"));
  const steps = [
    step("traffic.step.start", [startText, startButton]),
    step("traffic.step.env", [h("p", { class: "muted" }, t("traffic.step.env.body"), " ", h("code", {}, "dari proxy run -- CMD")), waiting, script], copy),
    step("traffic.step.ca", [h("p", { class: "muted" }, t("traffic.step.ca.body")), make, ready]),
  ];
  const element = h("div", { class: "first-steps" }, title, body, h("ol", {}, steps));
  let shownFor = "";

  function step(key, children, extra = null) {
    const done = h("span", { class: "badge ok done" }, t("traffic.step.done"));
    return h("li", {}, h("h3", { class: "row" }, t(key), done, extra), children);
  }

  function finish(index, isDone) {
    steps[index].dataset.state = isDone ? "done" : "open";
    steps[index].querySelector(".done").hidden = !isDone;
  }

  function show(proxy) {
    const isRunning = proxy?.status === "running";
    const hasAuthority = proxy?.ca === "loaded";
    replace(title, t(isRunning ? "traffic.none" : "traffic.first"));
    replace(body, t(isRunning ? "traffic.none.body" : "traffic.first.body"));
    replace(startText, isRunning ? t("traffic.running", { address: proxy.address }) : t("traffic.step.start.body", { address: proxy?.listen_addr ?? "127.0.0.1" }));
    startButton.hidden = isRunning;
    waiting.hidden = isRunning;
    script.hidden = copy.hidden = !isRunning;
    make.hidden = hasAuthority;
    make.disabled = !proxy;
    ready.hidden = !hasAuthority;
    finish(0, isRunning);
    finish(1, false);
    finish(2, hasAuthority);
    const state = `${proxy?.address} ${proxy?.ca}`;
    if (isRunning && shownFor !== state) readScript((shownFor = state));
  }

  async function readScript() {
    try {
      const { value } = await live.call("crab_env_snippet", {}, { signal });
      script.textContent = value.script;
    } catch (error) {
      toastError(error);
    }
  }

  async function makeAuthority() {
    make.disabled = true;
    try {
      await live.call("crab_ca_generate", {}, { signal });
    } catch (error) {
      toastError(error);
    } finally {
      make.disabled = false;
    }
  }

  return { element, show };
}
