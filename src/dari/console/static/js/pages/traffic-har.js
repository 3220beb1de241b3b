// /traffic/har: recorded requests as a HAR file, and back; in parts, so that no message is long.

import { cleanText, h, icon, replace } from "../lib/dom.js";
import { bytes, count } from "../lib/format.js";
import { harPieces, splitHar } from "../lib/har.js";
import { addTexts, t } from "../lib/i18n.js";
import { live } from "../lib/live.js";
import { setQuery } from "../lib/route.js";
import { download } from "../parts/download.js";
import { filterBox } from "../parts/filter-box.js";
import { toastError } from "../parts/toast.js";
import { field } from "../parts/widgets.js";
import texts from "../texts/traffic-tools.js";

addTexts(texts);
export const css = ["traffic-tools.css"];

const MAX_FILE_BYTES = 128 * 1024 * 1024;
const MOST = 10000;

export function mount(root, { route, signal }) {
  const exported = h("div", { role: "status", data: { result: "export" } });
  const imported = h("div", { role: "status", data: { result: "import" } });
  const filter = filterBox({ value: route.query.get("filter") ?? "", signal, onChange: (text) => setQuery({ filter: text || null }) });
  const most = h("input", { class: "input", name: "most", type: "number", min: "1", value: String(MOST), required: true });
  const picker = h("input", { class: "visually-hidden", type: "file", name: "file", accept: ".har,application/json", "aria-label": t("har.file"), on: { change: () => picker.files[0] && load(picker.files[0]) } });
  replace(root, h("section", { class: "stack", "aria-labelledby": "har-title" },
    h("h2", { id: "har-title" }, t("har.title")), h("p", { class: "muted" }, t("har.about")),
    h("div", { class: "settings-grid" },
      h("form", { class: "card stack", "aria-label": t("har.export"), on: { submit: save } }, h("h3", {}, t("har.export")),
        filter.element, filter.problem, field(t("har.most"), most),
        h("label", { class: "check" }, h("input", { type: "checkbox", name: "bodies", checked: true }), t("har.bodies")),
        h("div", { class: "row" }, h("button", { class: "btn primary", type: "submit" }, icon("download"), t("har.download"))), exported),
      h("div", { class: "card stack", data: { drop: "har" }, on: { dragover: (event) => event.preventDefault(), drop: dropped } },
        h("h3", {}, t("har.import")), h("p", { class: "muted" }, t("har.drop")), h("div", { class: "row" }, h("label", { class: "btn har-choose" }, picker, icon("file"), t("har.choose"))), imported))));
  return {};

  /** One piece of work with its words and a way out. */
  async function work(place, run) {
    const stop = new AbortController();
    signal.addEventListener("abort", () => stop.abort());
    const words = h("span", { class: "grow" });
    place.dataset.state = "busy";
    replace(place, h("div", { class: "row" }, h("span", { class: "dot", data: { state: "busy" } }), words, h("button", { class: "btn", type: "button", on: { click: () => stop.abort() } }, t("cancel"))));
    try {
      replace(place, await run((message) => replace(words, message), stop.signal));
      place.dataset.state = "done";
    } catch (error) {
      replace(place);
      place.dataset.state = stop.signal.aborted ? "cancelled" : "failed";
      if (!stop.signal.aborted) {
        replace(place, h("p", { class: "error" }, cleanText(`${error.message} ${error.hint ?? ""}`, 1000)));
        toastError(error);
      }
    }
  }

  function save(event) {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(event.target));
    const query = values.filter.trim();
    const wanted = query ? { query } : {};
    setQuery({ filter: query || null });
    return work(exported, async (tell, stop) => {
      const parts = [];
      let read = 0;
      let version = "";
      for (let before = null; ; ) {
        const { value } = await live.call("dari_proxy_har_part", { wanted, include_bodies: Boolean(values.bodies), ...(before ? { before_id: before } : {}) }, { signal: stop });
        parts.push(value.entries.slice(0, values.most - read).map((entry) => JSON.stringify(entry)));
        read += parts.at(-1).length;
        version = value.version;
        before = value.next_before_id;
        tell(t("har.reading", { n: count(read) }));
        if (!before || read >= values.most) break;
      }
      if (!read) return h("p", {}, t("har.none"));
      const stamp = new Date().toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
      download(`crab-${stamp}.har`, harPieces(parts, version), "application/json");
      return h("p", {}, t("har.done", { n: count(read) }));
    });
  }

  function dropped(event) {
    event.preventDefault();
    if (event.dataTransfer.files[0]) load(event.dataTransfer.files[0]);
  }

  function load(file) {
    const name = cleanText(file.name);
    return work(imported, async (tell, stop) => {
      if (file.size > MAX_FILE_BYTES) throw new Error(String(t("har.too_big", { name, size: bytes(file.size), limit: bytes(MAX_FILE_BYTES) })));
      const { batches, tooLong, count: all } = await read(file, name);
      let [done, made, skipped] = [0, 0, 0];
      let [first, last] = [null, null];
      for (const batch of batches) {
        tell(t("har.sending", { done: count(done), count: count(all) }));
        const { value } = await live.call("dari_proxy_import_har", { text: batch.text }, { signal: stop });
        first ??= value.first_id;
        last = value.last_id ?? last;
        [done, made, skipped] = [done + batch.count, made + value.imported, skipped + value.skipped_count];
      }
      picker.value = "";
      return [
        h("p", {}, t("har.imported", { n: count(made), first: first ?? "–", last: last ?? "–" })),
        skipped ? h("p", { class: "muted" }, t("har.skipped", { n: count(skipped) })) : null,
        tooLong ? h("p", { class: "muted" }, t("har.too_long", { n: tooLong })) : null,
        h("a", { class: "btn", href: "/traffic" }, t("compose.open")),
      ];
    });
  }

  async function read(file, name) {
    try {
      return splitHar(await file.text());
    } catch (error) {
      throw new Error(String(t("har.wrong", { name, why: cleanText(error.message) })));
    }
  }
}
