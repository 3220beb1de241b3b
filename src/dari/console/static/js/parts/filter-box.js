// The filter above the requests. The language is the proxy's: the server reads it and says what is wrong where.

import { cleanText, h, icon, replace } from "../lib/dom.js";
import { t } from "../lib/i18n.js";
import { live } from "../lib/live.js";
import { dialog } from "./dialog.js";
import { toastError } from "./toast.js";

const PAUSE_MS = 250;

/** filterBox({value, onChange(text), signal}) → {element, problem, show(text), use(text), check(), clearProblem(), focus()}. */
export function filterBox({ value, onChange, signal }) {
  const input = h("input", {
    class: "input", type: "search", value, spellcheck: "false", autocomplete: "off", name: "filter",
    "aria-label": t("traffic.filter"), placeholder: t("traffic.filter.placeholder"), "aria-describedby": "filter-problem",
  });
  const problem = h("p", { class: "filter-problem error", id: "filter-problem", role: "alert", hidden: true });
  const help = h("button", { class: "btn ghost icon", type: "button", "aria-label": t("traffic.filter.help"), title: t("traffic.filter.help"), on: { click: showHelp } }, icon("info"));
  const element = h("div", { class: "filter-box", role: "search" }, icon("filter"), input, help);
  let timer = 0;
  let asked = 0;
  let used = value;

  function showProblem(check) {
    const isWrong = Boolean(check && !check.ok);
    input.setAttribute("aria-invalid", isWrong);
    element.dataset.state = isWrong ? "wrong" : "ok";
    problem.hidden = !isWrong;
    if (!isWrong) return replace(problem);
    const text = input.value;
    const part = (from, to) => cleanText(text.slice(from, to));
    const place = check.end > check.start ? ["“", part(0, check.start), h("mark", {}, part(check.start, check.end) || "…"), part(check.end), "” "] : [];
    replace(problem, place, check.problem, check.hint ? ` – ${check.hint}` : "");
  }

  async function use() {
    clearTimeout(timer);
    const text = input.value.trim();
    if (text === used && problem.hidden) return;
    const mine = ++asked;
    try {
      const { value: check } = text ? await live.call("dari_traffic_check_filter", { filter: input.value }, { signal }) : { value: { ok: true } };
      if (mine !== asked) return;
      showProblem(check);
      if (check.ok && text !== used) onChange((used = text));
    } catch (error) {
      toastError(error);
    }
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(use, PAUSE_MS);
  });
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter") use();
    if (event.key === "Escape" && !input.value) input.blur();
  });

  async function showHelp() {
    try {
      const { value: found } = await live.call("dari_traffic_filter_help", {}, { signal });
      await dialog({ title: t("traffic.help.title"), wide: true, body: (close) => helpBody(found, (text) => (close(), set(text), use(), input.focus())) });
    } catch (error) {
      toastError(error);
    }
  }

  function set(text) {
    input.value = text;
  }

  return {
    element,
    problem,
    /** What is wrong with the text as it stands. */
    async check() {
      const { value: check } = await live.call("dari_traffic_check_filter", { filter: input.value }, { signal });
      showProblem(check);
    },
    clearProblem: () => showProblem(null),
    /** What the URL says now; what a person is typing stays. */
    show(text) {
      if (text === used) return;
      used = text;
      input.value = text;
      showProblem(null);
    },
    use(text) {
      set(text);
      return use();
    },
    focus() {
      input.focus();
      input.select();
    },
  };
}

function helpBody({ keys, examples }, use) {
  const example = (text) => h("button", { class: "btn ghost", type: "button", on: { click: () => use(text) } }, text);
  const rows = keys.map(({ key, example: text, meaning }) => h("tr", {}, h("td", {}, example(text)), h("td", {}, meaningOf(key, meaning))));
  return h("div", { class: "stack filter-help" },
    h("p", { class: "muted" }, t("traffic.help.intro")),
    h("table", { class: "table fold" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("traffic.help.key")), h("th", { scope: "col" }, t("traffic.help.meaning")))),
      h("tbody", {}, rows)),
    h("h3", {}, t("traffic.help.examples")), h("div", { class: "row wrap" }, examples.map(example)));
}

/** In the person's language where we have the sentence; the grammar's own otherwise. */
function meaningOf(key, meaning) {
  const message = t(`traffic.help.${key}`);
  return String(message) === message.key ? meaning : message;
}
