// "Always": what later calls may differ in, and the rule that would be written, shown before it is.

import { cleanText, h, replace } from "../lib/dom.js";
import { t } from "../lib/i18n.js";
import { live } from "../lib/live.js";
import { dialog } from "./dialog.js";

const LASTS = [["forever", 0], ["hour", 3600], ["day8", 28800], ["week", 604800]];

/** Resolves with the draft of a rule, or undefined when the person thinks better of it. */
export function askForRule({ approval, arguments: names }) {
  const draft = { who: { kind: "is" }, effect: { kind: "is" }, arguments: {}, lasts_s: 0 };
  const preview = h("output", { class: "rule-preview card", "aria-live": "polite", data: { state: "checking" } });
  const write = h("button", { class: "btn primary", type: "button", disabled: true }, t("rule.write"));
  let timer = 0;
  let asked = 0;

  async function check() {
    const mine = ++asked;
    write.disabled = true;
    preview.dataset.state = "checking";
    try {
      const { value } = await live.call("dari_approvals_preview_rule", { id: approval.id, rule: draft });
      if (mine !== asked) return;
      preview.dataset.state = "ok";
      write.disabled = false;
      replace(preview, h("span", { class: "label" }, t("rule.will")), h("p", { class: "mono" }, cleanText(value.summary, 2000)));
    } catch (error) {
      if (mine !== asked) return;
      preview.dataset.state = "bad";
      replace(preview, h("p", { class: "error" }, error.message), error.hint ? h("p", { class: "muted" }, error.hint) : null);
    }
  }

  function changed() {
    write.disabled = true;
    clearTimeout(timer);
    timer = setTimeout(check, 200);
  }

  function row(label, value, kinds, set) {
    const pattern = h("input", { class: "input mono", hidden: true, value, "aria-label": t("rule.pattern", { name: label }), maxlength: "1000", on: { input: () => (set({ kind: "like", text: pattern.value }), changed()) } });
    const select = h("select", { class: "select", "aria-label": t("rule.match", { name: label }), on: { change: () => {
      pattern.hidden = select.value !== "like";
      set(select.value === "like" ? { kind: "like", text: pattern.value } : { kind: select.value });
      changed();
    } } }, kinds.map((kind) => h("option", { value: kind }, t(`rule.${kind}`))));
    return h("div", { class: "rule-row" }, h("span", { class: "label ellipsis" }, label), select, pattern);
  }

  const text = (value) => (approval.effect.length <= 300 && value === "command" ? approval.effect : "");
  const rows = [row(t("rule.who"), approval.who, ["is", "like", "any"], (one) => (draft.who = one))];
  if (approval.message) rows.push(row(t("rule.effect"), approval.message, ["is", "like"], (one) => (draft.effect = one)));
  for (const [name, type] of Object.entries(names)) {
    rows.push(row(cleanText(name, 60), text(name), type === "text" ? ["is", "like", "any"] : ["is", "any"], (one) => (draft.arguments[name] = one)));
  }
  const lasts = h("select", { class: "select", "aria-label": t("rule.lasts"), on: { change: () => ((draft.lasts_s = Number(lasts.value)), changed()) } },
    LASTS.map(([name, seconds]) => h("option", { value: seconds }, t(`rule.lasts.${name}`))));
  rows.push(h("div", { class: "rule-row" }, h("span", { class: "label" }, t("rule.lasts")), lasts));
  check();
  return dialog({
    title: t("rule.title"),
    body: (close) => {
      write.addEventListener("click", () => close(draft));
      return h("div", { class: "stack" }, h("p", { class: "muted" }, t("rule.help")), rows, preview, h("div", { class: "row end" }, write));
    },
  });
}
