"""What is measured of kebab, between whom, and the targets."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from bench.cold import start_ms
from bench.contenders import SDK as SDK_SERVER
from bench.errors import BenchError
from bench.knowledge.commands import notes
from bench.knowledge.contenders import BM25S, CALL_TOOL, FTS5, FTS5_AND_LANCEDB, LANCEDB, OURS, SDK
from bench.knowledge.corpus import make_corpus
from bench.knowledge.engines import RunningEngine, engine, missed_percent
from bench.processes import Scratch
from bench.programs import Contender
from bench.results import Measurement, Target

SMALL, LARGE = 50_000, 500_000
MAX_CPU_US_PER_PASSAGE = 1000.0
MAX_MISSED_PERCENT = 2.0
MAX_RSS_MB = 80.0
# bm25s keeps the whole corpus as Python lists while it builds: 14 GB at the larger size.
_BM25S_MAX_PASSAGES = SMALL


@dataclass(frozen=True, slots=True)
class Plan:
    rounds: int
    sizes: tuple[int, ...]
    starts: int
    scratch: Scratch


Rows = Iterator[Measurement[Contender]]


def search(plan: Plan) -> Rows:
    """At each size: build all engines, then the rounds of every measure."""
    for passages in plan.sizes:
        files = make_corpus(plan.scratch.path / f"corpus-{passages}", passages)
        wanted = [OURS, FTS5, LANCEDB] + ([BM25S] if passages <= _BM25S_MAX_PASSAGES else [])
        with ExitStack() as stack:
            engines = {
                one.name: stack.enter_context(engine(one, files, plan.scratch)) for one in wanted if not one.missing
            }
            yield from _indexing(engines, passages)
            yield from _lexical(plan, engines, passages)
            yield from _dense(plan, engines, passages)


def _indexing(engines: dict[str, RunningEngine], passages: int) -> Rows:
    built = engines[OURS.name].built
    name = f"store and lexical index, {passages:,} passages of 1 kB"
    cpu = Measurement(f"{name}: CPU for one", "µs", (OURS,), (), limit=MAX_CPU_US_PER_PASSAGE)
    cpu.add(OURS, built["cpu_us_per_passage"])
    yield cpu
    rate = Measurement(f"{name}: text in a second of CPU", "MB/s", (OURS,), ())
    rate.add(OURS, built["mb_per_cpu_s"])
    yield rate


def _lexical(plan: Plan, engines: dict[str, RunningEngine], passages: int) -> Rows:
    peers = tuple(one for one in (FTS5, BM25S) if one.name in engines)
    alone = Measurement(
        f"lexical engine alone, top 10 of {passages:,}, p50", "ms", (OURS, *peers), (Target(FTS5, "≤", 1 / 50),)
    )
    whole = Measurement(
        f"lexical search, whole call, {passages:,} passages, p50", "ms", (OURS, *peers), (Target(FTS5, "≤", 1 / 20),)
    )
    slow = Measurement(f"lexical search, whole call, {passages:,} passages, p99", "ms", (OURS, *peers), ())
    ours = engines[OURS.name]
    for kind in ("engine", "lexical"):
        ours.run(kind)  # pages of the index come into memory
    for _ in range(plan.rounds):
        theirs = {one: engines[one.name].run("lexical") for one in peers}
        engine_round, call_round = ours.run("engine"), ours.run("lexical")
        if any(not found for found in call_round.found):
            raise BenchError(
                "a query that was made of a passage found nothing", "look at bench/knowledge/dari_child.py"
            )
        alone.add(OURS, engine_round.p50_ms)
        whole.add(OURS, call_round.p50_ms)
        slow.add(OURS, call_round.p99_ms)
        for one, taken in theirs.items():
            alone.add(one, taken.p50_ms)
            whole.add(one, taken.p50_ms)
            slow.add(one, taken.p99_ms)
    yield from (alone, whole, slow)


def _dense(plan: Plan, engines: dict[str, RunningEngine], passages: int) -> Rows:
    ours, fts5, lance = engines[OURS.name], engines.get(FTS5.name), engines.get(LANCEDB.name)
    share = 1 / 8 if passages <= SMALL else 1 / 10
    vector = Measurement(f"vectors alone, top 10 of {passages:,}, p50", "ms", (OURS, LANCEDB), ())
    hybrid = Measurement(
        f"hybrid search, whole call, {passages:,} passages, p50",
        "ms",
        (OURS, FTS5_AND_LANCEDB),
        (Target(FTS5_AND_LANCEDB, "≤", share),),
    )
    slow = Measurement(f"hybrid search, whole call, {passages:,} passages, p99", "ms", (OURS, FTS5_AND_LANCEDB), ())
    exact, exact_hybrid = ours.run("exact vector"), ours.run("exact hybrid")
    ours.run("vector")
    ours.run("hybrid")
    for _ in range(plan.rounds):
        vector_round, hybrid_round = ours.run("vector"), ours.run("hybrid")
        vector.add(OURS, vector_round.p50_ms)
        hybrid.add(OURS, hybrid_round.p50_ms)
        slow.add(OURS, hybrid_round.p99_ms)
        if lance is not None and fts5 is not None:
            lance_round, fts5_round = lance.run("vector"), fts5.run("lexical")
            vector.add(LANCEDB, lance_round.p50_ms)
            hybrid.add(FTS5_AND_LANCEDB, lance_round.p50_ms + fts5_round.p50_ms)
            slow.add(FTS5_AND_LANCEDB, lance_round.p99_ms + fts5_round.p99_ms)
    yield from (vector, hybrid, slow)
    for name, found, truth in (("vectors", vector_round, exact), ("hybrid", hybrid_round, exact_hybrid)):
        title = f"{name}, {passages:,} passages: of the exact best 10, missed"
        missed = Measurement(title, "%", (OURS,), (), limit=MAX_MISSED_PERCENT)
        missed.add(OURS, missed_percent(found.found, truth.found))
        yield missed


def start(plan: Plan) -> Rows:
    """What a client waits for, and what the server holds then."""
    hit = Measurement("`kebab mcp`: exec to the first lexical hit", "ms", (OURS, SDK), (Target(SDK, "≤", 0.4),))
    rss = Measurement("`kebab mcp` after it, without a model: RSS", "MB", (OURS,), (), limit=MAX_RSS_MB)
    with notes(plan.scratch) as home:
        home.first_hit()  # fills the page cache
        start_ms(SDK_SERVER, plan.scratch)
        for _ in range(plan.starts):
            took_ms, held_mb = home.first_hit()
            hit.add(OURS, took_ms)
            rss.add(OURS, held_mb)
            hit.add(SDK, start_ms(SDK_SERVER, plan.scratch))
    yield from (hit, rss)


def warm(plan: Plan) -> Rows:
    """One command, from exec to exit, with its daemon running."""
    typed = Measurement("warm `kebab search`", "ms", (OURS, CALL_TOOL), (Target(CALL_TOOL, "≤", 1.3),))
    with notes(plan.scratch) as home:
        for _ in range(plan.starts * 3):
            typed.add(OURS, home.search_ms())
            typed.add(CALL_TOOL, home.call_tool_ms())
    yield typed


MEASURES: dict[str, Callable[[Plan], Rows]] = {"start": start, "warm": warm, "search": search}
