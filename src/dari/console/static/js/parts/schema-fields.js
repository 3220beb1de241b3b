// The controls of a schema form, one builder for each kind of field. A builder makes one level; what is below is made when it is there.

import { cleanText, h, icon, replace } from "../lib/dom.js";
import { t } from "../lib/i18n.js";
import { parseJson, prettyJson } from "../lib/json-text.js";
import { has, isObject } from "../lib/json-value.js";
import { fieldOf, fromText, initialValue, MAX_FORM_DEPTH, pathText, renameIn, variantOf } from "../lib/schema.js";

const SHOWN_OPTIONAL = 12;
const PAGE = 50;
const INPUT_TYPES = { date: "date", time: "time", email: "email" };
const HINTS = {
  "date-time": "2026-01-31T12:00:00Z",
  uri: "https://…",
  url: "https://…",
  uuid: "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
  ipv4: "127.0.0.1",
};
let ids = 0;

export function rootField(form) {
  const field = fieldOf(form.root, form.root);
  const value = form.get([]);
  if (field.kind !== "object" || !isObject(value)) return labelled(form, { name: "", path: [], schema: form.root, field, required: true, depth: 0 });
  if (!field.fields.length && !field.extra && !Object.keys(value).length) return h("p", { class: "muted", data: { state: "no-arguments" } }, t("form.empty"));
  return members(form, field, [], 0);
}

/** A field with its label, description and findings; `remove` takes an item or a free member away. */
function labelled(form, spot) {
  const { path, name, required } = spot;
  const field = spot.field ?? fieldOf(spot.schema, form.root, name);
  const id = `f${++ids}`;
  const title = name === "" ? field.title : name;
  const error = h("p", { class: "error small", id: `${id}-e`, hidden: true });
  const about = field.description ? h("p", { class: "muted small form-about", id: `${id}-d` }, h("bdi", {}, cleanText(field.description, 4000))) : null;
  const marks = [
    field.title && name && field.title !== name ? h("span", { class: "muted" }, cleanText(field.title)) : null,
    h("span", { class: "muted small form-type" }, typeWord(field)),
    required && !spot.remove ? h("span", { class: "badge" }, t("form.required")) : null,
    field.deprecated ? h("span", { class: "badge warn" }, t("form.deprecated")) : null,
    field.default !== undefined && field.kind !== "const"
      ? h("span", { class: "muted small" }, t("form.default", { value: cleanText(JSON.stringify(field.default), 80) }))
      : null,
  ];
  const spotted = { ...spot, field, id, label: title };
  const isGroup = ["object", "array", "set", "union"].includes(field.kind) && spot.depth < MAX_FORM_DEPTH;
  const control = nullable(form, spotted, isGroup ? group(form, spotted) : plain(form, spotted));
  const described = [about ? `${id}-d` : "", `${id}-e`].join(" ").trim();
  const target = isGroup ? null : [control, ...control.querySelectorAll(`#${id}`)].find((one) => one.matches("input, select, textarea"));
  target?.setAttribute("aria-describedby", described);
  if (required) target?.setAttribute("aria-required", "true");
  const slot = {
    show(message) {
      error.hidden = !message;
      replace(error, message ?? "");
      if (message) target?.setAttribute("aria-invalid", "true");
      else target?.removeAttribute("aria-invalid");
    },
  };
  form.slots.set(pathText(path), slot);
  const heading = [h("span", { class: "mono" }, cleanText(title || "")), ...marks].filter(Boolean).flatMap((one) => [one, " "]);
  const remove = spot.remove
    ? h(
        "button",
        {
          class: "btn ghost icon",
          type: "button",
          "aria-label": t("form.remove", { name: cleanText(title) }),
          title: t("form.remove", { name: cleanText(title) }),
          on: { click: spot.remove },
        },
        icon("close"),
      )
    : null;
  if (isGroup)
    return h(
      "fieldset",
      { class: "form-group", data: { path: pathText(path) } },
      h("legend", {}, h("span", { class: "form-head" }, ...heading, remove)),
      about,
      control,
      error,
    );
  return h(
    "div",
    { class: "field form-field", data: { path: pathText(path) } },
    h("label", { for: id, class: "form-head" }, ...heading),
    h("div", { class: "row top" }, h("div", { class: "grow" }, control), remove),
    about,
    error,
  );
}

function typeWord(field) {
  const s = field.schema;
  if (field.kind === "string" && field.format) return field.format;
  const range = [s.minimum ?? s.exclusiveMinimum, s.maximum ?? s.exclusiveMaximum];
  if (["number", "integer"].includes(field.kind) && range.some((n) => typeof n === "number")) return `${field.kind} ${range[0] ?? ""}…${range[1] ?? ""}`;
  return { const: "", enum: "", union: "", set: "" }[field.kind] ?? field.kind;
}

/** A box to send null, beside a field that may be null. */
function nullable(form, spot, control) {
  if (!spot.field.nullable) return control;
  const isNull = () => form.get(spot.path) === null;
  const rest = h("div", { class: "grow", hidden: isNull() }, control);
  const box = h("input", {
    type: "checkbox",
    checked: isNull(),
    on: {
      change: () => {
        form.set(spot.path, box.checked ? null : undefined);
        rest.hidden = box.checked;
      },
    },
  });
  return h("div", { class: "row wrap top" }, rest, h("label", { class: "check small muted" }, box, t("form.null")));
}

function plain(form, spot) {
  const { field } = spot;
  if (spot.depth >= MAX_FORM_DEPTH && !["string", "number", "integer", "boolean", "enum", "const"].includes(field.kind))
    return jsonField(form, spot, t("form.note", { reference: "" }));
  if (field.kind === "const") return constField(form, spot);
  if (field.kind === "boolean")
    return choice(form, spot, [
      { value: true, label: "" },
      { value: false, label: "" },
    ]);
  if (field.kind === "enum") return choice(form, spot, field.options);
  if (field.kind === "json") return jsonField(form, spot, field.note ? t("form.note", { reference: cleanText(field.reference) }) : null);
  return textField(form, spot);
}

function textField(form, { field, path, id, required }) {
  const value = form.get(path);
  if (isObject(value) || Array.isArray(value)) return jsonField(form, { field, path, id }, null);
  const hint = field.default !== undefined ? shown(field.default) : (HINTS[field.format] ?? shown(field.schema.examples?.[0] ?? ""));
  const props = { class: "input", id, placeholder: cleanText(hint, 80), autocomplete: "off", spellcheck: "false", dir: "auto" };
  const isLong = field.isLong || (typeof value === "string" && /\n/.test(value));
  const type = field.isSecret ? "password" : (INPUT_TYPES[field.format] ?? "text");
  const input = isLong ? h("textarea", { ...props, rows: "2" }) : h("input", { ...props, type });
  if (field.isSecret) input.autocomplete = "new-password";
  if (field.kind !== "string") input.inputMode = field.kind === "integer" ? "numeric" : "decimal";
  input.value = value === undefined || value === null ? "" : String(value);
  input.addEventListener("input", () => {
    const keepsEmpty = required && field.kind === "string" && !(field.schema.minLength > 0);
    form.set(path, input.value === "" && !keepsEmpty ? undefined : fromText(field, input.value));
  });
  return input;
}

const shown = (value) => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""));

function constField(form, { field, path, id, required }) {
  if (required) return h("code", { id }, cleanText(JSON.stringify(field.value)));
  return choice(form, { field, path, id, required }, [{ value: field.value, label: "" }]);
}

function choice(form, { path, id, required }, options) {
  const value = form.get(path);
  const key = JSON.stringify(value);
  const at = options.findIndex((one) => JSON.stringify(one.value) === key);
  const select = h("select", {
    class: "select",
    id,
    on: { change: () => form.set(path, select.value === "" ? undefined : (options[Number(select.value)]?.value ?? value)) },
  });
  if (!required || at < 0) select.append(h("option", { value: "" }, value === undefined || at >= 0 ? (required ? "–" : t("form.notSent")) : cleanText(key)));
  options.forEach((one, i) =>
    select.append(h("option", { value: String(i) }, one.label ? `${cleanText(one.label)} (${cleanText(shown(one.value))})` : cleanText(shown(one.value)))),
  );
  select.value = at < 0 ? "" : String(at);
  return select;
}

function jsonField(form, { path, id }, note) {
  const area = h("textarea", { class: "input", id, rows: "3", spellcheck: "false" });
  const value = form.get(path);
  area.value = value === undefined ? "" : prettyJson(value, 100000);
  area.addEventListener("input", () => {
    const read = area.value.trim() ? parseJson(area.value) : { value: undefined };
    form.setBroken(path, read.error ? t(read.error.reason === "unsafe" ? "form.jsonUnsafe" : "form.jsonBroken", read.error) : null);
    if (!read.error) form.set(path, read.value);
  });
  return note ? h("div", { class: "stack tight" }, area, h("p", { class: "muted small" }, note)) : area;
}

/** What stands in a fieldset. It draws itself anew when its shape changes. */
function group(form, spot) {
  const box = h("div", { class: "stack", id: spot.id, role: "group", "aria-label": cleanText(spot.label || "") });
  const draw = () => replace(box, ...groupContent(form, spot, draw));
  draw();
  return box;
}

function groupContent(form, spot, draw) {
  const { field, path, required, depth, label } = spot;
  const value = form.get(path);
  const set = (next) => {
    form.set(path, next);
    draw();
  };
  if (field.kind === "union") return unionContent(form, spot, set);
  if (value === undefined && (!required || depth > 0)) {
    const start = () => set(initialValue(field.schema, form.root) ?? (field.kind === "object" ? {} : []));
    if (required && field.kind !== "object") start();
    else return [h("div", {}, h("button", { class: "btn", type: "button", on: { click: start } }, icon("plus"), t("form.add", { name: cleanText(label) })))];
  }
  const wrong = value !== undefined && value !== null && (field.kind === "object" ? !isObject(value) : !Array.isArray(value));
  if (wrong) return [jsonField(form, { ...spot, id: `${spot.id}-json` }, null)];
  const unset = required
    ? null
    : h(
        "div",
        {},
        h("button", { class: "btn ghost", type: "button", on: { click: () => set(undefined) } }, icon("close"), t("form.remove", { name: cleanText(label) })),
      );
  if (field.kind === "object") return [members(form, field, path, depth), unset];
  if (field.kind === "set") return [setContent(form, spot), unset];
  return [...arrayContent(form, spot, set), unset];
}

function setContent(form, { field, path }) {
  const chosen = () => (Array.isArray(form.get(path)) ? form.get(path) : []);
  return h(
    "div",
    { class: "row wrap" },
    field.options.map((one) => {
      const key = JSON.stringify(one.value);
      const box = h("input", {
        type: "checkbox",
        checked: chosen().some((value) => JSON.stringify(value) === key),
        on: {
          change: () => {
            const rest = chosen().filter((value) => JSON.stringify(value) !== key);
            form.set(path, box.checked ? [...rest, one.value] : rest);
          },
        },
      });
      return h("label", { class: "check" }, box, cleanText(one.label || shown(one.value)));
    }),
  );
}

function arrayContent(form, { field, path, depth }, set) {
  const value = form.get(path) ?? [];
  const rows = value.slice(0, PAGE).map((_, i) =>
    labelled(form, {
      name: "",
      path: [...path, i],
      schema: field.itemAt(i),
      field: { ...fieldOf(field.itemAt(i), form.root), title: `[${i}]` },
      required: true,
      depth: depth + 1,
      remove: () => set(value.filter((_, n) => n !== i)),
    }),
  );
  const add = () =>
    set([...(form.get(path) ?? []), initialValue(field.itemAt(value.length), form.root) ?? emptyOf(fieldOf(field.itemAt(value.length), form.root))]);
  const isFull = value.length >= field.schema.maxItems || (field.isFixed && value.length >= field.first);
  return [
    ...rows,
    value.length > PAGE ? h("p", { class: "muted small" }, `… ${value.length - PAGE}`) : null,
    isFull ? null : h("div", {}, h("button", { class: "btn", type: "button", on: { click: add } }, icon("plus"), t("form.add", { name: t("form.item") }))),
  ];
}

/** A list has no gaps: an item begins as something. */
const emptyOf = (field) => ({ string: "", number: 0, integer: 0, object: {}, enum: field.options?.[0]?.value })[field.kind] ?? null;

function unionContent(form, spot, set) {
  const { field, path, required, depth, label } = spot;
  const value = form.get(path);
  const isSet = value !== undefined || required;
  const at = isSet ? variantOf(field, value, form.root) : -1;
  const select = h("select", {
    class: "select",
    "aria-label": t("form.variant", { name: cleanText(label || "") }),
    on: {
      change: () => {
        const variant = field.variants[Number(select.value)];
        set(select.value === "" ? undefined : (initialValue(variant.schema, form.root) ?? emptyOf(fieldOf(variant.schema, form.root))));
      },
    },
  });
  if (!required) select.append(h("option", { value: "" }, t("form.notSent")));
  field.variants.forEach((one, i) => select.append(h("option", { value: String(i) }, cleanText(one.title))));
  select.value = at < 0 ? "" : String(at);
  if (at < 0) return [select];
  const variant = fieldOf(field.variants[at].schema, form.root);
  if (variant.kind === "object" && isObject(value)) return [select, members(form, variant, path, depth)];
  const below = { ...spot, field: { ...variant, nullable: false }, required: true, depth: depth + 1, id: `${spot.id}-v` };
  return [select, ["array", "set", "union"].includes(variant.kind) && depth < MAX_FORM_DEPTH ? group(form, below) : plain(form, below)];
}

/** The members of an object: required ones, the others (folded away where there are many), and free ones. */
function members(form, field, path, depth) {
  const value = form.get(path) ?? {};
  const make = (one) => labelled(form, { ...one, path: [...path, one.name], depth: depth + 1 });
  const isShown = (one) => one.required || has(value, one.name);
  const [first, rest] =
    field.fields.length <= SHOWN_OPTIONAL ? [field.fields, []] : [field.fields.filter(isShown), field.fields.filter((one) => !isShown(one))];
  const ordered = [...first.filter((one) => one.required), ...first.filter((one) => !one.required)];
  const box = h("div", { class: "stack" }, ordered.slice(0, 4 * PAGE).map(make));
  if (rest.length) box.append(folded(rest, make));
  const known = new Set(field.fields.map((one) => one.name));
  const free = Object.keys(value).filter((name) => !known.has(name));
  if (field.extra || free.length) box.append(freeMembers(form, field, path, depth, known));
  return box;
}

function folded(rest, make) {
  const inside = h("div", { class: "stack" });
  const box = h("details", { class: "form-more" }, h("summary", {}, t("form.optional", { n: rest.length })), inside);
  let at = 0;
  const more = h("button", { class: "btn ghost", type: "button", on: { click: show } });
  function show() {
    more.remove();
    inside.append(...rest.slice(at, at + PAGE).map(make));
    at += PAGE;
    if (at < rest.length) inside.append(replace(more, t("form.more", { n: Math.min(PAGE, rest.length - at) })));
  }
  box.addEventListener("toggle", () => box.open && !at && show());
  return box;
}

function freeMembers(form, field, path, depth, known) {
  const box = h("div", { class: "stack form-map" });
  const schema = field.extra ?? {};
  const draw = () => {
    const value = form.get(path) ?? {};
    const names = Object.keys(value).filter((name) => !known.has(name));
    const rows = names.slice(0, PAGE).map((name) => {
      const label = h("input", { class: "input mono form-name", value: name, "aria-label": t("form.name"), spellcheck: "false" });
      label.addEventListener("change", () => {
        if (label.value === name) return;
        if (has(form.get(path), label.value)) return (label.setCustomValidity(String(t("form.sameName", { name: label.value }))), label.reportValidity());
        form.set(path, renameIn(form.get(path), [], name, label.value));
        draw();
      });
      const control = labelled(form, {
        name,
        path: [...path, name],
        schema,
        required: true,
        depth: depth + 1,
        remove: () => (form.set([...path, name], undefined), draw()),
      });
      return h("div", { class: "form-member" }, label, control);
    });
    const add = () => {
      let n = names.length + 1;
      while (has(value, `name${n}`)) n++;
      form.set([...path, `name${n}`], initialValue(schema, form.root) ?? emptyOf(fieldOf(schema, form.root)));
      draw();
      box.querySelectorAll(".form-name").item(names.length)?.select();
    };
    replace(
      box,
      ...rows,
      field.extra
        ? h("div", {}, h("button", { class: "btn", type: "button", on: { click: add } }, icon("plus"), t("form.add", { name: t("form.member") })))
        : null,
    );
  };
  draw();
  return box;
}
