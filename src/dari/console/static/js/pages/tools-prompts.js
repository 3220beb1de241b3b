// Prompts: their arguments, completed by the server, and the messages that a model would get.

import { cleanText, h, replace } from "../lib/dom.js";
import { t } from "../lib/i18n.js";
import { live } from "../lib/live.js";
import { setQuery } from "../lib/route.js";
import { contentBlock, textOf } from "../parts/tool-result.js";
import { badge, copyButton, emptyState, field } from "../parts/widgets.js";
import { completedInput, sideList } from "./tools-resources.js";

export function mountPrompts(body, signal) {
  const { detail, draw } = sideList(body, { filterLabel: t("prompt.filter"), label: t("prompt.list") });
  let prompts = [];
  let name = null;
  let route = null;
  let isShown = false;

  async function load() {
    prompts = await live.list("prompts/list", "prompts");
    if (signal.aborted) return;
    body.dataset.state = "ready";
    drawList();
    if (!isShown) show();
  }
  const drawList = () =>
    draw(
      [
        {
          title: t("prompt.list"),
          rows: prompts.map((one) => ({
            id: one.name,
            name: one.title || one.name,
            about: `${one.name} ${one.description ?? ""}`,
            from: one.name.includes("__") ? one.name.split("__")[0] : "",
            href: `/tools/prompts/${encodeURIComponent(one.name)}`,
          })),
        },
      ],
      name ?? "",
    );
  live.onNotice((method) => method === "notifications/prompts/list_changed" && load().catch(() => {}), signal);
  load().catch((error) => !signal.aborted && replace(detail, emptyState({ icon: "warn", title: t("page.failed"), body: cleanText(error.message) })));

  function show() {
    const prompt = prompts.find((one) => one.name === name);
    isShown = Boolean(prompt);
    if (prompt) replace(detail, promptView(prompt, route, signal));
    else if (body.dataset.state === "ready")
      replace(
        detail,
        name
          ? emptyState({ icon: "warn", title: t("tools.missing", { name: cleanText(name) }), body: t("tools.missingBody") })
          : prompts.length
            ? emptyState({ icon: "edit", title: t("prompt.pick"), body: t("prompt.pickBody") })
            : emptyState({ icon: "edit", title: t("prompt.none"), body: t("prompt.noneBody") }),
      );
  }

  return {
    update(at) {
      route = at;
      const next = at.path[1] ?? null;
      if (next === name && isShown) return;
      name = next;
      drawList();
      show();
    },
  };
}

function promptView(prompt, route, signal) {
  const inputs = new Map();
  const values = () => Object.fromEntries([...inputs].map(([name, input]) => [name, input.value]).filter(([, value]) => value !== ""));
  let given = {};
  try {
    given = JSON.parse(route.query.get("args") ?? "{}");
  } catch {}
  const fields = (Array.isArray(prompt.arguments) ? prompt.arguments : []).map((one) => {
    const { input, options } = completedInput({ type: "ref/prompt", name: prompt.name }, one.name, values, {
      required: one.required === true,
    });
    inputs.set(one.name, input);
    if (typeof given?.[one.name] === "string") input.value = given[one.name];
    return [
      field(
        [h("span", { class: "mono" }, cleanText(one.title || one.name)), " ", one.required ? badge(t("form.required")) : null],
        input,
        one.description ? cleanText(one.description, 1000) : null,
      ),
      options,
    ];
  });
  const output = h("div", { class: "stack", "aria-live": "polite", data: { state: "idle" } });
  const get = async (event) => {
    event.preventDefault();
    const args = values();
    setQuery({ args: Object.keys(args).length ? JSON.stringify(args).slice(0, 1500) : null });
    output.dataset.state = "running";
    try {
      const result = await live.request("prompts/get", { name: prompt.name, arguments: args }, { signal });
      const messages = Array.isArray(result.messages) ? result.messages : [];
      replace(
        output,
        result.description ? h("p", { class: "muted" }, cleanText(result.description, 2000)) : null,
        messages.map(messageView),
        h(
          "div",
          { class: "row end" },
          copyButton(() => messages.map((one) => textOf([one.content].flat())).join("\n\n")),
        ),
      );
      output.dataset.state = "ready";
    } catch (error) {
      if (signal.aborted) return;
      replace(output, h("p", { class: "error" }, cleanText(error.message, 2000)), error.hint ? h("p", { class: "muted" }, cleanText(error.hint, 2000)) : null);
      output.dataset.state = "error";
    }
  };
  return h(
    "form",
    { class: "stack", on: { submit: get } },
    h(
      "div",
      { class: "stack tight" },
      h("h2", {}, cleanText(prompt.title || prompt.name)),
      h("code", { class: "muted" }, cleanText(prompt.name)),
      prompt.description ? h("p", {}, h("bdi", {}, cleanText(prompt.description, 4000))) : null,
    ),
    fields,
    h("div", {}, h("button", { class: "btn primary", type: "submit" }, t("prompt.get"))),
    output,
  );
}

const messageView = (one) =>
  h(
    "article",
    { class: "card prompt-message", data: { role: String(one?.role) } },
    h("h3", {}, badge(cleanText(one?.role), one?.role === "assistant" ? "info" : "")),
    ...[one?.content].flat().map(contentBlock),
  );
