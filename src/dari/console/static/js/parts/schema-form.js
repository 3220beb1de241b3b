// A form made from any JSON Schema, beside the same value as JSON; each follows the other. The value is the only state.

import { cleanText, h, replace } from "../lib/dom.js";
import { count } from "../lib/format.js";
import { addTexts, t } from "../lib/i18n.js";
import { parseJson, prettyJson } from "../lib/json-text.js";
import { isObject } from "../lib/json-value.js";
import { getIn, initialValue, pathText, setIn, whyNoForm } from "../lib/schema.js";
import { loadStyle } from "../lib/style.js";
import { check } from "../lib/validate.js";
import texts from "../texts/schema-form.js";
import { rootField } from "./schema-fields.js";

addTexts(texts);
loadStyle("schema-form.css");

const MAX_JSON_CHARS = 200000;
let forms = 0;

const OWN_WORDS = ["type", "required", "additionalProperties", "unfinished"];

/** The words of a finding, without its place. */
export function findingText({ keyword, params }) {
  const has = (name) => name in params;
  const key = OWN_WORDS.includes(keyword)
    ? keyword
    : has("values")
      ? "enum"
      : has("rule")
        ? "shape"
        : has("sign")
          ? /[LIP][a-z]+$/.test(keyword)
            ? "count"
            : "bound"
          : /Of/.test(keyword)
            ? "branch"
            : "not";
  return t(`schema.${key}`, params);
}

/** schemaForm(schema, value, {onChange(value), raw, all}) → {el, value, set(value), problems(), touchAll(), focus()}.
 *
 * `raw: false` leaves out the JSON; `all` begins with every default. `problems()` are what keeps the value from being sent. */
export function schemaForm(schema, value, { onChange = () => {}, raw = true, all = false, label = t("form.json") } = {}) {
  const id = `form-${++forms}`;
  const why = whyNoForm(schema);
  const root = why === "shape" ? {} : schema;
  const slots = new Map(); // path → where its findings are shown
  const broken = new Map(); // path → why the text of a JSON field cannot be read
  const touched = new Set();
  const initial = () => (why ? {} : (initialValue(root, root, { all }) ?? {}));
  let current = value ?? initial();
  let rawError = null;
  let timer = 0;

  const fields = h("div", { class: "form-fields stack", data: { state: why || "form" } });
  const summary = h("ul", { class: "form-summary error", role: "status" });
  const text = h("textarea", {
    class: "input form-json",
    id: `${id}-json`,
    rows: "8",
    spellcheck: "false",
    autocomplete: "off",
    "aria-describedby": `${id}-error`,
  });
  const textError = h("p", { class: "error small", id: `${id}-error`, role: "status" });

  const form = {
    id,
    root,
    slots,
    broken,
    touched,
    get: (path) => getIn(current, path),
    /** A field's new value; undefined takes it away. */
    set(path, next) {
      current = setIn(current, path, next) ?? (path.length ? current : {});
      if (!isObject(current) && !path.length && next === undefined) current = {};
      touched.add(pathText(path));
      changed();
      writeText();
    },
    /** After a field's own text was read as JSON or not. */
    setBroken(path, reason) {
      if (reason) broken.set(pathText(path), reason);
      else broken.delete(pathText(path));
      later();
    },
  };

  function changed() {
    onChange(current);
    later();
  }

  function later() {
    clearTimeout(timer);
    timer = setTimeout(showFindings, 80);
  }

  function draw() {
    slots.clear();
    broken.clear();
    if (why) replace(fields, h("p", { class: "muted" }, t(`form.noForm.${why}`)));
    else replace(fields, rootField(form));
  }

  function writeText() {
    rawError = null;
    replace(textError);
    text.removeAttribute("aria-invalid");
    const shown = prettyJson(current, MAX_JSON_CHARS);
    text.value = shown;
    text.disabled = !shown;
    if (!shown) replace(textError, t("form.jsonLarge", { n: count(MAX_JSON_CHARS) }));
    text.rows = Math.min(24, Math.max(3, shown.split("\n").length + 1));
  }

  function readText() {
    const read = parseJson(text.value.trim() ? text.value : "{}");
    rawError = read.error ?? null;
    if (rawError) {
      replace(textError, t(rawError.reason === "unsafe" ? "form.jsonUnsafe" : "form.jsonBroken", rawError));
      text.setAttribute("aria-invalid", "true");
      return;
    }
    replace(textError);
    text.removeAttribute("aria-invalid");
    current = read.value;
    for (const path of slots.keys()) touched.add(path);
    draw();
    changed();
  }

  function findings() {
    const found = check(root, current, { root, limit: 50 }).filter((one) => one.keyword !== "unfinished");
    return [
      ...found.map((one) => ({
        path: pathText(one.path),
        message: findingText(one),
        isMissing: one.keyword === "required",
        isAdvice: one.keyword === "format",
      })),
      ...[...broken].map(([path, reason]) => ({ path, message: reason })),
    ];
  }

  function showFindings() {
    const left = [];
    for (const slot of slots.values()) slot.show(null);
    for (const one of findings()) {
      if (one.isMissing && !touched.has(one.path)) continue; // an error is shown only after the field was touched
      const slot = slots.get(one.path);
      if (slot) slot.show(one.message);
      else left.push(one);
    }
    replace(summary, ...left.slice(0, 10).map((one) => h("li", {}, h("code", {}, cleanText(one.path || "$")), " ", one.message)));
  }

  text.addEventListener("input", readText);
  draw();
  writeText();
  const jsonBox = h("div", { class: "form-raw stack tight" }, h("label", { class: "label", for: text.id }, label), text, textError);
  const el = h(
    "div",
    { class: ["schema-form", raw && "with-json"], id, data: { form: why || "form" } },
    h("div", { class: "stack" }, fields, summary),
    raw ? jsonBox : null,
  );

  return {
    el,
    get value() {
      return current;
    },
    /** Another value; without one, what the form began with. */
    set(next) {
      current = next ?? initial();
      touched.clear();
      draw();
      writeText();
      changed();
    },
    problems: () => (rawError ? [{ path: "", message: t("form.jsonBroken", rawError) }] : findings().filter((one) => !one.isAdvice)),
    touchAll() {
      for (const path of slots.keys()) touched.add(path);
      for (const one of findings()) touched.add(one.path);
      showFindings();
      el.querySelector("[aria-invalid=true]")?.focus();
    },
    focus: () => (fields.querySelector("input, select, textarea, button") ?? text).focus(),
  };
}
