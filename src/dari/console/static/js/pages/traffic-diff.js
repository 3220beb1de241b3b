// /traffic/diff?a=12&b=15&part=response&view=split: what is different in the second request.

import { cleanText, h, icon, replace } from "../lib/dom.js";
import { addTexts, t } from "../lib/i18n.js";
import { live } from "../lib/live.js";
import { setQuery } from "../lib/route.js";
import { diffView } from "../parts/diff-view.js";
import { toastError } from "../parts/toast.js";
import { badge, emptyState, tabs } from "../parts/widgets.js";
import texts from "../texts/traffic-tools.js";

addTexts(texts);
export const css = ["traffic-tools.css", "diff.css"];

const MAX_BODY_CHARS = 500000;
const PARTS = ["changes", "request", "response"];
const KINDS = { added: "ok", removed: "bad", changed: "warn" };

export function mount(root, { route, signal }) {
  let shown = "";
  const input = (name, label) => h("input", { class: "input method", name, inputmode: "numeric", pattern: "[0-9]+", required: true, "aria-label": label, placeholder: "#" });
  const [a, b] = [input("a", t("compare.first")), input("b", t("compare.second"))];
  const body = h("div", { class: "stack" });
  replace(root, h("section", { class: "stack compare", data: { state: "empty" }, "aria-labelledby": "compare-title" },
    h("header", { class: "row wrap" }, h("h2", { id: "compare-title", class: "grow" }, t("compare.title")),
      h("form", { class: "row", "aria-label": t("compare.title"), on: { submit: (event) => (event.preventDefault(), setQuery({ a: a.value.trim(), b: b.value.trim() })) } },
        a, h("button", { class: "btn ghost icon", type: "button", "aria-label": t("compare.swap"), title: t("compare.swap"), on: { click: swap } }, icon("traffic")), b,
        h("button", { class: "btn primary", type: "submit" }, t("compare.run")))),
    body));
  const section = root.firstChild;
  update(route);
  return { update };

  function swap() {
    [a.value, b.value] = [b.value, a.value];
    if (route.query.get("a") && route.query.get("b")) setQuery({ a: a.value, b: b.value });
  }

  function update(next) {
    route = next;
    const [first, second] = [route.query.get("a") ?? "", route.query.get("b") ?? ""];
    if (document.activeElement !== a) a.value = first;
    if (document.activeElement !== b) b.value = second;
    const part = PARTS.includes(route.query.get("part")) ? route.query.get("part") : "changes";
    const wanted = `${first} ${second} ${part}`;
    if (wanted === shown) return;
    shown = wanted;
    if (!first || !second) {
      section.dataset.state = "empty";
      replace(body, emptyState({ icon: "split", title: t("compare.empty"), body: t("compare.empty.body") }));
      return;
    }
    section.dataset.state = "loading";
    draw(first, second, part).then(
      (made) => {
        if (wanted !== shown) return;
        replace(body, chooser(part), made);
        section.dataset.state = "ready";
      },
      (error) => {
        if (signal.aborted || wanted !== shown) return;
        section.dataset.state = "error";
        replace(body, h("p", { class: "error" }, `${error.message} ${error.hint ?? ""}`));
        toastError(error);
      });
  }

  function chooser(current) {
    const items = PARTS.map((id) => ({ id, label: t(id === "changes" ? "compare.tab.changes" : `rules.word.${id}`) }));
    return tabs({ label: t("compare.views"), items, current, onSelect: (part) => setQuery({ part: part === "changes" ? null : part }) });
  }

  async function draw(first, second, part) {
    if (part === "changes") return summary((await live.call("crab_traffic_diff", { first_id: first, second_id: second }, { signal })).value);
    const [left, right] = await Promise.all([first, second].map((id) => message(id, part)));
    const names = [`#${first}`, `#${second}`];
    const options = { names, mode: route.query.get("view") === "split" ? "split" : "unified", onMode: (mode) => setQuery({ view: mode === "split" ? mode : null }) };
    const isText = left.text !== null && right.text !== null;
    return h("div", { class: "stack" },
      h("h3", {}, t("compare.head")), diffView(left.head, right.head, options),
      h("h3", {}, t("editor.body")),
      left.isCut || right.isCut ? h("p", { class: "muted" }, t("compare.cut", { n: MAX_BODY_CHARS })) : null,
      isText ? diffView(left.text, right.text, options) : h("p", { class: "muted" }, t("compare.binary", { what: cleanText(`${left.what} / ${right.what}`) })));
  }

  async function message(id, part) {
    const fields = part === "request" ? ["method", "url", "http_version", "request_headers"] : ["status", "http_version", "response_headers", "error"];
    const [shown, body] = await Promise.all([
      live.call("crab_traffic_show", { request_id: id, fields }, { signal }),
      live.call("crab_traffic_body", { request_id: id, direction: part, max_chars: MAX_BODY_CHARS }, { signal }),
    ]);
    const { flow } = shown.value;
    const { value } = body;
    const first = part === "request" ? `${flow.method} ${flow.url}` : `${flow.status ?? flow.error ?? "–"}`;
    const isText = typeof value.text === "string" || value.kind === "empty";
    return { head: `${first}\n${flow[`${part}_headers`] ?? ""}`, text: isText ? value.text ?? "" : null, what: value.mime, isCut: value.truncated };
  }
}

function summary(value) {
  if (value.is_same) return h("p", {}, t("compare.same"));
  return h("div", { class: "stack" },
    h("div", { class: "scroll" }, h("table", { class: "table" },
      h("caption", { class: "visually-hidden" }, t("compare.changes")),
      h("thead", {}, h("tr", {}, [t("compare.part"), t("compare.where"), `#${value.a}`, `#${value.b}`].map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, value.changes.map((change) => h("tr", { data: { kind: change.kind } },
        h("td", {}, badge(t(`compare.${change.kind}`), KINDS[change.kind]), " ", change.part.replaceAll("_", " ")),
        h("td", {}, h("code", {}, cleanText(change.where ?? ""))),
        h("td", {}, h("code", {}, plain(change.a))),
        h("td", {}, h("code", {}, plain(change.b)), note(change, value))))))),
    value.left_out ? h("p", { class: "muted" }, t("compare.more", { n: value.left_out })) : null);
}

/** A difference of many lines is for the tab that shows lines. */
function note({ part, note: said }, { a, b }) {
  if (!said) return null;
  if (!said.includes("\n")) return h("div", { class: "muted small" }, cleanText(said));
  return h("div", {}, h("a", { href: `/traffic/diff?a=${a}&b=${b}&part=${part.split("_")[0]}` }, t("compare.lines")));
}

const plain = (value) => (value === undefined || value === null ? "" : cleanText(typeof value === "string" ? value : JSON.stringify(value), 600));
