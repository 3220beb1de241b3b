// The form of a server (design 003, "MCP Server Registry"), for a new one and for one that is there.

import { cleanText, clear, h, icon, replace, setProps } from "../lib/dom.js";
import { t } from "../lib/i18n.js";
import { live } from "../lib/live.js";
import { toastError } from "../parts/toast.js";
import { field } from "../parts/widgets.js";
import { testView } from "./servers-detail.js";

const KINDS = ["literal", "reference", "inherit"];

/** Fills `panel`; onSaved(result) after a save. */
export async function serverForm(panel, { name, signal, onSaved }) {
  let edit;
  try {
    edit = (await live.call("dari_servers_form", { name }, { signal })).value;
  } catch (error) {
    if (!signal.aborted) replace(panel, h("div", { class: "card" }, h("p", { class: "error" }, cleanText(error.message, 800)), h("p", { class: "muted" }, cleanText(error.hint, 800))));
    return;
  }
  if (signal.aborted) return;
  const given = edit.form;
  let digest = edit.digest;
  const input = (value, props = {}) => h("input", { class: "input", type: "text", value: value || "", autocomplete: "off", spellcheck: "false", ...props });
  const title = input(given.name, { required: true });
  const transport = h("select", { class: "select" }, ["stdio", "http", "sse"].map((one) => h("option", { value: one }, one)));
  transport.value = given.transport;
  const command = input(given.command, { placeholder: "npx" });
  const args = argumentList(given.args);
  const env = valueList(given.env, { label: "servers.env", add: "servers.env.add", kinds: KINDS });
  const cwd = input(given.cwd, { placeholder: "~" });
  const paths = pathList(given.allowed_paths, edit.suggestions, signal);
  const network = h("select", { class: "select" }, ["", "all", "loopback", "none"].map((one) => h("option", { value: one }, t(`servers.network.${one || "same"}`))));
  network.value = given.network;
  if (given.network || !name) network.firstChild.remove();
  const restart = h("select", { class: "select" }, ["on-failure", "always", "never"].map((one) => h("option", { value: one }, t(`servers.restart.${one}`))));
  restart.value = given.restart;
  const most = h("input", { class: "input short", type: "number", min: "0", max: "1000", value: String(given.max_restarts) });
  const url = input(given.url, { placeholder: "https://example.com/mcp", inputmode: "url" });
  const headers = valueList(given.headers, { label: "servers.headers", add: "servers.headers.add", kinds: KINDS.slice(0, 2) });
  const key = valueList(given.key ? [{ ...given.key, name: "token" }] : [], { label: "servers.key", add: "servers.key.add", kinds: KINDS.slice(0, 2), single: "token" });
  const description = input(given.description);
  const problem = h("p", { class: "error", role: "alert", hidden: true });
  const test = testView();
  const save = h("button", { class: "btn primary", type: "submit" }, t("servers.save"));
  const probe = h("button", { class: "btn", type: "button" }, icon("bolt"), t("servers.test"));
  const local = h("div", { class: "stack" },
    field(t("servers.command"), command), args.el, env.el, paths.el,
    h("div", { class: "row wrap top server-row" }, field(t("servers.cwd"), cwd, t("servers.cwd.help")), field(t("servers.network"), network), field(t("servers.restart"), restart), field(t("servers.max"), most)));
  const remote = h("div", { class: "stack" }, field(t("servers.url"), url), key.el, headers.el);
  const form = h("form", { class: "card server-form", "aria-label": t("servers.form") },
    h("div", { class: "row wrap top server-row" }, field(t("servers.name"), title), field(t("servers.transport"), transport), field(t("servers.description"), description)),
    local, remote, problem,
    edit.notes.length ? h("ul", { class: "small muted" }, edit.notes.map((one) => h("li", {}, cleanText(one, 500)))) : null,
    h("div", { class: "row wrap" }, probe, save, h("span", { class: "muted small ellipsis" }, t("servers.into", { file: cleanText(edit.file) }))),
    test.el);

  function showTransport() {
    local.hidden = transport.value !== "stdio";
    remote.hidden = transport.value === "stdio";
  }
  transport.addEventListener("change", showTransport);
  showTransport();

  // A whole command line, as README files show it, is split into its words.
  command.addEventListener("paste", (event) => {
    const words = (event.clipboardData.getData("text").trim().match(/"[^"]*"|'[^']*'|\S+/g) || []).map((word) => word.replace(/^(["'])(.*)\1$/, "$2"));
    if (words.length < 2 || args.read().length) return;
    event.preventDefault();
    command.value = words[0];
    args.set(words.slice(1));
  });

  function read() {
    const common = { name: title.value.trim(), transport: transport.value, description: description.value.trim(), enabled: given.enabled };
    if (transport.value !== "stdio") return { ...common, url: url.value.trim(), headers: headers.read(), key: key.read()[0] || null };
    return { ...common, command: command.value.trim(), args: args.read(), env: env.read(), cwd: cwd.value.trim(), allowed_paths: paths.read(),
      network: network.value, restart: restart.value, max_restarts: Number(most.value) || 0 };
  }

  function tell(error) {
    problem.hidden = !error;
    const isLate = error?.name === "conflict" && digest;
    const over = isLate ? h("button", { class: "btn danger", type: "button", on: { click: () => ((digest = ""), form.requestSubmit()) } }, t("servers.overwrite")) : null;
    replace(problem, error ? cleanText(error.hint ? `${error.message} – ${error.hint}` : error.message, 800) : null, " ", over);
  }

  probe.addEventListener("click", () => {
    tell(null);
    test.run({ form: { ...read(), name: title.value.trim() || "new" }, was: name }, signal);
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    tell(null);
    save.disabled = true;
    try {
      const { value } = await live.call("dari_servers_save", { form: read(), was: name, digest });
      onSaved(value);
      if (name === value.server.name) digest = (await live.call("dari_servers_form", { name }, { signal })).value.digest;
    } catch (error) {
      tell(error);
    } finally {
      save.disabled = false;
    }
  });
  clear(panel).append(form);
  if (!name) title.focus();
}

/** One box for each argument, and an empty one at the end. */
function argumentList(given) {
  const rows = h("div", { class: "stack tight" });
  const el = h("fieldset", { class: "server-list" }, h("legend", { class: "label" }, t("servers.args")), rows);
  function row(value) {
    const box = h("input", { class: "input mono", type: "text", value, autocomplete: "off", spellcheck: "false" });
    box.addEventListener("input", () => {
      if (rows.lastChild === box && box.value) add("");
    });
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing) {
        event.preventDefault();
        (box.nextSibling || add("")).focus();
      } else if (event.key === "Backspace" && !box.value && rows.childElementCount > 1) {
        event.preventDefault();
        (box.previousSibling || box.nextSibling).focus();
        box.remove();
        number();
      }
    });
    return box;
  }
  function add(value) {
    const box = rows.appendChild(row(value));
    number();
    return box;
  }
  function number() {
    [...rows.children].forEach((box, at) => setProps(box, { "aria-label": t("servers.args.n", { n: at + 1 }) }));
  }
  function set(values) {
    clear(rows);
    for (const value of [...values, ""]) add(value);
  }
  set(given);
  function read() {
    const values = [...rows.children].map((box) => box.value);
    while (values.length && !values.at(-1)) values.pop();
    return values;
  }
  return { el, set, read };
}

/** Variables or headers: name, kind, value. A secret that the file holds is `kept` until another value is written. */
function valueList(given, { label, add, kinds, single }) {
  const rows = h("div", { class: "stack tight" });
  const plus = h("button", { class: "btn ghost", type: "button", on: { click: () => row({ name: single || "", kind: single ? "reference" : "literal", value: "" }).focus() } }, icon("plus"), t(add));
  const el = h("fieldset", { class: "server-list" }, h("legend", { class: "label" }, t(label)), rows, plus);
  function row(one) {
    const name = h("input", { class: "input mono", type: "text", value: one.name, "aria-label": t("servers.value.name"), autocomplete: "off", spellcheck: "false", hidden: Boolean(single) });
    const options = one.kind === "kept" ? ["kept", ...kinds] : kinds;
    const kind = h("select", { class: "select", "aria-label": t("servers.value.kind") }, options.map((each) => h("option", { value: each }, t(`servers.value.${each}`))));
    kind.value = one.kind;
    const value = h("input", { class: "input mono", type: "text", value: one.value || "", "aria-label": t("servers.value.value"), autocomplete: "off", spellcheck: "false" });
    const show = () => {
      const noValue = kind.value === "inherit" || kind.value === "kept";
      value.disabled = noValue;
      value.placeholder = kind.value === "kept" ? "••••••••" : kind.value === "reference" ? "${NAME}" : "";
      if (noValue) value.value = "";
    };
    const drop = h("button", { class: "btn ghost icon", type: "button", "aria-label": t("servers.value.remove"), on: { click: () => (line.remove(), (plus.hidden = false)) } }, icon("close"));
    const line = h("div", { class: "row server-value", data: { kind: one.kind } }, name, kind, value, drop);
    kind.addEventListener("change", () => (show(), (line.dataset.kind = kind.value)));
    show();
    line.read = () => ({ name: single || name.value.trim(), kind: kind.value, value: value.value });
    rows.append(line);
    if (single) plus.hidden = true;
    return single ? value : name;
  }
  for (const one of given) row(one);
  return { el, read: () => [...rows.children].map((line) => line.read()).filter((one) => one.name || one.value) };
}

/** Allowed paths: those that are ticked are open to the server, with a check of each folder. */
function pathList(given, suggestions, signal) {
  const rows = h("ul", { class: "stack tight" });
  const access = h("select", { class: "select", "aria-label": t("servers.files") }, ["all", "paths"].map((one) => h("option", { value: one }, t(`servers.files.${one}`))));
  access.value = given ? "paths" : "all";
  const box = h("input", { class: "input mono", type: "text", placeholder: "~/Documents", "aria-label": t("servers.path"), autocomplete: "off", spellcheck: "false" });
  const enter = h("div", { class: "row", hidden: true }, box, h("button", { class: "btn", type: "button", on: { click: take } }, t("servers.path.take")));
  const plus = h("button", { class: "btn ghost", type: "button", on: { click: () => ((enter.hidden = false), box.focus()) } }, icon("plus"), t("servers.path.add"));
  const el = h("fieldset", { class: "server-list" }, h("legend", { class: "label" }, t("servers.paths")), rows, enter, h("div", { class: "row wrap" }, plus, access));
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    take();
  });

  function take() {
    const path = box.value.trim();
    if (!path) return;
    const there = [...rows.children].find((line) => line.path === path);
    if (there) there.tick.checked = true;
    else row(path, "rw", true);
    access.value = "paths";
    box.value = "";
    box.focus();
  }

  function row(path, mode, isOn, check) {
    const tick = h("input", { type: "checkbox", checked: isOn, on: { change: () => tick.checked && (access.value = "paths") } });
    const modes = h("select", { class: "select", "aria-label": t("servers.path.mode") }, ["rw", "ro"].map((one) => h("option", { value: one }, t(`servers.path.${one}`))));
    modes.value = mode;
    const note = h("span", { class: "small muted", role: "status" });
    const line = h("li", { class: "row wrap server-path" }, h("label", { class: "check" }, tick, h("bdi", { class: "mono" }, cleanText(path, 500))), modes, note);
    Object.assign(line, { path, tick, read: () => ({ path, mode: modes.value }) });
    rows.append(line);
    if (check) mark(line, note, check);
    else live.call("dari_servers_check_paths", { paths: [path] }, { signal }).then(({ value }) => mark(line, note, value.paths[0]), (error) => signal.aborted || toastError(error));
  }

  function mark(line, note, check) {
    line.dataset.state = check.state;
    note.classList.toggle("error", check.state === "invalid" || check.state === "missing");
    replace(note, check.note ? cleanText(check.note) : t(`servers.path.is.${check.state}`), check.resolved ? ` → ${cleanText(check.resolved)}` : null);
  }

  for (const one of given || []) row(one.path, one.mode, true);
  for (const one of suggestions) row(one.path, "rw", false, one);
  return { el, read: () => (access.value === "all" ? null : [...rows.children].filter((line) => line.tick.checked).map((line) => line.read())) };
}
