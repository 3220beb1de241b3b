// Knowledge: search and ask with passages that open at their line, documents and ingest, health of the index.

import { cleanLines, cleanText, h, icon, replace } from "../lib/dom.js";
import { addTexts, t } from "../lib/i18n.js";
import { bytes, count, duration, when } from "../lib/format.js";
import { keys } from "../lib/keys.js";
import { live } from "../lib/live.js";
import { go, route, setQuery } from "../lib/route.js";
import { toast, toastError } from "../parts/toast.js";
import { badge, copyButton, dot, emptyState, field, splitPane, tabs } from "../parts/widgets.js";
import texts from "../texts/knowledge.js";

addTexts(texts);
export const css = ["knowledge.css"];
const VIEWS = { search: showSearch, ask: showAsk, documents: showDocuments, health: showHealth };

export function mount(root, { signal }) {
  const bar = tabs({
    label: t("kb.views"), current: view(),
    items: Object.keys(VIEWS).map((id) => ({ id, label: t(`kb.${id}`) })),
    onSelect: (id) => go(id === "search" ? "/knowledge" : `/knowledge/${id}`),
  });
  const panel = h("div", { class: "kb-panel" });
  let shown = "";
  let page = null;
  let stop = new AbortController();
  signal.addEventListener("abort", () => stop.abort());
  function update() {
    bar.select(view());
    if (view() === shown) return page?.update?.();
    stop.abort();
    stop = new AbortController();
    shown = view();
    page = VIEWS[shown](panel, stop.signal);
  }
  root.append(h("header", { class: "page-head" }, h("h1", {}, t("nav.knowledge"))), bar, panel);
  keys.add({ key: "/", label: t("kb.key.search"), run: () => (view() === "search" ? root.querySelector("input")?.focus() : go("/knowledge")) }, signal);
  update();
  return { update };
}

function view() {
  return VIEWS[route.path[0]] ? route.path[0] : "search";
}

/** Kebab's tools answer failures with error.v1 as the text. */
function failure(error) {
  try {
    const told = JSON.parse(error.message);
    return { name: told.code, message: told.message || error.message, hint: told.hint || "" };
  } catch {
    return error;
  }
}

function problem(error) {
  const { name, message, hint } = failure(error);
  const isEmpty = name === "not_indexed" || name === "config_not_found";
  const documents = h("a", { class: "btn primary", href: "/knowledge/documents" }, t("kb.folder.add"));
  return isEmpty
    ? emptyState({ icon: "knowledge", title: t("kb.empty"), body: t("kb.empty.body"), action: documents })
    : emptyState({ icon: "warn", title: cleanText(message), body: cleanText(hint) });
}

function showSearch(panel, signal) {
  const input = h("input", { class: "input", type: "search", "aria-label": t("kb.query"), placeholder: t("kb.query.hint"), autocomplete: "off" });
  const mode = h("select", { class: "select", "aria-label": t("kb.mode") },
    ["hybrid", "lexical", "vector"].map((one) => h("option", { value: one }, t(`kb.mode.${one}`))));
  const results = h("section", { class: "kb-results", "aria-label": t("kb.search"), "aria-live": "polite" });
  const reader = h("section", { class: "kb-reader stack", "aria-label": t("kb.passage") });
  const form = h("form", { class: "kb-form", role: "search", on: { submit: (event) => (event.preventDefault(), setQuery({ q: input.value, mode: mode.value === "hybrid" ? null : mode.value, chunk: null }, { replace: false })) } },
    input, mode, h("button", { class: "btn primary", type: "submit" }, icon("search"), t("kb.search")));
  mode.addEventListener("change", () => input.value && form.requestSubmit());
  replace(panel, form, splitPane("knowledge", results, reader, { initial: 48 }));
  let asked = null;
  async function search(query, how) {
    const mine = (asked = `${how} ${query}`);
    results.dataset.state = "busy";
    const began = performance.now();
    try {
      const { value } = await live.call("kebab_search", { query, mode: how, k: 30 }, { signal });
      if (asked === mine) drawHits(results, value, performance.now() - began);
    } catch (error) {
      if (asked === mine && error.name !== "AbortError") replace(results, problem(error));
    }
    if (asked === mine) results.dataset.state = "ready";
    markOpen(results);
  }
  function update() {
    const query = route.query.get("q") || "";
    const how = route.query.get("mode") || "hybrid";
    if (document.activeElement !== input) input.value = query;
    mode.value = how;
    if (!query) {
      asked = null;
      replace(results, emptyState({ icon: "search", title: t("kb.start"), body: t("kb.start.body"), action: h("a", { class: "btn", href: "/knowledge/documents" }, t("kb.documents")) }));
    } else if (asked !== `${how} ${query}`) search(query, how);
    markOpen(results);
    openPassage(reader, signal);
  }
  update();
  return { update };
}

function drawHits(results, { hits, hint }, took) {
  if (!hits.length) return replace(results, emptyState({ icon: "search", title: t("kb.none"), body: hint ? cleanText(hint) : t("kb.none.body") }));
  const groups = Map.groupBy(hits, (one) => one.doc_path);
  replace(results, h("p", { class: "muted small" }, t("kb.found", { n: hits.length, docs: groups.size, time: duration(took) })),
    hint ? h("p", { class: "muted small" }, cleanText(hint)) : null,
    [...groups].map(([path, ours]) => h("article", { class: "kb-doc" }, h("h2", {}, icon("file"), cleanText(path)), ours.map(hitLink))));
}

function hitLink(hit) {
  const query = new URLSearchParams(location.search);
  query.set("chunk", hit.chunk_id);
  const { lexical_score: words, vector_score: meaning } = hit.retrieval;
  return h("a", { class: "kb-hit", href: `/knowledge?${query}`, data: { chunk: hit.chunk_id } },
    hit.heading_path.length ? h("span", { class: "muted small" }, cleanText(hit.heading_path.join(" › "))) : null,
    h("p", {}, marked(hit.snippet, hit.highlights || [])),
    h("span", { class: "row muted" }, place(hit.citation), h("span", {}, t("kb.score", { score: hit.score.toFixed(3) })),
      words === null || words === undefined ? null : badge(t("kb.words", { score: words.toFixed(2) })),
      meaning === null || meaning === undefined ? null : badge(t("kb.meaning", { score: meaning.toFixed(2) }), "info"),
      hit.stale ? badge(t("kb.stale"), "warn") : null));
}

/** The passage with its matches marked; places are counted in characters, not in units of UTF-16. */
export function marked(snippet, highlights) {
  const characters = Array.from(snippet);
  const part = (from, to) => cleanLines(characters.slice(from, to).join(""));
  const parts = [];
  let at = 0;
  for (const [from, to] of highlights) {
    if (from < at || to > characters.length) continue;
    parts.push(part(at, from), h("mark", {}, part(from, to)));
    at = to;
  }
  return [...parts, part(at)];
}

const lineText = (from, to) => t(from === to ? "kb.line" : "kb.lines", { from, to });

function place(citation) {
  if (citation.page !== undefined) return h("span", {}, t("kb.page", { n: citation.page }));
  const from = citation.line_start ?? citation.start;
  return from === undefined ? null : h("span", {}, lineText(from, citation.line_end ?? citation.end ?? from));
}

function markOpen(results) {
  const open = route.query.get("chunk");
  for (const el of results.querySelectorAll(".kb-hit")) {
    if (el.dataset.chunk === open) el.setAttribute("aria-current", "true");
    else el.removeAttribute("aria-current");
  }
}

/** Beside the results: the passage that the address names, with what stands around it. */
async function openPassage(reader, signal) {
  const id = route.query.get("chunk") || "";
  const doc = route.query.get("doc") || "";
  if (reader.dataset.open === id + doc && reader.childElementCount) return;
  reader.dataset.open = id + doc;
  if (!id && !doc) return replace(reader, h("p", { class: "muted" }, t("kb.choose")));
  try {
    const { value } = await live.call("kebab_fetch", doc ? { doc_id: doc, max_tokens: 20000 } : { chunk_id: id, context: 2 }, { signal });
    if (reader.dataset.open === id + doc) drawPassage(reader, value);
  } catch (error) {
    if (error.name !== "AbortError") replace(reader, problem(error));
  }
}

function drawPassage(reader, fetched) {
  const parts = fetched.chunk ? [...(fetched.context_before || []), fetched.chunk, ...(fetched.context_after || [])] : [];
  const body = fetched.chunk
    ? parts.map((one) => lines(one.text, one.citation, one === fetched.chunk))
    : [lines(fetched.text || "", { line_start: fetched.line_start ?? 1 }, false)];
  const all = fetched.chunk ? h("button", { class: "btn", type: "button", on: { click: () => setQuery({ doc: fetched.doc_id, chunk: null }, { replace: false }) } }, t("kb.whole")) : null;
  replace(reader, h("div", { class: "row wrap" }, h("h2", { class: "grow" }, cleanText(fetched.doc_path)),
    fetched.chunk ? place(fetched.chunk.citation) : null, all, copyButton(() => (fetched.chunk ? fetched.chunk.text : fetched.text))),
    h("div", { class: "code", tabindex: "0", role: "region", "aria-label": cleanText(fetched.doc_path) }, body),
    h("p", { class: "muted small" }, fetched.truncated ? t("kb.truncated") : t("kb.external")));
  reader.querySelector("[data-state='passage']")?.scrollIntoView({ block: "center" });
}

function lines(text, citation, isPassage) {
  const first = (citation.line_start ?? citation.start ?? 1) - 1;
  return h("ol", { style: { "--first": String(first) } }, text.split("\n").map((line) => h("li", isPassage ? { data: { state: "passage" } } : {}, h("bdi", {}, cleanLines(line)))));
}

function showAsk(panel, signal) {
  const question = h("textarea", { class: "input", rows: "2" });
  const run = h("button", { class: "btn primary", type: "submit" }, icon("play"), t("kb.ask.run"));
  const halt = h("button", { class: "btn", type: "button", hidden: true }, icon("stop"), t("kb.ask.stop"));
  const answer = h("section", { class: "stack", "aria-live": "polite", "aria-label": t("kb.ask") });
  let abort = null;
  async function ask(query) {
    abort?.abort();
    const mine = (abort = new AbortController());
    const note = h("p", { class: "muted" }, t("kb.asking"));
    replace(answer, note);
    answer.dataset.state = "busy";
    [run.disabled, halt.hidden] = [true, false];
    const began = performance.now();
    try {
      const told = await live.call("kebab_ask", { query }, { mayAsk: false, signal: mine.signal, onProgress: ({ message }) => message && replace(note, cleanText(message)) });
      drawAnswer(answer, told.value, performance.now() - began);
      answer.dataset.state = "ready";
    } catch (error) {
      if (abort === mine) replace(answer, error.name === "AbortError" ? null : problem(error));
      answer.dataset.state = "failed";
    }
    if (abort === mine) [run.disabled, halt.hidden] = [false, true];
  }
  halt.addEventListener("click", () => abort?.abort());
  signal.addEventListener("abort", () => abort?.abort());
  question.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  const form = h("form", { class: "stack", on: { submit: (event) => {
    event.preventDefault();
    const query = question.value.trim();
    if (query && query === asked) ask(query);
    else if (query) setQuery({ q: query }, { replace: false });
  } } }, field(t("kb.question"), question), h("div", { class: "row" }, run, halt));
  replace(panel, form, answer);
  let asked = "";
  function update() {
    const query = route.query.get("q") || "";
    if (document.activeElement !== question) question.value = query;
    if (!query) replace(answer, emptyState({ icon: "knowledge", title: t("kb.ask.start"), body: t("kb.ask.body") }));
    else if (query !== asked) ask(query);
    asked = query;
  }
  update();
  return { update };
}

function drawAnswer(el, said, took) {
  const known = new Map(said.citations.map((one) => [one.marker, one]));
  const parts = said.answer.split(/(\[#\d{1,3}\])/).map((part) => {
    const cited = known.get(part);
    return cited?.chunk_id ? h("a", { href: `/knowledge?chunk=${encodeURIComponent(cited.chunk_id)}`, title: cleanText(cited.citation.uri) }, part) : cleanLines(part);
  });
  replace(el, h("div", { class: "row wrap" }, badge(t(said.grounded ? "kb.grounded" : "kb.ungrounded"), said.grounded ? "ok" : "warn"),
    h("span", { class: "muted small" }, t("kb.by", { model: cleanText(said.model.id), time: duration(took) })), copyButton(() => said.answer)),
    h("p", { class: "kb-answer" }, h("bdi", {}, parts)), said.hint ? h("p", { class: "muted" }, cleanText(said.hint)) : null,
    said.citations.length ? h("h2", {}, t("kb.sources")) : null,
    said.citations.map((one) => h("a", { class: "kb-hit", href: one.chunk_id ? `/knowledge?chunk=${encodeURIComponent(one.chunk_id)}` : "/knowledge" },
      h("strong", {}, one.marker), " ", cleanText(one.citation.path), " ", place(one.citation), one.quote ? h("p", {}, h("bdi", {}, cleanLines(one.quote))) : null)));
}

function showDocuments(panel, signal) {
  const folders = h("section", { class: "card" });
  const progress = h("div", { class: "stack", "aria-live": "polite", hidden: true });
  const filter = h("input", { class: "input", type: "search", "aria-label": t("kb.filter"), placeholder: t("kb.filter") });
  const body = h("tbody");
  const more = h("button", { class: "btn", type: "button", hidden: true }, t("kb.more"));
  const table = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("kb.documents") }, h("table", { class: "table" },
    h("caption", { class: "visually-hidden" }, t("kb.documents")),
    h("thead", {}, h("tr", {}, ["path", "title", "kind", "size", "chunks", "indexed"].map((one) => h("th", { scope: "col", class: [["size", "chunks"].includes(one) && "num", ["title", "kind", "chunks"].includes(one) && "wide-only"] }, t(`kb.${one}`))))), body));
  const none = h("div");
  let cursor = null;
  let abort = null;
  async function load(isMore) {
    try {
      const glob = route.query.get("path");
      const { value } = await live.call("kebab_list_docs", { ...(glob ? { path_glob: glob } : {}), ...(isMore && cursor ? { cursor } : {}) }, { signal });
      cursor = value.next_cursor;
      more.hidden = !cursor;
      if (!isMore) replace(body);
      body.append(...value.docs.map(documentRow));
      table.hidden = !body.childElementCount;
      filter.hidden = !body.childElementCount && !glob;
      replace(none, body.childElementCount || glob ? null : problem({ message: '{"code": "not_indexed"}' }));
    } catch (error) {
      table.hidden = true;
      filter.hidden = failure(error).name === "not_indexed";
      if (error.name !== "AbortError") replace(none, failure(error).name === "not_indexed" ? null : problem(error));
    }
  }
  async function drawFolders() {
    const { value } = await live.call("dari_knowledge_folders", {}, { signal });
    const path = h("input", { class: "input mono", type: "text", "aria-label": t("kb.folder.path"), placeholder: "/home/me/notes", autocomplete: "off", spellcheck: "false" });
    const add = async (event) => {
      event.preventDefault();
      try {
        if (!value.is_configured || !value.folders.length) await live.call("dari_knowledge_init", { folder: path.value }, { signal });
        await ingest(value.folders.length ? { folder: path.value } : {});
      } catch (error) {
        toastError(failure(error));
      }
    };
    replace(folders, h("div", { class: "row wrap" }, h("h2", { class: "grow" }, t("kb.folders")),
      value.folders.length ? h("button", { class: "btn", type: "button", on: { click: () => ingest({}) } }, icon("refresh"), t("kb.ingest")) : null,
      value.folders.length ? h("button", { class: "btn ghost", type: "button", on: { click: () => ingest({ force: true }) } }, t("kb.ingest.all")) : null),
      value.folders.length ? null : h("p", { class: "muted" }, t("kb.empty.body")),
      h("ul", { class: "stack tight" }, value.folders.map((one) => h("li", { class: "row" }, dot(one.is_there ? "ok" : "bad", one.is_there ? t("kb.ok") : t("kb.folder.missing")), h("code", {}, cleanText(one.path))))),
      h("form", { class: "kb-form", on: { submit: add } }, path, h("button", { class: "btn", type: "submit" }, icon("plus"), t("kb.folder.add"))), progress);
  }
  async function ingest(args) {
    abort?.abort();
    abort = new AbortController();
    const bar = h("progress", { "aria-label": t("kb.ingest.running") });
    const name = h("span", { class: "muted small ellipsis grow" }, t("kb.ingest.running"));
    progress.hidden = false;
    progress.dataset.state = "busy";
    replace(progress, bar, h("div", { class: "row" }, name, h("button", { class: "btn", type: "button", on: { click: () => abort.abort() } }, icon("stop"), t("kb.ingest.stop"))));
    try {
      const { value } = await live.call("dari_knowledge_ingest", args, { signal: abort.signal, onProgress: (one) => {
        if (one.total) [bar.max, bar.value] = [one.total, one.progress];
        replace(name, cleanText(one.message || ""));
      } });
      toast(t("kb.ingest.done", { ...value, time: duration(value.duration_ms) }), { kind: value.errors ? "bad" : "ok" });
      progress.dataset.state = "done";
    } catch (error) {
      progress.dataset.state = "failed";
      if (error.name === "AbortError") toast(t("kb.ingest.ended"));
      else toastError(failure(error));
    }
    progress.hidden = true;
    if (!signal.aborted) await Promise.all([drawFolders(), load(false)]).catch(toastError);
  }
  filter.value = route.query.get("path") || "";
  filter.addEventListener("change", () => setQuery({ path: filter.value || null }));
  more.addEventListener("click", () => load(true));
  replace(panel, folders, filter, table, more, none);
  drawFolders().catch(toastError);
  let shown = null;
  function update() {
    if (shown === (shown = route.query.get("path") || "")) return;
    load(false);
  }
  update();
  return { update };
}

function documentRow(doc) {
  return h("tr", {}, h("td", {}, h("a", { href: `/knowledge?doc=${encodeURIComponent(doc.doc_id)}` }, cleanText(doc.doc_path)), doc.stale ? badge(t("kb.stale"), "warn") : null),
    h("td", { class: "wide-only" }, cleanText(doc.title)), h("td", { class: "wide-only" }, cleanText(doc.media)), h("td", { class: "num nowrap" }, bytes(doc.byte_len)),
    h("td", { class: "num wide-only" }, count(doc.chunk_count)), h("td", { class: "nowrap" }, when(Date.parse(doc.indexed_at) / 1000)));
}

function showHealth(panel, signal) {
  const stats = h("section", { class: "card" });
  const checks = h("section", { class: "card" });
  replace(panel, stats, checks);
  live.call("kebab_schema", {}, { signal }).then(({ value: { stats: one } }) => {
    const disk = Object.values(one.index_bytes || {}).reduce((sum, each) => sum + each, 0);
    const last = one.last_ingest_at ? when(Date.parse(one.last_ingest_at) / 1000) : "–";
    const rows = { docs: count(one.doc_count), chunks: count(one.chunk_count), embedded: count(one.embedded_chunk_count ?? 0), stale: count(one.stale_doc_count ?? 0), bytes: bytes(disk), last };
    replace(stats, h("h2", {}, t("kb.stats")), h("dl", { class: "kb-stats" }, Object.entries(rows).map(([name, value]) => h("div", {}, h("dt", { class: "muted small" }, t(`kb.stat.${name}`)), h("dd", {}, value)))));
  }).catch((error) => error.name !== "AbortError" && replace(stats, problem(error)));
  live.call("kebab_doctor", {}, { signal }).then(({ value }) => {
    replace(checks, h("h2", {}, t("kb.health")), h("ul", { class: "stack" }, value.checks.map((one) => h("li", { class: "row top" },
      dot(one.ok ? "ok" : "bad", t(one.ok ? "kb.ok" : "kb.bad")), h("div", { class: "grow" }, h("strong", {}, cleanText(one.name)), " ", h("span", {}, cleanText(one.detail)), one.hint ? h("p", { class: "muted" }, cleanText(one.hint)) : null)))));
  }).catch((error) => error.name !== "AbortError" && replace(checks, problem(error)));
  return {};
}
