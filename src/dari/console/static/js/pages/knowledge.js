// The knowledge base: search and ask with the passages opened at their place, folders, and how well it is.

import { cleanText, h, icon, replace } from "../lib/dom.js";
import { bytes, count, when } from "../lib/format.js";
import { addTexts, t, text } from "../lib/i18n.js";
import { keys } from "../lib/keys.js";
import { live } from "../lib/live.js";
import { go, route, setQuery } from "../lib/route.js";
import { toast, toastError } from "../parts/toast.js";
import { badge, copyButton, emptyState, field, splitPane, tabs } from "../parts/widgets.js";
import texts from "../texts/knowledge.js";

addTexts(texts);
export const css = ["knowledge.css"];

const PARTS = ["search", "ask", "sources", "health"];

export function mount(root, { signal }) {
  const results = h("div", { class: "knowledge-results", "aria-live": "polite", data: { state: "idle" } });
  const reader = h("section", { class: "card scroll", "aria-label": t("knowledge.passage"), hidden: true });
  const form = h("div", {});
  const bar = tabs({
    label: t("knowledge.tabs"),
    items: PARTS.map((id) => ({ id, label: t(`knowledge.${id}`) })),
    current: part(),
    onSelect: (id) => go(id === "search" ? "/knowledge" : `/knowledge/${id}`),
  });
  root.append(
    h("header", { class: "page-head" }, h("h1", {}, t("knowledge.title"))), bar, form,
    h("div", { class: "knowledge-body" }, splitPane("knowledge", results, reader, { initial: 55 })));
  keys.add({ key: "/", label: t("knowledge.query"), run: () => root.querySelector(".input")?.focus() }, signal);

  let drawn = "";
  let sources = [];
  let running = null;

  function part() {
    return PARTS.includes(route.path[0]) ? route.path[0] : "search";
  }

  async function update() {
    const now = part();
    bar.select(now);
    const wanted = `${now}?${now === "search" ? new URLSearchParams([...route.query].filter(([name]) => name !== "open")) : route.query.get("q") || ""}`;
    if (wanted !== drawn) {
      drawn = wanted;
      running?.abort();
      running = new AbortController();
      signal.addEventListener("abort", () => running.abort());
      await { search: drawSearch, ask: drawAsk, sources: drawSources, health: drawHealth }[now](running.signal);
    }
    await drawReader(route.query.get("open"));
  }

  function show(state, ...children) {
    results.dataset.state = state;
    replace(results, ...children);
  }

  function fail(error) {
    if (error?.name === "AbortError") return;
    const isEmpty = /not.indexed|no_index|config/i.test(error.name || "") || /nothing is indexed|kebab init|kebab ingest/i.test(`${error.message} ${error.hint}`);
    const action = h("a", { class: "btn primary", href: "/knowledge/sources" }, t("knowledge.add"));
    if (isEmpty) show("empty", emptyState({ icon: "knowledge", title: t("knowledge.empty"), body: t("knowledge.empty.body"), action }));
    else show("failed", emptyState({ icon: "warn", title: cleanText(error.message), body: cleanText(error.hint || "", 1000) }));
  }

  // Search

  function searchForm() {
    const query = route.query;
    const input = h("input", { class: "input", type: "search", name: "q", placeholder: t("knowledge.query.hint"), autocomplete: "off" });
    input.value = query.get("q") || "";
    const mode = choice("mode", ["hybrid", "lexical", "vector"].map((id) => [id, t(`knowledge.mode.${id}`)]), query.get("mode") || "hybrid");
    const source = choice("source", [["", t("knowledge.source.all")], ...sources.map((one) => [one.id, one.id])], query.get("source") || "");
    const path = h("input", { class: "input", type: "text", name: "path", placeholder: t("knowledge.path.hint") });
    path.value = query.get("path") || "";
    const media = choice("media", [["", t("knowledge.media.all")], ...["markdown", "text", "pdf", "html", "docx", "pptx", "xlsx", "code", "notebook", "image"].map((id) => [id, id])], query.get("media") || "");
    const submit = (event) => {
      event?.preventDefault();
      setQuery({ q: input.value.trim(), mode: mode.value === "hybrid" ? "" : mode.value, source: source.value, path: path.value.trim(), media: media.value, open: null }, { replace: false });
    };
    for (const one of [mode, source, media]) one.addEventListener("change", () => submit());
    return h("form", { class: "knowledge-form", role: "search", on: { submit } },
      field(t("knowledge.query"), input), field(t("knowledge.mode"), mode), field(t("knowledge.source"), source), field(t("knowledge.media"), media), field(t("knowledge.path"), path),
      h("button", { class: "btn primary", type: "submit" }, icon("search"), t("knowledge.search")));
  }

  async function drawSearch(within) {
    replace(form, searchForm());
    const q = route.query.get("q");
    if (!q) {
      show("idle", emptyState({ icon: "search", title: t("knowledge.start"), body: t("knowledge.start.body") }));
      form.querySelector("input").focus();
      return;
    }
    show("busy", h("p", { class: "muted" }, t("loading")));
    try {
      await addPage(q, "", within, []);
    } catch (error) {
      fail(error);
    }
  }

  async function addPage(q, cursor, within, before) {
    const options = { query: q, mode: route.query.get("mode") || "hybrid", path_glob: route.query.get("path") || "", media: route.query.get("media") || "", source: route.query.get("source") || "", cursor };
    const { value } = await live.call("dari_knowledge_search", options, { signal: within });
    if (within.aborted) return;
    const hits = [...before, ...value.hits];
    if (!hits.length) return show("none", emptyState({ icon: "search", title: t("knowledge.none"), body: value.hint ? cleanText(value.hint, 500) : t("knowledge.none.body") }));
    const groups = new Map();
    for (const hit of hits) groups.set(hit.doc_path, [...(groups.get(hit.doc_path) || []), hit]);
    const more = value.next_cursor && h("button", { class: "btn", type: "button", on: { click: (event) => {
      event.target.disabled = true;
      addPage(q, value.next_cursor, within, hits).catch(fail);
    } } }, t("knowledge.more"));
    show("done", h("p", { class: "muted", data: { count: String(hits.length) } }, t("knowledge.hits", { n: count(hits.length), docs: count(groups.size) })),
      value.hint ? h("p", { class: "muted" }, cleanText(value.hint, 500)) : null,
      [...groups].map(([path, found]) => h("section", { class: "card" }, h("h2", { class: "mono" }, cleanText(path)), found.map(passage))), more || null);
  }

  function passage(hit) {
    const { lexical_score: lexical, vector_score: vector } = hit.retrieval || {};
    const score = t("knowledge.score", { lexical: number(lexical), vector: number(vector) });
    return h("button", { class: "passage", type: "button", data: { chunk: hit.chunk_id }, "aria-pressed": String(route.query.get("open") === hit.chunk_id), on: { click: () => setQuery({ open: hit.chunk_id }, { replace: false }) } },
      h("span", { class: "row wrap small" }, h("span", { class: "mono" }, cleanText(fragment(hit.citation))),
        hit.heading_path?.length ? h("span", { class: "muted ellipsis" }, cleanText(hit.heading_path.join(" › "))) : null,
        h("span", { class: "grow" }), hit.stale ? badge(t("knowledge.stale"), "warn") : null, h("span", { class: "muted" }, score)),
      h("bdi", {}, marked(hit.snippet, hit.highlights)));
  }

  // Ask

  async function drawAsk(within) {
    const q = route.query.get("q") || "";
    const input = h("input", { class: "input", type: "text", name: "question", placeholder: t("knowledge.question.hint"), autocomplete: "off" });
    input.value = q;
    const submit = (event) => {
      event.preventDefault();
      if (input.value.trim() === q) drawAsk(within);
      else setQuery({ q: input.value.trim(), open: null }, { replace: false });
    };
    replace(form, h("form", { class: "knowledge-form", on: { submit } }, field(t("knowledge.question"), input), h("button", { class: "btn primary", type: "submit" }, icon("bolt"), t("knowledge.ask"))));
    if (!q) {
      show("idle", emptyState({ icon: "knowledge", title: t("knowledge.ask"), body: t("knowledge.start.body") }));
      input.focus();
      return;
    }
    const note = h("p", { class: "muted" }, t("knowledge.asking"));
    const stop = new AbortController();
    within.addEventListener("abort", () => stop.abort());
    show("busy", h("div", { class: "row" }, note, h("button", { class: "btn", type: "button", on: { click: () => (stop.abort(), show("idle")) } }, t("cancel"))));
    try {
      const { value } = await live.call("kebab_ask", { query: q }, { signal: stop.signal, onProgress: ({ message }) => message && replace(note, cleanText(message)) });
      if (!within.aborted) showAnswer(value);
    } catch (error) {
      fail(error);
    }
  }

  function showAnswer(answer) {
    const state = answer.grounded ? badge(t("knowledge.grounded"), "ok") : badge(t("knowledge.refused"), "warn");
    const places = new Map(answer.citations.map((one) => [one.marker, one]));
    const parts = answer.answer.split(/(\[#\d{1,3}\])/).map((piece) => (places.has(piece) ? h("a", { href: openAt(places.get(piece)) }, piece) : piece));
    show("done", h("article", { class: "card", data: { grounded: String(answer.grounded) } },
      h("div", { class: "row wrap" }, state, h("span", { class: "grow" }), h("span", { class: "muted small" }, cleanText(answer.model?.id || answer.model?.name || "")), copyButton(answer.answer)),
      h("p", { class: "answer" }, h("bdi", {}, parts)),
      answer.hint ? h("p", { class: "muted" }, cleanText(answer.hint, 1000)) : null,
      answer.citations.length ? h("div", { class: "stack tight" }, h("h2", {}, t("knowledge.citations")),
        answer.citations.map((one) => h("a", { class: "passage", href: openAt(one) }, h("span", { class: "mono small" }, `${one.marker} ${cleanText(one.citation.uri)}`), one.quote ? h("bdi", { class: "muted" }, ` ${cleanText(one.quote, 600)}`) : null))) : null));
  }

  function openAt({ chunk_id: chunk, citation }) {
    const query = new URLSearchParams(route.query);
    query.set("open", chunk || `doc:${citation.path}`);
    return `/knowledge/ask?${query}`;
  }

  // The passage at its place

  let opened = "";

  async function drawReader(open) {
    for (const el of results.querySelectorAll(".passage[data-chunk]")) el.setAttribute("aria-pressed", String(el.dataset.chunk === open));
    reader.hidden = !open;
    reader.parentElement.dataset.open = String(Boolean(open));
    if (!open || open === opened) return;
    opened = open;
    replace(reader, h("p", { class: "muted" }, t("loading")));
    try {
      const isDocument = open.startsWith("doc:");
      const { value } = await live.call("kebab_fetch", isDocument ? { doc_id: open.slice(4), max_tokens: 60000 } : { chunk_id: open, context: 3 }, { signal });
      if (opened === open) showText(value);
    } catch (error) {
      replace(reader, h("p", { class: "error" }, cleanText(error.message)), h("p", { class: "muted" }, cleanText(error.hint || "")));
    }
  }

  function showText(found) {
    const close = h("button", { class: "btn ghost icon", type: "button", "aria-label": t("close"), on: { click: () => setQuery({ open: null }) } }, icon("close"));
    const whole = found.kind === "chunk" ? h("button", { class: "btn", type: "button", on: { click: () => setQuery({ open: `doc:${found.doc_path}` }, { replace: false }) } }, t("knowledge.whole")) : null;
    const text_ = h("div", { class: "document", tabindex: "0", role: "region", "aria-label": t("knowledge.passage") });
    if (found.kind === "chunk") {
      const pieces = [...(found.context_before || []).map((one) => [one, false]), [found.chunk, true], ...(found.context_after || []).map((one) => [one, false])];
      for (const [piece, isHit] of pieces) addLines(text_, piece.text, firstLine(piece.citation), isHit, piece.citation);
    } else addLines(text_, found.text || "", found.line_start || 1, false, null);
    const place = found.chunk?.citation?.uri || found.doc_path;
    replace(reader, h("header", { class: "row wrap" }, h("h2", { class: "mono grow" }, cleanText(place)), copyButton(place), whole, close),
      found.truncated ? h("p", { class: "muted" }, t("knowledge.cut")) : null, text_);
    text_.querySelector(".hit")?.scrollIntoView({ block: "center" });
  }

  // Sources

  async function drawSources(within) {
    show("busy", h("p", { class: "muted" }, t("loading")));
    const folder = h("input", { class: "input", type: "text", name: "folder", placeholder: t("knowledge.folder.hint"), autocomplete: "off" });
    const add = async (event) => {
      event.preventDefault();
      try {
        const { value } = await live.call("dari_knowledge_add_source", { folder: folder.value.trim() });
        sources = value.sources;
        await ingest("");
      } catch (error) {
        toastError(error);
      }
    };
    replace(form, h("form", { class: "knowledge-form", on: { submit: add } }, field(t("knowledge.folder"), folder), h("button", { class: "btn primary", type: "submit" }, icon("plus"), t("knowledge.add"))));
    try {
      const { value } = await live.call("dari_knowledge_sources", {}, { signal: within });
      sources = value.sources;
      const again = h("input", { type: "checkbox", name: "force" });
      const rows = sources.map((one) => h("tr", {}, h("td", {}, cleanText(one.id)), h("td", { class: "mono" }, cleanText(one.root), " ", one.is_there ? null : badge(t("knowledge.missing"), "bad")),
        h("td", { class: "num" }, h("button", { class: "btn", type: "button", disabled: !one.is_there, "aria-label": `${text(t("knowledge.index"))}: ${cleanText(one.root)}`, on: { click: () => ingest(one.root, again.checked) } }, icon("refresh"), t("knowledge.index")))));
      const list = h("div", { class: "stack", id: "knowledge-docs" });
      show("done",
        sources.length ? h("section", { class: "card" }, h("table", { class: "table" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "id"), h("th", { scope: "col" }, t("knowledge.folder")), h("td", {}))), h("tbody", {}, rows)),
          h("div", { class: "row wrap" }, h("button", { class: "btn primary", type: "button", on: { click: () => ingest("", again.checked) } }, icon("refresh"), t("knowledge.index.all")), h("label", { class: "check" }, again, t("knowledge.again")), h("span", { class: "grow" }), h("span", { class: "muted small" }, t("knowledge.config", { path: value.config }))))
          : emptyState({ icon: "knowledge", title: t("knowledge.empty"), body: t("knowledge.empty.body") }),
        h("div", { id: "knowledge-run" }), list);
      await listDocuments(list, within);
    } catch (error) {
      fail(error);
    }
  }

  async function listDocuments(list, within) {
    const glob = h("input", { class: "input", type: "text", placeholder: t("knowledge.path.hint"), "aria-label": t("knowledge.filter") });
    const body = h("tbody", {});
    const more = h("button", { class: "btn", type: "button", hidden: true }, t("knowledge.more"));
    let cursor = "";
    const load = async (isFresh) => {
      if (isFresh) cursor = "";
      const { value } = await live.call("kebab_list_docs", { ...(glob.value.trim() ? { path_glob: glob.value.trim() } : {}), ...(cursor ? { cursor } : {}), limit: 100 }, { signal: within });
      if (isFresh) replace(body);
      for (const one of value.docs) body.append(h("tr", {}, h("td", {}, h("a", { class: "mono", href: `/knowledge/sources?open=${encodeURIComponent(`doc:${one.doc_path}`)}` }, cleanText(one.doc_path)), one.stale ? badge(t("knowledge.stale"), "warn") : null),
        h("td", {}, cleanText(one.media)), h("td", { class: "num" }, count(one.chunk_count)), h("td", { class: "num" }, bytes(one.byte_len)), h("td", {}, when(Date.parse(one.indexed_at) / 1000))));
      cursor = value.next_cursor;
      more.hidden = !cursor;
    };
    more.addEventListener("click", () => load(false).catch(toastError));
    glob.addEventListener("change", () => load(true).catch(toastError));
    try {
      await load(true);
    } catch {
      return; // nothing is indexed yet: the folders above say what to do
    }
    replace(list, h("section", { class: "card" }, h("div", { class: "row wrap" }, h("h2", { class: "grow" }, t("knowledge.docs")), h("div", {}, glob)),
      h("table", { class: "table" }, h("thead", {}, h("tr", {}, ["doc", "media", "chunks", "size", "indexed"].map((id) => h("th", { scope: "col", class: ["chunks", "size"].includes(id) ? "num" : "" }, t(`knowledge.${id}`))))), body), more));
  }

  async function ingest(folder, force = false) {
    const stop = new AbortController();
    const bar = h("progress", { "aria-label": t("knowledge.indexing"), max: "1" });
    const what = h("span", { class: "muted ellipsis grow mono small" });
    const place = root.querySelector("#knowledge-run") || results;
    const box = h("section", { class: "card", data: { state: "running" } }, h("div", { class: "row" }, h("h2", {}, t("knowledge.indexing")), what, h("button", { class: "btn", type: "button", on: { click: () => stop.abort() } }, t("cancel"))), bar);
    replace(place, box);
    try {
      const { value } = await live.call("dari_knowledge_ingest", { folder, force }, { signal: stop.signal, onProgress: ({ progress, total, message }) => {
        if (total) bar.value = progress / total;
        else bar.removeAttribute("value");
        if (message) what.textContent = cleanText(message);
      } });
      await drawSources(running.signal);
      const failed = (value.items || []).filter((one) => one.kind === "error");
      replace(root.querySelector("#knowledge-run") || place, h("section", { class: "card", data: { state: "done" } }, h("p", { role: "status" }, icon("check"), " ", t("knowledge.report", value)),
        failed.length ? h("div", { class: "stack tight" }, h("h3", {}, t("knowledge.failed")), failed.slice(0, 50).map((one) => h("p", { class: "small" }, h("span", { class: "mono" }, cleanText(one.doc_path)), " ", cleanText(one.error || "", 500))),
          h("button", { class: "btn", type: "button", on: { click: () => ingest(folder, false) } }, t("knowledge.retry"))) : null));
    } catch (error) {
      if (stop.signal.aborted) toast(t("knowledge.cancelled"));
      else toastError(error);
      box.remove();
    }
  }

  // Health

  async function drawHealth(within) {
    replace(form);
    show("busy", h("p", { class: "muted" }, t("loading")));
    const [doctor, schema] = await Promise.allSettled([live.call("kebab_doctor", {}, { signal: within }), live.call("kebab_schema", {}, { signal: within })]);
    if (within.aborted) return;
    if (doctor.status === "rejected") return fail(doctor.reason);
    const { ok, checks } = doctor.value.value;
    const stats = schema.value?.value?.stats;
    show("done", h("section", { class: "card", data: { ok: String(ok) } },
      h("div", { class: "row" }, ok ? badge(t("knowledge.ok"), "ok") : badge(t("knowledge.bad"), "bad"), stats ? h("span", { class: "muted" }, t("knowledge.stats", { docs: count(stats.doc_count), chunks: count(stats.chunk_count) })) : null),
      h("table", { class: "table" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("knowledge.check")), h("th", { scope: "col" }, t("knowledge.found")))),
        h("tbody", {}, checks.map((one) => h("tr", {}, h("td", {}, badge(one.name, one.ok ? "ok" : "bad")), h("td", {}, cleanText(one.detail, 600), one.hint ? h("p", { class: "muted" }, cleanText(one.hint, 600)) : null)))))));
  }

  async function start() {
    try {
      sources = (await live.call("dari_knowledge_sources", {}, { signal })).value.sources;
    } catch {
      sources = [];
    }
    await update();
  }

  start().catch(toastError);
  return { update: () => update().catch(toastError) };
}

function choice(name, items, chosen) {
  const el = h("select", { class: "select", name }, items.map(([value, label]) => h("option", { value }, label)));
  el.value = chosen;
  return el;
}

function number(score) {
  return score === null || score === undefined ? "–" : score.toFixed(2);
}

function fragment(citation) {
  const at = citation.uri.indexOf("#");
  return at < 0 ? citation.uri : citation.uri.slice(at);
}

function firstLine(citation) {
  return citation?.line_start ?? citation?.start ?? null;
}

/** Spans are counted in code points, as the server counts. */
function marked(snippet, spans) {
  if (!spans?.length) return [snippet];
  const letters = [...snippet];
  const parts = [];
  let at = 0;
  for (const [from, to] of spans) {
    if (from < at || to > letters.length) continue;
    parts.push(letters.slice(at, from).join(""), h("mark", {}, letters.slice(from, to).join("")));
    at = to;
  }
  parts.push(letters.slice(at).join(""));
  return parts;
}

function addLines(place, body, first, isHit, citation) {
  const isNumbered = first !== null && (!citation || citation.kind === "line" || citation.kind === "code");
  body.split("\n").forEach((line, n) => {
    const mark = isNumbered ? String(first + n) : n === 0 && citation?.page ? `p. ${citation.page}` : "";
    place.append(h("span", { class: "no", "aria-hidden": "true" }, mark), h("span", { class: ["line", isHit && "hit"] }, line || " "));
  });
}
