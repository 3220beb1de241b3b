// Servers from elsewhere, reviewed before they are written: pasted JSON, and what other programs have.

import { cleanText, h, icon, replace } from "../lib/dom.js";
import { t } from "../lib/i18n.js";
import { live } from "../lib/live.js";
import { emptyState } from "../parts/widgets.js";
import { tn } from "./servers-detail.js";

const KINDS = { new: "ok", duplicate: "", conflict: "warn", broken: "bad" };
const EXAMPLE = '{\n  "mcpServers": {\n    "memory": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]}\n  }\n}';

/** kind: "json" or "import"; onAdded(names) when some were written. */
export function reviewView(panel, { kind, signal, onAdded }) {
  const isPaste = kind === "json";
  const place = h("div", { class: "stack" });
  const problem = h("p", { class: "error", role: "alert", hidden: true });
  const area = h("textarea", { class: "input", rows: "10", placeholder: EXAMPLE, "aria-label": t("servers.paste.label"), spellcheck: "false" });
  const look = h("button", { class: isPaste ? "btn primary" : "btn", type: "button", on: { click: review } }, isPaste ? t("servers.paste.read") : t("servers.import.look"));
  panel.append(h("div", { class: "card" }, h("p", { class: "muted" }, t(isPaste ? "servers.paste.help" : "servers.import.help")), isPaste ? area : null, h("div", { class: "row" }, look), problem), place);
  let timer = 0;
  area.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => area.value.trim() && review(), 400);
  });
  signal.addEventListener("abort", () => clearTimeout(timer));

  function tell(error) {
    problem.hidden = !error;
    replace(problem, error ? cleanText(error.hint ? `${error.message} – ${error.hint}` : error.message, 800) : null);
  }

  async function review() {
    clearTimeout(timer);
    tell(null);
    try {
      const args = isPaste ? { text: area.value } : {};
      const { value } = await live.call(isPaste ? "dari_servers_review_json" : "dari_servers_review_import", args, { signal });
      draw(value);
    } catch (error) {
      if (signal.aborted) return;
      replace(place);
      tell(error);
    }
  }

  function draw({ candidates, notes, file }) {
    if (!candidates.length) {
      replace(place, emptyState({ icon: "servers", title: t("servers.import.none"), body: t("servers.import.none.body") }));
      return;
    }
    const rows = candidates.map(row);
    const add = h("button", { class: "btn primary", type: "button" });
    const update = () => {
      const n = rows.filter((one) => one.choice()).length;
      replace(add, tn("servers.import.add", n));
      add.disabled = !n;
    };
    for (const one of rows) one.onChange = update;
    add.addEventListener("click", async () => {
      tell(null);
      add.disabled = true;
      const choices = rows.map((one) => one.choice()).filter(Boolean);
      try {
        const args = isPaste ? { text: area.value, choices } : { choices };
        const { value } = await live.call(isPaste ? "dari_servers_add_json" : "dari_servers_import_servers", args);
        onAdded(value.names);
      } catch (error) {
        tell(error);
        update();
      }
    });
    update();
    replace(place, h("div", { class: "card" }, h("h2", {}, t("servers.review")), notes.map((one) => h("p", { class: "small muted" }, cleanText(one, 500))),
      h("div", { class: "scroll" }, h("table", { class: "table server-review fold", "aria-label": t("servers.review") },
        h("thead", {}, h("tr", {}, ["action", "name", "runs", "from", "status"].map((one) => h("th", { scope: "col" }, t(`servers.review.${one}`))))),
        h("tbody", {}, rows.map((one) => one.el)))),
      h("div", { class: "row wrap" }, add, h("span", { class: "muted small ellipsis" }, t("servers.into", { file: cleanText(file) })))));
  }

  function row(one) {
    const shownName = cleanText(one.name, 200);
    const actions = { new: ["add", "skip"], duplicate: ["skip", "rename"], conflict: ["rename", "overwrite", "skip"], broken: ["skip"] }[one.status];
    const action = h("select", { class: "select", "aria-label": t("servers.review.action.of", { name: shownName }), disabled: one.status === "broken" }, actions.map((each) => h("option", { value: each }, t(`servers.action.${each}`))));
    if (one.status === "conflict") action.value = "skip";
    const name = h("input", { class: "input mono", type: "text", value: one.free_name || `${one.name}-2`, "aria-label": t("servers.review.newname", { name: shownName }), hidden: true, autocomplete: "off", spellcheck: "false" });
    const made = { el: null, onChange: () => {}, choice };
    const show = () => {
      name.hidden = action.value !== "rename";
      made.el.dataset.action = action.value;
      made.onChange();
    };
    made.el = h("tr", { data: { state: one.status, name: shownName, action: action.value } }, h("td", {}, action, name), h("td", {}, h("bdi", { class: "mono" }, shownName)), h("td", { class: "line" }, h("bdi", { class: "mono small" }, cleanText(one.address))),
      h("td", { class: "small" }, one.program === "paste" ? t("servers.pasted") : h("span", { title: cleanText(`${one.file}:${one.line}`) }, one.program)),
      h("td", { class: "line" }, h("span", { class: ["badge", KINDS[one.status]] }, t(`servers.status.${one.status}`)), [one.reason, ...one.notes].filter(Boolean).map((each) => h("p", { class: "small muted" }, cleanText(each, 500))),
        one.in_clear.length ? h("p", { class: "small error" }, icon("warn"), " ", t("servers.secrets", { fields: cleanText(one.in_clear.join(", ")) })) : null));
    action.addEventListener("change", show);
    name.addEventListener("input", () => made.onChange());
    function choice() {
      if (action.value === "skip") return null;
      return { ref: one.ref, name: action.value === "rename" ? name.value.trim() : one.name, overwrites: action.value === "overwrite" };
    }
    return made;
  }

  if (!isPaste) review();
  else area.focus();
}
