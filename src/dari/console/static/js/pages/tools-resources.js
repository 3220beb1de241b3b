// Resources and their templates: read, and read again when the server says that one changed.

import { cleanText, h, replace } from "../lib/dom.js";
import { bytes, clock } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { live } from "../lib/live.js";
import { go } from "../lib/route.js";
import { fillTemplate, fold, templateFields } from "../lib/tool-list.js";
import { toastError } from "../parts/toast.js";
import { resourceView } from "../parts/tool-result.js";
import { emptyState, field, toggle } from "../parts/widgets.js";

const PAGE = 300;

/** A list with a filter beside a detail: sideList({filter, label, signal}) → {el, detail, draw(groups)}. */
export function sideList(body, { filterLabel, label }) {
  let groups = [];
  const filter = h("input", {
    class: "input",
    type: "search",
    placeholder: filterLabel,
    "aria-label": filterLabel,
    on: { input: () => draw(groups) },
  });
  const list = h("nav", { class: "tools-list", "aria-label": label });
  const detail = h("div", { class: "tools-detail stack" });
  body.append(h("div", { class: "tools-side stack tight" }, filter, list), detail);
  function draw(next, current = list.dataset.current) {
    groups = next;
    list.dataset.current = current ?? "";
    const wanted = fold(filter.value.trim());
    replace(
      list,
      groups.map(({ title, rows }) => {
        const found = rows.filter((one) => fold(`${one.name} ${one.about}`).includes(wanted));
        const links = found
          .slice(0, PAGE)
          .map((one) =>
            h(
              "li",
              {},
              h(
                "a",
                { class: "tools-row", href: one.href, "aria-current": one.id === current ? "page" : null },
                h("span", { class: "ellipsis" }, cleanText(one.name)),
                one.from ? h("span", { class: "muted small nowrap" }, cleanText(one.from, 30)) : null,
              ),
            ),
          );
        return found.length
          ? h(
              "div",
              { class: "tools-section" },
              h("h2", { class: "tools-group" }, title, h("span", { class: "muted small" }, String(found.length))),
              h("ul", { class: "tools-rows" }, links),
              found.length > PAGE ? h("p", { class: "muted small" }, `… ${found.length - PAGE}`) : null,
            )
          : null;
      }),
    );
  }
  return { detail, draw };
}

/** An input that asks the server to complete what is typed: ref is {type: "ref/prompt", name} or {type: "ref/resource", uri}. */
let lists = 0;
export function completedInput(ref, name, others, props = {}) {
  const options = h("datalist", { id: `completion-${++lists}` });
  const input = h("input", { class: "input", type: "text", list: options.id, autocomplete: "off", spellcheck: "false", ...props });
  let timer = 0;
  let asked = 0;
  const ask = async () => {
    const mine = ++asked;
    try {
      const { completion } = await live.request("completion/complete", {
        ref,
        argument: { name, value: input.value },
        context: { arguments: others() },
      });
      if (mine === asked)
        replace(
          options,
          (completion?.values ?? []).slice(0, 100).map((value) => h("option", { value: String(value) })),
        );
    } catch {
      input.removeAttribute("list"); // a server without completion: typing is enough
    }
  };
  input.addEventListener("focus", ask, { once: true });
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, 150);
  });
  return { input, options };
}

const schemeOf = (uri) => /^[\w+.-]+(?=:)/.exec(uri)?.[0] ?? "";
const pathOf = (uri) => `/tools/resources/${encodeURIComponent(uri)}`;

export function mountResources(body, signal) {
  const { detail, draw } = sideList(body, { filterLabel: t("res.filter"), label: t("res.list") });
  let resources = [];
  let templates = [];
  let uri = null;
  let shown = new AbortController();
  signal.addEventListener("abort", () => shown.abort());

  async function load() {
    [resources, templates] = await Promise.all([live.list("resources/list", "resources"), live.list("resources/templates/list", "resourceTemplates")]);
    if (signal.aborted) return;
    body.dataset.state = "ready";
    drawList();
    if (!shown.view) show();
  }
  const drawList = () =>
    draw(
      [
        {
          title: t("res.list"),
          rows: resources.map((one) => ({
            id: one.uri,
            name: one.title || one.name || one.uri,
            about: `${one.uri} ${one.description ?? ""}`,
            from: schemeOf(one.uri),
            href: pathOf(one.uri),
          })),
        },
        {
          title: t("res.templates"),
          rows: templates.map((one) => ({
            id: one.uriTemplate,
            name: one.title || one.name || one.uriTemplate,
            about: `${one.uriTemplate} ${one.description ?? ""}`,
            from: schemeOf(one.uriTemplate),
            href: pathOf(one.uriTemplate),
          })),
        },
      ],
      uri ?? "",
    );
  live.onNotice((method) => method === "notifications/resources/list_changed" && load().catch(() => {}), signal);
  load().catch((error) => !signal.aborted && replace(detail, emptyState({ icon: "warn", title: t("page.failed"), body: cleanText(error.message) })));

  function show() {
    shown.abort();
    shown = new AbortController();
    const template = templates.find((one) => one.uriTemplate === uri);
    if (!uri)
      return replace(
        detail,
        body.dataset.state !== "ready"
          ? null
          : resources.length + templates.length
            ? emptyState({ icon: "file", title: t("res.pick"), body: t("res.pickBody") })
            : emptyState({ icon: "file", title: t("res.none"), body: t("res.noneBody") }),
      );
    if (body.dataset.state !== "ready") return;
    shown.view = true;
    replace(detail, template ? templateView(template) : resourceDetail(uri, shown.signal));
  }

  function templateView(one) {
    const inputs = new Map();
    const values = () => Object.fromEntries([...inputs].map(([name, input]) => [name, input.value]));
    const preview = h("code", { class: "code" }, cleanText(one.uriTemplate));
    const fields = templateFields(one.uriTemplate).map((name) => {
      const { input, options } = completedInput({ type: "ref/resource", uri: one.uriTemplate }, name, values);
      inputs.set(name, input);
      input.addEventListener("input", () => replace(preview, cleanText(fillTemplate(one.uriTemplate, values()))));
      return [field(cleanText(name), input), options];
    });
    const submit = (event) => {
      event.preventDefault();
      go(pathOf(fillTemplate(one.uriTemplate, values())));
    };
    return h(
      "form",
      { class: "stack", on: { submit } },
      head(one),
      fields,
      preview,
      h("div", {}, h("button", { class: "btn primary", type: "submit" }, t("res.read"))),
    );
  }

  function resourceDetail(address, until) {
    const one = resources.find((each) => each.uri === address) ?? { uri: address };
    const contents = h("div", { class: "stack", "aria-live": "polite", data: { state: "loading" } });
    const updated = h("span", { class: "muted small", role: "status" });
    const read = async () => {
      try {
        const result = await live.request("resources/read", { uri: address }, { signal: until });
        replace(contents, (result.contents ?? []).map(resourceView));
        contents.dataset.state = "ready";
      } catch (error) {
        if (until.aborted) return;
        replace(
          contents,
          h("p", { class: "error" }, cleanText(error.message, 2000)),
          error.hint ? h("p", { class: "muted" }, cleanText(error.hint, 2000)) : null,
        );
        contents.dataset.state = "error";
      }
    };
    let isFollowed = false;
    const follow = async (on) => {
      try {
        await live.request(on ? "resources/subscribe" : "resources/unsubscribe", { uri: address });
        isFollowed = on;
      } catch (error) {
        toastError(error);
        throw error;
      }
    };
    live.onNotice((method, params) => {
      if (method !== "notifications/resources/updated" || params.uri !== address) return;
      read().then(() => replace(updated, t("res.updated", { time: clock(Date.now() / 1000) })));
    }, until);
    live.onState((state) => state === "open" && isFollowed && follow(true).then(read, () => {}), until);
    until.addEventListener("abort", () => isFollowed && live.request("resources/unsubscribe", { uri: address }).catch(() => {}));
    read();
    return h(
      "div",
      { class: "stack" },
      head(one),
      h(
        "div",
        { class: "row wrap" },
        h("button", { class: "btn", type: "button", on: { click: read } }, t("res.read")),
        h("label", { class: "check" }, toggle({ label: t("res.follow"), onChange: follow }), t("res.follow")),
        updated,
      ),
      contents,
    );
  }

  return {
    update({ path }) {
      const next = path[1] ?? null;
      if (next === uri && shown.view) return;
      uri = next;
      drawList();
      show();
    },
  };
}

function head(one) {
  return h(
    "div",
    { class: "stack tight" },
    h("h2", {}, cleanText(one.title || one.name || one.uri || one.uriTemplate)),
    h("code", { class: "muted" }, cleanText(one.uri ?? one.uriTemplate, 1000)),
    one.description ? h("p", {}, h("bdi", {}, cleanText(one.description, 4000))) : null,
    h(
      "p",
      { class: "muted small" },
      [one.mimeType, typeof one.size === "number" ? bytes(one.size) : ""]
        .filter(Boolean)
        .map((part) => cleanText(part))
        .join(" · "),
    ),
  );
}
