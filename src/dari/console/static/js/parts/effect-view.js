// The exact effect of a call, part by part. Nothing in it can hide: invisible characters and turned text are spelled out.

import { cleanLines, cleanText, h } from "../lib/dom.js";
import { t } from "../lib/i18n.js";
import { copyButton } from "./widgets.js";

const MAX_LINES = 2000;

export function effectView(parts) {
  return parts.map((one) => {
    const label = [t(`effect.${one.kind}`), one.title ? h("code", { class: "ellipsis" }, cleanText(one.title)) : null];
    const body = one.kind === "why" ? h("p", {}, cleanLines(one.text)) : one.text ? lines(one) : null;
    const cut = one.is_cut ? h("p", { class: "badge warn" }, t("effect.cut")) : null;
    if (one.kind === "json") return h("details", { class: "effect", open: one.is_open, data: { kind: one.kind } }, h("summary", { class: "label" }, label), body, cut);
    return h("section", { class: "effect", data: { kind: one.kind } },
      h("div", { class: "row" }, h("h3", { class: "row grow" }, label), one.kind === "why" ? null : copyButton(one.text || one.title)), body, cut);
  });
}

function lines({ kind, text }) {
  const all = cleanLines(text).split("\n");
  const shown = all.slice(0, MAX_LINES).map((line) => {
    const sign = kind === "diff" ? { "+": "add", "-": "del", "@": "at" }[line[0]] : null;
    return h("span", { class: sign ? `diff-${sign}` : null }, `${line}\n`);
  });
  if (all.length > MAX_LINES) shown.push(h("span", { class: "muted" }, t("effect.more", { n: all.length - MAX_LINES })));
  return h("pre", { class: "code effect-text", tabindex: "0", role: "region", "aria-label": t(`effect.${kind}`) }, shown);
}
