"""What is measured of kebab, between whom, and the targets."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from shutil import rmtree

from bench.cold import start_ms
from bench.contenders import SDK as SDK_SERVER
from bench.errors import BenchError
from bench.knowledge.commands import notes
from bench.knowledge.contenders import (
    BM25S,
    CALL_TOOL,
    FTS5,
    FTS5_AND_LANCEDB,
    LANCEDB,
    OURS,
    OURS_IN_POSTGRES,
    QMD,
    SDK,
    TS_RANK,
)
from bench.knowledge.corpus import QUERIES, make_corpus
from bench.knowledge.engines import Round, RunningEngine, engine, missed_percent, say
from bench.processes import Scratch
from bench.programs import Contender
from bench.results import Measurement, Target
from tests.support.postgres_server import serving_postgres, with_password

SMALL, LARGE = 50_000, 500_000
MAX_CPU_US_PER_PASSAGE = 1000.0
MAX_MISSED_PERCENT = 2.0
MAX_RSS_MB = 80.0
# FTS5 takes a second for a query of the larger size, ts_rank_cd two: all 200 in every round would take hours.
FEW_QUERIES = 40
# bm25s keeps the whole corpus as Python lists while it builds: 14 GB at the larger size. qmd reads 200 files a second.
_SMALL_ONLY = (BM25S, QMD)
_POSTGRES_KINDS = ("engine", "vector", "hybrid")


@dataclass(frozen=True, slots=True)
class Plan:
    rounds: int
    starts: int
    scratch: Scratch
    is_quick: bool = False


Rows = Iterator[Measurement[Contender]]


def search(plan: Plan) -> Rows:
    """Build all engines, then rounds in which each answers every kind of query once."""
    yield from _search(plan, SMALL, (OURS, FTS5, LANCEDB, *_SMALL_ONLY), QUERIES)


def large(plan: Plan) -> Rows:
    """The same with ten times the passages, fewer engines and fewer queries."""
    if not plan.is_quick:
        yield from _search(plan, LARGE, (OURS, FTS5, LANCEDB), FEW_QUERIES)


def _search(plan: Plan, passages: int, wanted: Sequence[Contender], queries: int) -> Rows:
    say(f"a corpus of {passages:,} passages is written …")
    files = make_corpus(plan.scratch.path / f"corpus-{passages}", passages)
    with ExitStack() as stack:
        engines = {one.name: stack.enter_context(engine(one, files, plan.scratch)) for one in wanted if not one.missing}
        yield from _indexing(engines, passages)
        yield from _searching(plan, engines, passages, queries)
    rmtree(files.folder)


def _indexing(engines: dict[str, RunningEngine], passages: int) -> Rows:
    built = engines[OURS.name].built
    name = f"store and lexical index, {passages:,} passages of 1 kB"
    cpu = Measurement(f"{name}: CPU for one", "µs", (OURS,), (), limit=MAX_CPU_US_PER_PASSAGE)
    cpu.add(OURS, built["cpu_us_per_passage"])
    yield cpu
    rate = Measurement(f"{name}: text in a second of CPU", "MB/s", (OURS,), ())
    rate.add(OURS, built["mb_per_cpu_s"])
    yield rate


def _searching(plan: Plan, engines: dict[str, RunningEngine], passages: int, queries: int) -> Rows:
    ours, lance = engines[OURS.name], engines.get(LANCEDB.name)
    peers = tuple(one for one in (FTS5, BM25S, QMD) if one.name in engines)
    lexical, dense = _Lexical(passages, peers), _Dense(passages)
    exact = {kind: ours.run(f"exact {kind}", QUERIES) for kind in ("vector", "hybrid")}
    say(f"the exact best of {QUERIES} queries are known")
    # Pages of the files come into memory; and what the approximate index misses is counted over all queries.
    warm = {kind: ours.run(kind, QUERIES) for kind in ("engine", "lexical", "vector", "hybrid")}
    for number in range(1, plan.rounds + 1):
        say(f"round {number} of {plan.rounds}: {queries} queries of each kind to each engine …")
        mine = {kind: ours.run(kind, queries) for kind in ("engine", "lexical", "vector", "hybrid")}
        if any(not found for found in mine["lexical"].found):
            raise BenchError(
                "a query that was made of a passage found nothing", "look at bench/knowledge/dari_child.py"
            )
        theirs = {one: engines[one.name].run("lexical", queries) for one in peers}
        lexical.add(mine, theirs)
        dense.add(mine, lance.run("vector", queries) if lance else None, theirs.get(FTS5))
    yield from lexical.measurements
    yield from dense.measurements
    for name, kind in (("vectors", "vector"), ("hybrid", "hybrid")):
        title = f"{name}, {passages:,} passages: of the exact best 10, missed"
        missed = Measurement(title, "%", (OURS,), (), limit=MAX_MISSED_PERCENT)
        missed.add(OURS, missed_percent(warm[kind].found, exact[kind].found))
        yield missed


class _Lexical:
    def __init__(self, passages: int, peers: tuple[Contender, ...]) -> None:
        everyone = (OURS, *peers)
        alone = f"lexical engine alone, top 10 of {passages:,}, p50"
        whole = f"lexical search, whole call, {passages:,} passages"
        self.alone = Measurement(alone, "ms", everyone, (Target(FTS5, "≤", 1 / 50),))
        self.whole = Measurement(f"{whole}, p50", "ms", everyone, (Target(FTS5, "≤", 1 / 20),))
        self.slow = Measurement(f"{whole}, p99", "ms", everyone, ())
        self.cpu = Measurement(f"{whole}, CPU, p50", "ms", everyone, ())
        self.measurements = (self.alone, self.whole, self.slow, self.cpu)

    def add(self, mine: dict[str, Round], theirs: dict[Contender, Round]) -> None:
        self.alone.add(OURS, mine["engine"].p50_ms)
        self.whole.add(OURS, mine["lexical"].p50_ms)
        self.slow.add(OURS, mine["lexical"].p99_ms)
        self.cpu.add(OURS, mine["lexical"].cpu_p50_ms)
        for one, taken in theirs.items():
            self.alone.add(one, taken.p50_ms)
            self.whole.add(one, taken.p50_ms)
            self.slow.add(one, taken.p99_ms)
            self.cpu.add(one, taken.cpu_p50_ms)


class _Dense:
    def __init__(self, passages: int) -> None:
        both, share = (OURS, FTS5_AND_LANCEDB), 1 / 8 if passages <= SMALL else 1 / 10
        whole = f"hybrid search, whole call, {passages:,} passages"
        self.vector = Measurement(f"vectors alone, top 10 of {passages:,}, p50", "ms", (OURS, LANCEDB), ())
        self.hybrid = Measurement(f"{whole}, p50", "ms", both, (Target(FTS5_AND_LANCEDB, "≤", share),))
        self.slow = Measurement(f"{whole}, p99", "ms", both, ())
        self.cpu = Measurement(f"{whole}, CPU, p50", "ms", both, ())
        self.measurements = (self.vector, self.hybrid, self.slow, self.cpu)

    def add(self, mine: dict[str, Round], lance: Round | None, fts5: Round | None) -> None:
        self.vector.add(OURS, mine["vector"].p50_ms)
        self.hybrid.add(OURS, mine["hybrid"].p50_ms)
        self.slow.add(OURS, mine["hybrid"].p99_ms)
        self.cpu.add(OURS, mine["hybrid"].cpu_p50_ms)
        if lance is not None and fts5 is not None:
            self.vector.add(LANCEDB, lance.p50_ms)
            self.hybrid.add(FTS5_AND_LANCEDB, lance.p50_ms + fts5.p50_ms)
            self.slow.add(FTS5_AND_LANCEDB, lance.p99_ms + fts5.p99_ms)
            self.cpu.add(FTS5_AND_LANCEDB, lance.cpu_p50_ms + fts5.cpu_p50_ms)


def postgres(plan: Plan) -> Rows:
    """One server, two ways to use it: our posting segments, and what PostgreSQL and pgvector have by themselves."""
    ours, theirs = OURS_IN_POSTGRES, TS_RANK
    title = f"PostgreSQL, {SMALL:,} passages"
    whole = Measurement(f"{title}: hybrid search, whole call, p50", "ms", (ours, theirs), (Target(theirs, "≤", 0.1),))
    slow = Measurement(f"{title}: hybrid search, whole call, p99", "ms", (ours, theirs), ())
    words = Measurement(f"{title}: words alone, top 10, p50", "ms", (ours, theirs), (Target(theirs, "≤", 0.1),))
    vectors = Measurement(f"{title}: vectors alone, top 10, p50", "ms", (ours, theirs), ())
    files = make_corpus(plan.scratch.path / "corpus-postgres", SMALL)
    with ExitStack() as stack:
        url = stack.enter_context(serving_postgres("shared_buffers=512MB", "max_wal_size=4GB"))
        (files.folder / "postgres.url").write_text(with_password(url))
        engines = {one: stack.enter_context(engine(one, files, plan.scratch)) for one in (ours, theirs)}
        exact = {kind: engines[ours].run(f"exact {kind}", QUERIES).found for kind in ("vector", "hybrid")}
        found = {kind: engines[ours].run(kind, QUERIES).found for kind in ("vector", "hybrid")}
        for _ in range(plan.rounds):
            taken = {
                one: {kind: engines[one].run(kind, FEW_QUERIES) for kind in _POSTGRES_KINDS} for one in (ours, theirs)
            }
            for one in (ours, theirs):
                whole.add(one, taken[one]["hybrid"].p50_ms)
                slow.add(one, taken[one]["hybrid"].p99_ms)
                words.add(one, taken[one]["engine"].p50_ms)
                vectors.add(one, taken[one]["vector"].p50_ms)
    rmtree(files.folder)
    yield from (whole, slow, words, vectors)
    for kind in ("vector", "hybrid"):
        missed = Measurement(
            f"{title}: {kind}, of the exact best 10, missed", "%", (ours,), (), limit=MAX_MISSED_PERCENT
        )
        missed.add(ours, missed_percent(found[kind], exact[kind]))
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


MEASURES: dict[str, Callable[[Plan], Rows]] = {
    "start": start,
    "warm": warm,
    "search": search,
    "large": large,
    "postgres": postgres,
}
