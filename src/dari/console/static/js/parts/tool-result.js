// What a tool, a resource or a prompt gave: text, tree, table, picture, sound, links. All of it is text of others.

import { cleanText, h, replace } from "../lib/dom.js";
import { bytes, count, duration } from "../lib/format.js";
import { addTexts, t } from "../lib/i18n.js";
import { tablesOf } from "../lib/json-tree.js";
import { pathText } from "../lib/schema.js";
import { check } from "../lib/validate.js";
import texts from "../texts/tools.js";
import { jsonView, longText } from "./json-view.js";
import { findingText } from "./schema-form.js";
import { badge, tabs } from "./widgets.js";

addTexts(texts);

const MAX_MEDIA_CHARS = 30_000_000;
const TABLE_ROWS = 100;
const MEDIA = /^(image\/(png|jpeg|gif|webp|bmp|avif|svg\+xml)|audio\/[\w.+-]+)$/;

export const textOf = (content) =>
  (Array.isArray(content) ? content : [])
    .filter((one) => one?.type === "text")
    .map((one) => String(one.text))
    .join("\n");

function parsed(text) {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The whole result of a call. `view` is the tab to begin with, onView(id) hears of another. */
export function resultView(result, { tool, ms, outcome, view = "", onView = () => {} } = {}) {
  const text = textOf(result?.content);
  const value = result?.structuredContent ?? parsed(text);
  const others = (Array.isArray(result?.content) ? result.content : []).filter((one) => one?.type !== "text");
  const tables = value === undefined ? [] : tablesOf(value);
  const views = {
    text: text ? () => longText(text) : null,
    tree: value !== undefined ? () => jsonView(value) : null,
    table: tables.length
      ? () =>
          h(
            "div",
            { class: "stack" },
            tables.map(([name, table]) => tableView(name, table)),
          )
      : null,
    raw: () => jsonView(result),
  };
  const ids = Object.keys(views).filter((id) => views[id]);
  const first = ids.includes(view) ? view : result?.structuredContent !== undefined && !result.isError ? "tree" : ids[0];
  const body = h("div", { class: "result-body" });
  const show = (id) => replace(body, views[id]());
  const tabBar = tabs({
    label: t("result.views"),
    current: first,
    items: ids.map((id) => ({ id, label: t(`result.${id}`) })),
    onSelect: (id) => (show(id), onView(id)),
  });
  show(first);
  const kind = { ok: "ok", error: "bad", cancelled: "warn" }[outcome];
  const hint = result?._meta?.["dari/error"]?.hint;
  const [fitBadge, mismatch] = fit(tool, result);
  return h(
    "section",
    { class: "stack result", data: { state: outcome }, "aria-label": t("result.title") },
    h(
      "div",
      { class: "row wrap", role: "status" },
      h("h3", {}, t("result.title")),
      badge(t(`result.${outcome}`), kind),
      ms === undefined ? null : h("span", { class: "muted small" }, duration(ms)),
      text ? h("span", { class: "muted small" }, bytes(text.length)) : null,
      fitBadge,
    ),
    hint && !text.includes(hint) ? h("p", {}, cleanText(hint, 2000)) : null,
    mismatch,
    others.length ? h("div", { class: "stack" }, others.map(contentBlock)) : null,
    text || value !== undefined || !others.length ? [tabBar, body] : null,
  );
}

const schemaOf = (tool) => (typeof tool?.outputSchema === "object" && tool.outputSchema !== null ? tool.outputSchema : null);

/** [a badge, a notice]: whether a client that checks results would take this one. A format is shown, not enforced. */
function fit(tool, result) {
  if (!schemaOf(tool) || result?.isError) return [null, null];
  if (result?.structuredContent === undefined) return [null, h("p", { class: "notice warn", data: { state: "mismatch" } }, t("result.noStructured"))];
  const found = check(schemaOf(tool), result.structuredContent, { limit: 20 }).filter((one) => one.keyword !== "format");
  if (!found.length) return [badge(t("result.fits"), "ok"), null];
  return [
    null,
    h(
      "div",
      { class: "notice warn", data: { state: "mismatch" } },
      t("result.mismatch"),
      h(
        "ul",
        {},
        found.map((one) => h("li", {}, h("code", {}, cleanText(pathText(one.path, "$"))), " ", findingText(one))),
      ),
    ),
  ];
}

/** One block of content. */
export function contentBlock(block) {
  if (block?.type === "text") return longText(String(block.text));
  if (block?.type === "image" || block?.type === "audio") return media(block.data, block.mimeType);
  if (block?.type === "resource_link") return resourceLink(block);
  if (block?.type === "resource") return resourceView(block.resource ?? {});
  return h("div", { class: "stack tight" }, h("p", { class: "muted" }, t("result.unknown", { type: cleanText(block?.type) })), jsonView(block));
}

const resourceLink = (one) =>
  h(
    "p",
    { class: "row wrap" },
    h("a", { href: `/tools/resources/${encodeURIComponent(String(one.uri))}` }, cleanText(one.title || one.name || one.uri)),
    h("code", { class: "muted" }, cleanText(one.uri)),
    one.description ? h("span", { class: "muted" }, cleanText(one.description)) : null,
  );

function media(data, mimeType) {
  const type = String(mimeType ?? "").toLowerCase();
  if (typeof data !== "string" || data.length > MAX_MEDIA_CHARS || !MEDIA.test(type)) return download(data, type, "content");
  const src = `data:${type};base64,${data}`;
  if (type.startsWith("audio/")) return h("audio", { controls: true, src, "aria-label": t("result.audio", { type }) });
  return h("img", { class: "result-image", src, alt: t("result.image", { type }) });
}

/** A resource's content: text (JSON as a tree), a picture, a sound, or a file to keep. */
export function resourceView(one) {
  const type = String(one.mimeType ?? "");
  const head = h("p", { class: "muted small" }, h("code", {}, cleanText(one.uri)), " ", cleanText(type));
  if (typeof one.text === "string") {
    const value = /json/.test(type) || !type ? parsed(one.text) : undefined;
    return h("div", { class: "stack tight" }, head, value === undefined ? longText(one.text) : jsonView(value));
  }
  if (typeof one.blob === "string") return h("div", { class: "stack tight" }, head, media(one.blob, type));
  return h("div", { class: "stack tight" }, head, jsonView(one));
}

function download(data, type, name) {
  if (typeof data !== "string") return h("p", { class: "muted" }, t("result.unknown", { type: cleanText(type) }));
  return h(
    "p",
    {},
    h(
      "button",
      {
        class: "btn",
        type: "button",
        on: {
          click: () => {
            let text = "";
            try {
              text = atob(data);
            } catch {}
            const url = URL.createObjectURL(new Blob([Uint8Array.from(text, (letter) => letter.charCodeAt(0))], { type: "application/octet-stream" }));
            h("a", { href: url, download: name }).click();
            setTimeout(() => URL.revokeObjectURL(url), 10000);
          },
        },
      },
      t("result.download", { name: `${cleanText(type) || name} (${bytes(Math.floor(data.length * 0.75))})` }),
    ),
  );
}

function tableView(name, { columns, rows }) {
  const cell = (value) =>
    value === undefined ? "" : h("bdi", {}, cleanText(typeof value === "object" && value !== null ? JSON.stringify(value)?.slice(0, 500) : value, 300));
  const body = h("tbody", {});
  const more = h("button", { class: "btn ghost", type: "button", on: { click: show } });
  const box = h("div", { class: "stack tight" });
  let at = 0;
  function show() {
    more.remove();
    body.append(
      ...rows.slice(at, at + TABLE_ROWS).map((row) =>
        h(
          "tr",
          {},
          columns.map((key) => h("td", { class: typeof row?.[key] === "number" ? "num" : null }, cell(row?.[key]))),
        ),
      ),
    );
    at += TABLE_ROWS;
    if (at < rows.length) box.append(replace(more, t("tools.more", { n: count(Math.min(TABLE_ROWS, rows.length - at)) })));
  }
  const caption = h("caption", { class: "muted small" }, name ? `${cleanText(name)} · ` : "", t("result.rows", { n: count(rows.length) }));
  box.append(
    h(
      "div",
      { class: "scroll result-table", tabindex: "0", role: "region", "aria-label": t("result.table") },
      h(
        "table",
        { class: "table" },
        caption,
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            columns.map((key) => h("th", { scope: "col" }, cleanText(key))),
          ),
        ),
        body,
      ),
    ),
  );
  show();
  return box;
}
