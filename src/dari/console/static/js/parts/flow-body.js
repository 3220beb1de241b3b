// A body by its type: JSON as a tree, forms and events as lists, pictures, bytes, and everything else as text.

import { cleanLines, cleanText, h, icon, replace } from "../lib/dom.js";
import { bodyKind, hexRows, parseEvents } from "../lib/flow-rows.js";
import { bytes } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { live } from "../lib/live.js";
import { toastError } from "./toast.js";
import { copyButton } from "./widgets.js";

const FIRST_CHARS = 200_000;
const MOST_CHARS = 1_000_000;
const HEX_BYTES = 64 * 1024;

/** The body of one direction; read when it is shown. `known` is what the request's own view says about it. */
export function bodyView(id, direction, known, signal) {
  const place = h("div", { class: "stack" });
  const title = h("h3", { class: "grow" }, t("traffic.body"));
  const tools = h("div", { class: "row" });
  const section = h("section", { data: { body: direction, state: "loading" } }, h("div", { class: "row wrap" }, title, tools), place);
  if (!known || known.kind === "empty") {
    section.dataset.state = "empty";
    replace(place, h("p", { class: "muted" }, t(known || direction === "request" ? "traffic.body.empty" : "traffic.body.none")));
    return section;
  }
  read(FIRST_CHARS);
  return section;

  async function read(chars) {
    try {
      const { value: view } = await live.call("crab_traffic_body", { request_id: String(id), direction, max_chars: chars }, { signal });
      await show(view, chars);
      section.dataset.state = "ready";
    } catch (error) {
      if (error?.name !== "AbortError") replace(place, h("p", { class: "error" }, String(error?.message ?? error)));
    }
  }

  async function show(view, chars) {
    const kind = bodyKind(view);
    section.dataset.kind = kind;
    const facts = [view.mime, view.encoding, view.charset, bytes(view.decoded_bytes)].filter(Boolean).map((one) => cleanText(one)).join(" · ");
    replace(title, t("traffic.body"), " ", h("span", { class: "muted small" }, facts));
    replace(tools,
      view.text ? copyButton(view.text) : null,
      h("button", { class: "btn ghost icon", type: "button", "aria-label": t("traffic.body.download"), title: t("traffic.body.bytes.title"), on: { click: () => download(view) } }, icon("download")));
    const note = view.note ? h("p", { class: "muted small" }, cleanText(view.note)) : null;
    replace(place, await SHOW[kind](view), note);
    if (view.truncated && view.text) {
      place.append(h("p", { class: "row muted" }, t("traffic.body.part", { shown: bytes(view.text.length), total: bytes(view.decoded_bytes) }),
        chars < MOST_CHARS ? h("button", { class: "btn", type: "button", on: { click: () => read(MOST_CHARS) } }, t("traffic.body.more")) : null));
    }
    if (kind === "hex" || kind === "image") place.append(bytesButton(kind));
  }

  function bytesButton(kind) {
    const button = h("button", { class: "btn", type: "button", title: t("traffic.body.bytes.title") }, icon("eye"), t(kind === "image" ? "traffic.body.picture" : "traffic.body.bytes"));
    button.addEventListener("click", async () => {
      try {
        const { data, mime, total } = await reveal(kind === "image" ? 4 * 1024 * 1024 : HEX_BYTES);
        button.replaceWith(kind === "image" ? picture(data, mime) : hex(data, total));
      } catch (error) {
        toastError(error);
      }
    });
    return button;
  }

  async function reveal(most, start = 0) {
    const { value } = await live.call("dari_traffic_reveal_body", { request_id: String(id), direction, start, max_bytes: most }, { signal });
    return { data: Uint8Array.from(atob(value.data_base64), (one) => one.charCodeAt(0)), mime: value.mime, total: value.total_bytes };
  }

  function picture(data, mime) {
    const url = URL.createObjectURL(new Blob([data], { type: mime }));
    signal.addEventListener("abort", () => URL.revokeObjectURL(url));
    return h("img", { class: "body-picture", src: url, alt: t("traffic.body.picture.alt") });
  }

  async function download(view) {
    try {
      const parts = [];
      for (let start = 0, total = 1; start < total; start += parts.at(-1).length) {
        const { data, total: all } = await reveal(4 * 1024 * 1024, start);
        total = all;
        parts.push(data);
        if (!data.length) break;
      }
      const url = URL.createObjectURL(new Blob(parts, { type: "application/octet-stream" }));
      h("a", { href: url, download: `${id}-${direction}${EXTENSIONS[view.mime] ?? ".bin"}` }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    } catch (error) {
      toastError(error);
    }
  }
}

const EXTENSIONS = { "application/json": ".json", "text/html": ".html", "text/plain": ".txt", "image/png": ".png", "image/jpeg": ".jpg", "text/css": ".css", "application/pdf": ".pdf" };

const SHOW = {
  empty: () => h("p", { class: "muted" }, t("traffic.body.empty")),
  text: ({ text }) => plain(text),
  hex: () => null,
  image: () => null,
  async json(view) {
    if (view.truncated) return plain(view.text);
    try {
      const [{ jsonView }, value] = [await import("./json-view.js"), JSON.parse(view.text)];
      return jsonView(value);
    } catch {
      return plain(view.text);
    }
  },
  form: ({ text }) => pairs([...new URLSearchParams(text)]),
  events({ text }) {
    const events = parseEvents(text).slice(-500);
    return h("ol", { class: "messages" }, events.map((one) =>
      h("li", { data: { direction: "received" } }, h("span", { class: "muted small" }, cleanText(one.event), one.id ? ` · ${cleanText(one.id, 60)}` : ""), h("pre", {}, cleanLines(one.data)))));
  },
};

function plain(text) {
  return h("pre", { class: "body-text", tabindex: "0", "aria-label": t("traffic.body") }, cleanLines(text ?? ""));
}

function hex(data, total) {
  const text = hexRows(data).map((row) => row.join("  ")).join("\n");
  const note = data.length < total ? h("p", { class: "muted" }, t("traffic.body.part", { shown: bytes(data.length), total: bytes(total) })) : null;
  return h("div", { class: "stack" }, h("pre", { class: "hex", tabindex: "0", "aria-label": t("traffic.body") }, text), note);
}

export function pairs(rows) {
  return h("table", { class: "table flow-headers" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("traffic.header.name")), h("th", { scope: "col" }, t("traffic.header.value")))),
    h("tbody", {}, rows.map(([name, value]) => h("tr", {}, h("td", {}, cleanText(name)), h("td", { class: value.includes("<redacted>") ? "secret" : null }, cleanText(value, 4000))))));
}
