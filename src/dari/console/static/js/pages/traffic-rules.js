// /traffic/rules: the proxy's rules. ?rule=r3, ?new=KIND, ?flow=REQUEST opens the form; ?test=URL&method=GET the test.

import { cleanText, h, icon, keyed, replace } from "../lib/dom.js";
import { count } from "../lib/format.js";
import { addTexts, t, text } from "../lib/i18n.js";
import { keys, palette } from "../lib/keys.js";
import { live } from "../lib/live.js";
import { go, setQuery } from "../lib/route.js";
import { KINDS, effectOf, newValues, toArguments, toChanges, valuesOf } from "../lib/rules.js";
import { confirmDialog } from "../parts/dialog.js";
import { proxyOff } from "../parts/proxy-off.js";
import { ruleForm } from "../parts/rule-form.js";
import { toast, toastError } from "../parts/toast.js";
import { badge, emptyState, toggle } from "../parts/widgets.js";
import texts from "../texts/traffic-tools.js";

addTexts(texts);
export const css = ["traffic-tools.css"];

const MAX_ROWS = 500;
const HOME = "/traffic/rules";

export function mount(root, { route, signal }) {
  let rules = [];
  let isRunning = null;
  let problem = null;
  let verdicts = new Map();
  let shownForm = "";
  const list = h("ol", { class: "rules", "aria-label": t("rules.list") });
  const news = h("p", { class: "visually-hidden", role: "status" });
  const more = h("p", { class: "muted", hidden: true });
  const empty = h("div");
  const form = h("div");
  const testUrl = h("input", { class: "input mono grow", name: "url", "aria-label": t("rules.test.url"), placeholder: "https://example.com/users", spellcheck: "false" });
  const testMethod = h("input", { class: "input method", name: "method", "aria-label": t("rules.test.method"), value: "GET", spellcheck: "false" });
  const result = h("div", { class: "rule-test-result", "aria-live": "polite" });
  replace(root, h("section", { class: "stack rules-page", data: { state: "loading" }, "aria-labelledby": "rules-title" },
    h("header", { class: "row wrap" },
      h("h2", { id: "rules-title", class: "grow" }, t("rules.title")),
      h("button", { class: "btn primary", type: "button", on: { click: add } }, icon("plus"), t("rules.add"))),
    h("p", { class: "muted" }, t("rules.about")),
    h("form", { class: "row", role: "search", "aria-label": t("rules.test"), on: { submit: test } },
      testMethod, testUrl, h("button", { class: "btn", type: "submit" }, t("rules.test.run"))),
    result, form, empty, list, more, news));
  const section = root.firstChild;

  keys.add({ key: "n", label: t("rules.add"), run: add }, signal);
  keys.add({ key: "t", label: t("rules.test"), run: () => testUrl.focus() }, signal);
  palette.add({ title: t("rules.add"), group: t("rules.title"), run: add }, signal);
  live.follow("rules", onEvent, { signal, onError });
  update(route);
  return { update };

  function add() {
    go(`${HOME}?new=map_local`);
  }

  function onEvent(event) {
    isRunning = true;
    if (event.rules) rules = event.rules;
    else rules = rules.map((rule) => (rule.id in event.hits ? { ...rule, hits: event.hits[rule.id] } : rule));
    draw();
    if (event.rules) runTest();
  }

  function onError(error) {
    isRunning = false;
    problem = error;
    draw();
  }

  function draw() {
    const state = isRunning === null ? "loading" : !isRunning ? "off" : rules.length ? "ready" : "empty";
    section.dataset.state = state;
    keyed(list, isRunning ? rules.slice(0, MAX_ROWS) : [], (rule) => rule.id, makeRow, updateRow);
    list.hidden = !list.childElementCount;
    const left = rules.length - list.childElementCount;
    more.hidden = !isRunning || left <= 0;
    if (!more.hidden) replace(more, t("rules.more", { n: count(left) }));
    if (state === empty.dataset.state) return;
    empty.dataset.state = state;
    replace(empty, state === "empty" ? emptyState({ icon: "filter", title: t("rules.empty"), body: t("rules.empty.body") })
      : state === "off" ? proxyOff(problem) : null);
  }

  // The list

  function makeRow(rule) {
    const { id } = rule;
    const handle = h("button", { class: "btn ghost icon rule-handle", type: "button", draggable: "true", "aria-label": t("rules.move", { id }), title: t("rules.move", { id }), on: {
      keydown: (event) => {
        const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
        if (!step) return;
        event.preventDefault();
        const at = rules.findIndex((one) => one.id === id);
        const to = at + step;
        if (to >= 0 && to < rules.length) move(id, rules[step < 0 ? to : to + 1]?.id ?? null);
      },
      dragstart: (event) => {
        event.dataTransfer.setData("text/x-rule", id);
        event.dataTransfer.effectAllowed = "move";
        event.dataTransfer.setDragImage(row, 8, 8);
      },
    } }, icon("drag"));
    const box = toggle({ label: t("rules.enabled", { id }), checked: rule.enabled, onChange: (enabled) => enable(id, enabled) });
    const row = h("li", { class: "rule", data: { id }, on: { dragover: (event) => dragOver(event, row), dragleave: () => delete row.dataset.drop, drop: (event) => drop(event, row) } },
      handle, box, h("div", { class: "rule-main grow" }), h("a", { class: "rule-hits", href: `/traffic?filter=${encodeURIComponent(`rule:${id}`)}` }),
      h("a", { class: "btn ghost icon", href: `${HOME}?rule=${id}`, "aria-label": t("rules.edit", { id }), title: t("rules.edit", { id }) }, icon("edit")),
      h("button", { class: "btn ghost icon", type: "button", "aria-label": t("rules.remove", { id }), title: t("rules.remove", { id }), on: { click: () => remove(id) } }, icon("trash")));
    return row;
  }

  function updateRow(row, rule) {
    row.dataset.state = rule.enabled ? "on" : "off";
    const verdict = verdicts.get(rule.id);
    if (verdict) row.dataset.verdict = verdict;
    else delete row.dataset.verdict;
    const box = row.querySelector(".switch");
    if (!box.disabled) box.checked = rule.enabled;
    const mark = JSON.stringify({ ...rule, hits: 0 });
    if (row.__mark !== mark) {
      row.__mark = mark;
      replace(row.querySelector(".rule-main"), describe(rule));
    }
    const hits = String(rule.hits);
    const shown = row.querySelector(".rule-hits");
    if (shown.dataset.hits !== hits) {
      shown.dataset.hits = hits;
      replace(shown, t("rules.hits", { n: count(rule.hits) }));
    }
  }

  function describe(rule) {
    const [key, values] = effectOf(rule);
    const clean = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, name === "on" || name === "mode" ? t(`rules.word.${value}`) : cleanText(value ?? "")]));
    return [
      h("div", { class: "row wrap" }, badge(t(`rules.kind.${rule.kind}`), "info"), h("code", { class: "rule-matcher" }, cleanText(rule.matcher) || "∗"),
        rule.method ? badge(cleanText(rule.method)) : null, rule.matcher_kind !== "prefix" ? badge(t(`rules.word.${rule.matcher_kind}`)) : null),
      h("div", { class: "muted rule-effect" }, t(`rules.does.${key}`, clean)),
      (rule.warnings ?? []).map((warning) => h("div", { class: "rule-warning" }, icon("warn"), cleanText(warning, 1000))),
    ];
  }

  function dragOver(event, row) {
    if (!event.dataTransfer.types.includes("text/x-rule")) return;
    event.preventDefault();
    const box = row.getBoundingClientRect();
    row.dataset.drop = event.clientY < box.top + box.height / 2 ? "before" : "after";
  }

  function drop(event, row) {
    event.preventDefault();
    const id = event.dataTransfer.getData("text/x-rule");
    const at = rules.findIndex((rule) => rule.id === row.dataset.id);
    const before = row.dataset.drop === "before" ? row.dataset.id : rules[at + 1]?.id ?? null;
    delete row.dataset.drop;
    if (id && id !== before && rules.some((rule) => rule.id === id)) move(id, before);
  }

  async function move(id, before) {
    const moved = rules.find((rule) => rule.id === id);
    const others = rules.filter((rule) => rule !== moved);
    const at = before === null ? others.length : others.findIndex((rule) => rule.id === before);
    if (at < 0) return;
    const was = rules;
    rules = others.toSpliced(at, 0, moved);
    const active = document.activeElement;
    draw();
    active.focus(); // a row that is moved in the list loses it
    try {
      await live.call("crab_rules_move", before === null ? { id } : { id, before });
      replace(news, t("rules.moved", { id, place: at + 1, count: rules.length }));
      runTest();
    } catch (error) {
      rules = was;
      draw();
      toastError(error);
    }
  }

  async function enable(id, enabled) {
    try {
      put((await live.call("crab_rules_update", { id, enabled })).value);
    } catch (error) {
      toastError(error);
      throw error;
    }
  }

  async function remove(id) {
    try {
      await live.call("crab_rules_remove", { id });
    } catch (error) {
      return toastError(error);
    }
    const at = rules.findIndex((rule) => rule.id === id);
    rules = rules.filter((rule) => rule.id !== id);
    draw();
    (list.children[Math.min(at, rules.length - 1)]?.querySelector(".rule-handle") ?? testUrl).focus();
    toast(t("rules.removed", { id }), { undo: () => live.call("dari_proxy_restore_rule", { id }).then(() => toast(t("rules.restored", { id })), toastError) });
  }

  /** What a call returned, until the topic says the same. */
  function put(rule) {
    rules = rules.some((one) => one.id === rule.id) ? rules.map((one) => (one.id === rule.id ? rule : one)) : [...rules, rule];
    isRunning = true;
    draw();
    runTest();
  }

  // The form

  function update(next) {
    route = next;
    const { query } = route;
    const wanted = ["rule", "new", "flow"].map((name) => (query.has(name) ? `${name}=${query.get(name)}` : "")).join("");
    if (wanted !== shownForm) {
      shownForm = wanted;
      openForm(query).catch((error) => (toastError(error), close()));
    }
    const url = query.get("test") ?? "";
    if (document.activeElement !== testUrl) testUrl.value = url;
    if (query.has("method")) testMethod.value = query.get("method");
    runTest();
  }

  function close() {
    setQuery({ rule: null, new: null, flow: null });
  }

  async function openForm(query) {
    const wanted = shownForm;
    const made = query.has("rule") ? await editForm(query.get("rule")) : query.has("flow") ? await flowForm(query.get("flow"))
      : query.has("new") ? await newForm(KINDS.includes(query.get("new")) ? query.get("new") : KINDS[0]) : null;
    if (wanted !== shownForm || signal.aborted) return;
    replace(form, made);
    if (made) {
      made.querySelector("[name=matcher]").focus();
      made.scrollIntoView({ block: "nearest" });
    }
  }

  async function schema() {
    return (await live.tools()).find((tool) => tool.name === "crab_rules_add")?.inputSchema;
  }

  async function newForm(kind) {
    return ruleForm({ values: newValues(kind), schema: await schema(), title: t("rules.form.new"), isNew: true, onSave: save, onCancel: close });
  }

  async function save(values) {
    const { value } = await live.call("crab_rules_add", toArguments(values));
    put(value);
    told(t("rules.added", { id: value.id }), value);
    close();
  }

  function told(message, { warnings }) {
    const said = (warnings ?? []).map((one) => cleanText(one, 500)).join(" ");
    toast(said ? `${text(message)}. ${said}` : message, { kind: said ? "warn" : "ok" });
  }

  async function editForm(id) {
    const kind = rules.find((rule) => rule.id === id)?.kind;
    const { value } = await live.call("crab_rules_list", kind ? { kind } : {}, { signal });
    const rule = value.rules.find((one) => one.id === id);
    if (!rule) throw Object.assign(new Error(`no rule has the id ${id}`), { hint: "" });
    const onSave = async (values) => {
      const changes = toChanges(values, rule);
      if (!Object.keys(changes).length) toast(t("rules.unchanged"));
      else {
        const changed = (await live.call("crab_rules_update", { id, changes })).value;
        put(changed);
        told(t("rules.saved", { id }), changed);
      }
      close();
    };
    const extra = rule.kind === "map_remote" ? keepsSwitch(rule) : null;
    return ruleForm({ values: valuesOf(rule), schema: await schema(), title: t("rules.form.edit", { id }), kinds: [rule.kind], isNew: false, extra, onSave, onCancel: close });
  }

  function keepsSwitch(rule) {
    const box = toggle({ label: t("rules.field.keeps"), checked: rule.settings.keeps_credentials, onChange: async (keeps) => {
      const body = t("rules.keeps.body", { destination: cleanText(rule.settings.destination), matcher: cleanText(rule.matcher) });
      const isSure = !keeps || await confirmDialog({ title: t("rules.keeps.title"), body, action: t("rules.keeps.action"), danger: true });
      if (!isSure) throw new Error("cancelled");
      await live.call("dari_proxy_keep_credentials", { id: rule.id, keeps }).catch((error) => { toastError(error); throw error; });
    } });
    return h("label", { class: "check row" }, box, h("span", { "aria-hidden": "true" }, t("rules.field.keeps")));
  }

  async function flowForm(id) {
    const fields = ["method", "url", "host", "status", "mime"];
    const [{ value }, body] = await Promise.all([
      live.call("crab_traffic_show", { request_id: id, fields }, { signal }),
      live.call("crab_traffic_body", { request_id: id, max_chars: 200000 }, { signal }).then((made) => made.value, () => ({})),
    ]);
    const { flow } = value;
    const shared = { matcher: flow.url.split("?")[0], method: flow.method };
    const kinds = flow.status ? ["mock", ...KINDS] : KINDS;
    const onSave = async (values) => {
      if (values.kind !== "mock") return save(values);
      const matcher = values.matcher.trim();
      const made = (await live.call("crab_rules_mock", { request_id: id, ...(matcher === shared.matcher ? {} : { matcher }) })).value;
      put(made);
      told(t("rules.added", { id: made.id }), made);
      close();
    };
    onSave.prefill = {
      map_local: { text: body.text ?? "", content_type: flow.mime ?? "", status_code: flow.status ?? 200 },
      status_rewrite: { from_status_code: flow.status ?? "" },
      allow: { matcher: flow.host, method: "" },
    };
    return ruleForm({ values: newValues(kinds[0], shared), schema: await schema(), title: t("rules.form.flow", { id }), kinds, isNew: true, onSave, onCancel: close });
  }

  // The test

  function test(event) {
    event.preventDefault();
    setQuery({ test: testUrl.value.trim(), method: testMethod.value.trim().toUpperCase() || "GET" });
    runTest();
  }

  async function runTest() {
    const url = route.query.get("test");
    const method = route.query.get("method") || "GET";
    if (!url || isRunning === false) {
      verdicts = new Map();
      replace(result);
      delete result.dataset.state;
      return draw();
    }
    try {
      const { value } = await live.call("crab_rules_test", { url, method }, { signal });
      if (route.query.get("test") !== url) return;
      verdicts = new Map(value.kinds.flatMap((kind) => [...kind.matched, ...kind.others]).map((one) => [one.id, one.verdict]));
      result.dataset.state = value.kinds.some((kind) => kind.matched.length) ? "applies" : "none";
      replace(result, explanation(value));
      draw();
    } catch (error) {
      if (signal.aborted) return;
      result.dataset.state = "error";
      replace(result, h("p", { class: "rule-warning" }, icon("warn"), `${error.message} ${error.hint ?? ""}`));
    }
  }
}

function explanation(value) {
  const fact = (isTrue, label, why) => h("li", {}, badge(label, isTrue ? "ok" : ""), " ", h("span", { class: "muted" }, cleanText(why, 500)));
  const matched = value.kinds.flatMap((kind) => kind.matched.map((one) => ({ ...one, kind: kind.kind })));
  const others = value.kinds.flatMap((kind) => kind.others.map((one) => ({ ...one, kind: kind.kind })));
  const left = value.kinds.reduce((sum, kind) => sum + kind.others_left_out, 0);
  const line = (one) => h("li", { class: "row wrap", data: { verdict: one.verdict } },
    badge(t(`rules.verdict.${one.verdict.replaceAll(" ", "_")}`), one.verdict === "applies" ? "ok" : ""), h("a", { href: `${HOME}?rule=${one.id}` }, one.id),
    h("span", {}, t(`rules.kind.${one.kind}`)), h("code", {}, cleanText(one.matcher)), one.detail ? h("span", { class: "muted" }, cleanText(one.detail)) : null);
  return h("div", { class: "card stack" },
    h("h3", {}, t("rules.test.result", { method: cleanText(value.method), url: cleanText(value.url) })),
    h("ul", { class: "plain" },
      fact(value.is_recorded, value.is_recorded ? t("rules.test.recorded") : t("rules.test.not_recorded"), value.recorded_because),
      fact(value.is_decrypted !== false, value.is_decrypted === null ? t("rules.test.plain") : value.is_decrypted ? t("rules.test.decrypted") : t("rules.test.not_decrypted"), value.decrypted_because),
      value.mapped_url ? fact(true, t("rules.test.goes", { url: cleanText(value.mapped_url) }), "") : null),
    matched.length ? h("ul", { class: "plain" }, matched.map(line)) : h("p", {}, t("rules.test.no_rules")),
    others.length ? h("ul", { class: "plain" }, others.map(line)) : null,
    left ? h("p", { class: "muted" }, t("rules.test.more", { n: left })) : null,
    value.hints.map((hint) => h("p", { class: "rule-warning" }, icon("info"), cleanText(hint, 1000))));
}
