// The form of one rule: the fields of its kind, with the limits that the tool's own schema gives.

import { h, replace } from "../lib/dom.js";
import { t, text } from "../lib/i18n.js";
import { FIELDS, KINDS, newValues } from "../lib/rules.js";
import { toast, toastError } from "./toast.js";
import { field } from "./widgets.js";

const CHOICES = { on: ["request", "response"], mode: ["reset", "truncate"], source: ["text", "file"] };
const MATCHER_KINDS = ["prefix", "glob", "regex"];
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
const AREAS = new Set(["text", "edits", "headers", "body", "find"]);
const LABELS = { status_code: "editor.status", headers: "editor.headers", body: "editor.body" };
const NUMBERS = new Set(["status_code", "from_status_code", "to_status_code", "time_limit_s", "delay_ms", "jitter_ms", "after_bytes"]);

/** An element. `values` as lib/rules has them, changed in place; `schema`: of crab_rules_add; `title`, `kinds`, `extra`. */
export function ruleForm({ values, schema, title, kinds = KINDS, isNew, extra = null, onSave, onCancel }) {
  const fields = h("div", { class: "rule-fields" });
  const save = h("button", { class: "btn primary", type: "submit" }, t("save"));
  const form = h("form", { class: "card stack rule-form", "aria-label": title, on: { submit } },
    h("h2", {}, title), fields, extra,
    h("div", { class: "row end" },
      h("button", { class: "btn ghost", type: "button", on: { click: onCancel } }, t("cancel")), save));

  function draw() {
    const kind = choice("kind", kinds, (one) => t(`rules.kind.${one}`), (next) => {
      const kept = { matcher: values.matcher, matcher_kind: values.matcher_kind, method: values.method };
      for (const name of Object.keys(values)) delete values[name];
      Object.assign(values, newValues(next, kept), onSave.prefill?.[next]);
      draw();
      fields.querySelector("select").focus();
    });
    kind.disabled = !isNew;
    replace(fields,
      h("div", { class: "row wrap" }, field(t("rules.field.kind"), kind),
        values.kind === "mock" && isNew ? null : [field(t("rules.field.matcher_kind"), choice("matcher_kind", MATCHER_KINDS, word)), field(t("editor.method"), methods())]),
      field(t("rules.field.matcher"), input("matcher", { required: true, spellcheck: "false", class: "input mono" }), t("rules.field.matcher.help")),
      FIELDS[values.kind].length && !(values.kind === "mock" && isNew) ? own() : null);
  }

  function own() {
    const names = FIELDS[values.kind].filter((name) => values.kind !== "map_local" || name !== (values.source === "file" ? "text" : "file_path"));
    return h("div", { class: "row wrap" }, names.map((name) => {
      if (name in CHOICES) return field(label(name), choice(name, CHOICES[name], word, name === "source" ? draw : null));
      if (values[name] === null) return h("p", { class: "muted" }, t("rules.field.binary"));
      if (AREAS.has(name)) {
        const help = name === "edits" ? t("rules.field.edits.help") : null;
        const made = field(label(name), input(name, { class: "input mono", rows: name === "find" ? "2" : "6", spellcheck: "false" }, "textarea"), help);
        made.classList.add("wide");
        return made;
      }
      return field(label(name), NUMBERS.has(name) ? input(name, { type: "number", ...limits(name) }) : input(name, { class: "input mono", required: name !== "content_type" }));
    }));
  }

  function limits(name) {
    const found = schema?.properties?.[name] ?? {};
    const one = found.anyOf?.find((each) => each.type !== "null") ?? found;
    const least = name === "from_status_code" ? 100 : one.minimum;
    return { min: least, max: one.maximum, step: name === "time_limit_s" ? "any" : "1", required: name !== "from_status_code" };
  }

  function input(name, props = {}, tag = "input") {
    const control = h(tag, { class: "input", name, value: String(values[name] ?? ""), ...props });
    control.addEventListener("input", () => (values[name] = control.value));
    return control;
  }

  function choice(name, options, say, onChange) {
    const control = h("select", { class: "select", name }, options.map((one) => h("option", { value: one, selected: one === values[name] }, say(one))));
    control.addEventListener("change", () => {
      if (name !== "kind") values[name] = control.value;
      onChange?.(control.value);
    });
    return control;
  }

  function methods() {
    const known = [...new Set(["", ...METHODS, values.method])];
    return choice("method", known, (one) => one || t("rules.field.any"));
  }

  async function submit(event) {
    event.preventDefault();
    save.disabled = true;
    try {
      await onSave(values);
    } catch (error) {
      if (error.line) toast(text(t("rules.wrong.line", { line: error.line, text: error.message })), { kind: "bad" });
      else toastError(error);
    } finally {
      save.disabled = false;
    }
  }

  draw();
  return form;
}

const word = (one) => t(`rules.word.${one}`);
const label = (name) => t(LABELS[name] ?? `rules.field.${name}`);
