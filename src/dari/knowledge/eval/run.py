"""One run of a set: every question searched by the same code as `kebab search`, scored, and kept as a file.

A document's rank is that of its best chunk. Questions without an answer are not scored; what refuses them is `ask`,
which a caller gives as `asker`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from threading import Event

import msgspec
from msgspec import Struct

from dari.errors import Conflict, InvalidInput, NotFound
from dari.knowledge.ask.extractive import MODEL_ID
from dari.knowledge.ask.gate import GATE_VERSION
from dari.knowledge.config import ChunkingSettings, Settings
from dari.knowledge.document import SearchMode
from dari.knowledge.eval.dataset import EvalSet, Question
from dari.knowledge.eval.index import IndexProgress, SetIndex, open_index
from dari.knowledge.eval.metrics import DEPTH, Estimate, estimate, ndcg, recall, reciprocal_rank
from dari.knowledge.index.lexical import INDEX_VERSION
from dari.knowledge.parse.versions import PARSER_VERSIONS
from dari.knowledge.search.fusion import FUSION_VERSION
from dari.knowledge.search.request import SearchRequest
from dari.knowledge.search.searcher import Searcher
from dari.knowledge.store.records import utc_text
from dari.paths import private_dir, read_regular, write_private
from dari.struct_types import ready

MAX_RUN_BYTES = 256 * 1024 * 1024
FIRST_CHUNKS, ALL_CHUNKS = 30, 100


class AskOutcome(Struct, frozen=True):
    """What `ask` made of a question."""

    is_refused: bool
    answer: str = ""
    reason: str = ""


AskFunction = Callable[[str], AskOutcome]


class QuestionResult(Struct, frozen=True, kw_only=True):
    """One question of a run."""

    id: str
    type: str
    lang: str
    answerable: bool
    found: tuple[str, ...]
    """The first ten documents."""
    ndcg: float = 0.0
    recall: float = 0.0
    rr: float = 0.0
    ms: float = 0.0
    is_refused: bool | None = None
    has_gold: bool | None = None


class Scores(Struct, frozen=True, kw_only=True):
    """Means over questions that have an answer."""

    questions: int
    ndcg_at_10: Estimate
    recall_at_10: Estimate
    mrr_at_10: Estimate
    empty_rate: float


class RefusalScores(Struct, frozen=True, kw_only=True):
    """How well `ask` separates questions with an answer from those without."""

    refused: float
    """Of the questions without an answer."""
    false_refusals: float
    """Of the questions with one."""
    gold_in_answer: float
    """Of the questions with a gold string that were answered or refused."""
    by_type: dict[str, float]
    """Share of refusals by type."""
    gold_by_type: dict[str, float] = {}
    """Share of answers with their gold string by type; a refusal has none."""


class RunReport(Struct, frozen=True, kw_only=True):
    """A run, as it is kept and as `--json` prints it."""

    schema_version: str = "eval_run.v1"
    run_id: str
    created_at: str
    set_name: str
    corpus_hash: str
    mode: SearchMode
    searched_mode: SearchMode
    """`lexical` where a hybrid run had no model."""
    documents: int
    model_key: str
    lexical_weight: float
    fusion: str
    versions: dict[str, str] = {}
    """Of what made the result: the index with its analyser, the chunks, the fusion, the gate, the extractive answer."""
    scores: Scores
    by_type: dict[str, Scores]
    by_lang: dict[str, Scores]
    refusal: RefusalScores | None = None
    p50_ms: float
    p95_ms: float
    index_s: float = 0.0
    embed_s: float = 0.0
    texts_per_s: float = 0.0
    hint: str = ""
    """What would give a better run, such as a model that is not installed."""
    results: tuple[QuestionResult, ...]


def run_set(
    chosen: EvalSet,
    settings: Settings,
    mode: SearchMode = "hybrid",
    *,
    on_index: Callable[[IndexProgress], None] = lambda _: None,
    on_question: Callable[[int, int], None] = lambda done, total: None,
    cancel: Event | None = None,
    asker: Callable[[SetIndex], AskFunction] | None = None,
    fresh: bool = False,
) -> RunReport:
    """Index the corpus (or reuse its index, or search the knowledge base), ask every question, score, keep the run."""
    cancel = cancel or Event()
    with open_index(
        chosen, settings, needs_vectors=mode != "lexical", on_progress=on_index, cancel=cancel, fresh=fresh
    ) as index:
        ask = asker(index) if asker is not None else None
        results, modes = ask_all(chosen.questions, index.searcher, index.names, mode, on_question, cancel, ask)
        return _report(chosen, settings, mode, modes, index, results)


def ask_all(
    questions: Iterable[Question],
    searcher: Searcher,
    names: Mapping[int, str],
    mode: SearchMode,
    on_question: Callable[[int, int], None],
    cancel: Event,
    ask: AskFunction | None,
) -> tuple[tuple[QuestionResult, ...], set[SearchMode]]:
    """The results in order, and the modes that were really searched with."""
    listed, results, modes = tuple(questions), [], set[SearchMode]()
    for number, question in enumerate(listed, 1):
        if cancel.is_set():
            raise Conflict("the run was cancelled", "run it again when you like")
        began = time.perf_counter()
        found, searched = _search(searcher, question.text, names, mode)
        ms = (time.perf_counter() - began) * 1000
        modes.add(searched)
        outcome = ask(question.text) if ask is not None else None
        results.append(_score(question, found, ms, outcome))
        on_question(number, len(listed))
    return tuple(results), modes


def save_run(report: RunReport, runs: Path) -> Path:
    private_dir(runs)
    path = runs / f"{report.run_id}.json"
    write_private(path, msgspec.json.encode(report))
    return path


def load_run(given: str, runs: Path) -> RunReport:
    """By id, by the beginning of one, as a file, or `last`."""
    path = Path(given).expanduser()
    if path.suffix != ".json" or not path.is_file():
        ids = sorted(found.stem for found in runs.glob("*.json"))
        matching = [name for name in ids if given == "last" or name == given or name.startswith(given)]
        if not matching or (len(matching) > 1 and given != "last" and given not in matching):
            known = ", ".join(ids[-5:]) or "none yet"
            raise NotFound(f"{len(matching)} runs match {given!r}", f"the last ones are: {known}")
        path = runs / f"{given if given in matching else matching[-1]}.json"
    try:
        return msgspec.json.decode(read_regular(path, MAX_RUN_BYTES), type=ready(RunReport))
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"{path} is not a run of kebab eval: {error}", "name another one") from error


def scores_of(results: Iterable[QuestionResult]) -> Scores:
    listed = [result for result in results if result.answerable]
    empty = sum(not result.found for result in listed)
    return Scores(
        questions=len(listed),
        ndcg_at_10=estimate([result.ndcg for result in listed]),
        recall_at_10=estimate([result.recall for result in listed]),
        mrr_at_10=estimate([result.rr for result in listed]),
        empty_rate=round(empty / len(listed), 5) if listed else 0.0,
    )


def _search(searcher: Searcher, text: str, names: Mapping[int, str], mode: SearchMode) -> tuple[list[str], SearchMode]:
    """The first ten documents; chunks of one document count once, at the place of the best."""
    found: list[str] = []
    for count in (FIRST_CHUNKS, ALL_CHUNKS):
        result = searcher.search(SearchRequest(query=text, k=count, mode=mode, snippet_chars=1))
        found = list(dict.fromkeys(names[hit.document.doc_no] for hit in result.hits if hit.document.doc_no in names))
        if len(found) >= DEPTH or len(result.hits) < count:
            break
    return found[:DEPTH], result.mode


def _score(question: Question, found: list[str], ms: float, outcome: AskOutcome | None) -> QuestionResult:
    relevant = question.relevant
    gold = None if outcome is None or not question.gold else _plain(question.gold) in _plain(outcome.answer)
    return QuestionResult(
        id=question.id,
        type=question.type,
        lang=question.lang,
        answerable=question.answerable,
        found=tuple(found),
        ndcg=round(ndcg(found, relevant), 6),
        recall=round(recall(found, relevant), 6),
        rr=round(reciprocal_rank(found, relevant), 6),
        ms=round(ms, 3),
        is_refused=None if outcome is None else outcome.is_refused,
        has_gold=gold,
    )


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _report(
    chosen: EvalSet,
    settings: Settings,
    mode: SearchMode,
    modes: set[SearchMode],
    index: SetIndex,
    results: tuple[QuestionResult, ...],
) -> RunReport:
    searched: SearchMode = mode if mode in modes or not modes else next(iter(modes))
    times = sorted(result.ms for result in results)
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    report = RunReport(
        run_id=f"{stamp}-{chosen.name}-{searched}-{os.urandom(2).hex()}",
        created_at=utc_text(),
        set_name=chosen.name,
        corpus_hash=chosen.hash,
        mode=mode,
        searched_mode=searched,
        documents=len(index.names),
        model_key=index.model.key if index.model is not None and searched != "lexical" else "",
        lexical_weight=index.model.lexical_weight if index.model is not None and searched == "hybrid" else 1.0,
        fusion=settings.config.search.fusion,
        versions=_versions(settings.config.chunking),
        scores=scores_of(results),
        by_type=_grouped(results, lambda result: result.type),
        by_lang=_grouped(results, lambda result: result.lang),
        refusal=_refusal(results),
        p50_ms=times[len(times) // 2],
        p95_ms=times[int(len(times) * 0.95)],
        index_s=index.index_s,
        embed_s=index.embedding.duration_s if index.embedding else 0.0,
        texts_per_s=index.embedding.texts_per_s if index.embedding else 0.0,
        hint=index.hint,
        results=results,
    )
    save_run(report, settings.data.runs)
    return report


def _versions(chunking: ChunkingSettings) -> dict[str, str]:
    return {
        "index": INDEX_VERSION,
        "chunks": f"{PARSER_VERSIONS['text']}, {chunking.target_tokens} tokens",
        "fusion": FUSION_VERSION,
        "gate": GATE_VERSION,
        "answer": MODEL_ID,
    }


def _grouped(results: Iterable[QuestionResult], name: Callable[[QuestionResult], str]) -> dict[str, Scores]:
    groups: dict[str, list[QuestionResult]] = {}
    for result in results:
        if result.answerable and name(result):
            groups.setdefault(name(result), []).append(result)
    return {group: scores_of(some) for group, some in sorted(groups.items())}


def _refusal(results: Iterable[QuestionResult]) -> RefusalScores | None:
    asked = [result for result in results if result.is_refused is not None]
    if not asked:
        return None
    types = sorted({result.type for result in asked if result.type})
    with_gold = [result for result in asked if result.answerable and result.has_gold is not None]
    return RefusalScores(
        refused=_share(result.is_refused for result in asked if not result.answerable),
        false_refusals=_share(result.is_refused for result in asked if result.answerable),
        gold_in_answer=_share(result.has_gold for result in with_gold),
        by_type={name: _share(result.is_refused for result in asked if result.type == name) for name in types},
        gold_by_type={
            name: _share(result.has_gold for result in with_gold if result.type == name)
            for name in types
            if any(result.type == name for result in with_gold)
        },
    )


def _share(flags: Iterable[bool | None]) -> float:
    listed = list(flags)
    return round(sum(map(bool, listed)) / len(listed), 5) if listed else 0.0
