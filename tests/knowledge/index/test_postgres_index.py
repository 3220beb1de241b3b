"""The indexes in PostgreSQL beside those in the data folder: the same hits, through flushes, merges and deletions."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from dari.knowledge.config import KebabConfig
from dari.knowledge.embed import embed_pending
from dari.knowledge.eval.dataset import load_set
from dari.knowledge.eval.index import index_set
from dari.knowledge.eval.metrics import ndcg
from dari.knowledge.index import postgres_lexical
from dari.knowledge.index.analyzer import phrase_terms, words_of
from dari.knowledge.index.index import Lexical
from dari.knowledge.index.lexical import LexicalIndex
from dari.knowledge.index.postgres_lexical import PostgresLexical
from dari.knowledge.search.query import parse_query
from dari.knowledge.search.request import SearchRequest
from dari.knowledge.search.searcher import Searcher
from dari.knowledge.store.postgres import make_store
from tests.support.knowledge_corpus import Corpus, close_served
from tests.support.knowledge_documents import put
from tests.support.knowledge_folder import SERVER

pytest.importorskip("numpy")
pytestmark = pytest.mark.xdist_group("postgres")
WORDS = [f"w{number}x" for number in range(60)]


@pytest.fixture
def corpus(postgres_url: str, tmp_path: Path) -> Iterator[Corpus]:
    SERVER[:] = [postgres_url]
    yield Corpus(tmp_path)
    SERVER.clear()
    close_served()


def text_of(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, weights=range(len(WORDS), 0, -1), k=rng.randint(5, 60)))


def ranked(index: Lexical, query: str, k: int = 10) -> list[tuple[int, float]]:
    return index.search(parse_query(query).terms, k)


def assert_same_hits(one: Lexical, other: Lexical, queries: list[str]) -> None:
    """The same chunks with much the same scores: both count a term's dead chunks until a merge, which come at other
    times, and tantivy keeps lengths in one byte."""
    for query in queries:
        first, second = dict(ranked(one, query, 1000)), dict(ranked(other, query, 1000))
        assert first.keys() == second.keys(), query
        far = {n: (first[n], second[n]) for n in first if abs(first[n] - second[n]) > 0.3 * first[n]}
        assert not far, query


def test_scores_are_those_of_tantivy_through_commits_merges_changes_and_deletions(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_lexical, "FLUSH_CHUNKS", 7)
    monkeypatch.setattr(postgres_lexical, "MERGE_SEGMENTS", 3)
    rng = random.Random(7)
    ours, theirs = corpus.lexical, LexicalIndex.open(tmp_path / "tantivy", writable=True)
    for turn in range(8):
        for number in range(turn * 20 + 1, turn * 20 + 21):
            text, title = text_of(rng), rng.choice(WORDS)
            for index in (ours, theirs):
                index.add(number, 1, text, title)
        for number in rng.sample(range(1, turn * 20 + 21), 6):
            text = text_of(rng)
            for index in (ours, theirs):
                index.delete(number)
                if number % 2:
                    index.add(number, 1, text)
        for index in (ours, theirs):
            index.commit(turn + 1)
        assert (ours.revision, ours.chunk_count) == (theirs.revision, theirs.chunk_count)
    assert_same_hits(theirs, ours, [" ".join(rng.sample(WORDS, size)) for size in (1, 2, 3, 5, 8) for _ in range(4)])
    segments = corpus.backend.database.rows("SELECT count(*) FROM lexical_segments")[0][0]  # type: ignore[attr-defined]
    assert segments < 12  # of more than 25 that were written
    assert [term for term, _ in ours.terms_with_prefix("w1", 5)]
    theirs.close()


def test_a_score_is_bm25_to_the_letter(corpus: Corpus) -> None:
    texts = {1: "red red fox", 2: "red hound and a fox", 3: "blue boat", 4: "blue blue blue sea of boats"}
    for number, text in texts.items():
        corpus.lexical.add(number, 1, text)
    corpus.lexical.commit(1)
    lengths = {number: len(text.split()) for number, text in texts.items()}
    mean = sum(lengths.values()) / len(lengths)
    idf = math.log(1 + (4 - 2 + 0.5) / (2 + 0.5))

    def weight(frequency: int, length: int) -> float:
        return idf * frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * length / mean))

    expected = {1: weight(2, lengths[1]) + weight(1, lengths[1]), 2: weight(1, lengths[2]) * 2}
    assert dict(ranked(corpus.lexical, "red fox")) == pytest.approx(expected, rel=1e-4)
    assert corpus.lexical.idf(["red", "never"]) == pytest.approx({"red": idf, "never": 0.0})


def test_dead_slots_never_hide_live_ones(corpus: Corpus) -> None:
    index = corpus.lexical
    for number in range(1, 200):
        index.add(number, 1, "common " * (200 - number))
    index.commit(1)
    for number in range(1, 90):  # the best ones
        index.delete(number)
    index.commit(2)
    assert [number for number, _ in ranked(index, "common", 3)] == sorted(dict(ranked(index, "common", 3)))
    assert min(dict(ranked(index, "common", 3))) >= 90
    assert len(ranked(index, "common", 500)) == 110


def test_a_phrase_is_found_in_order_only_and_never_across_text_and_title(corpus: Corpus) -> None:
    index = corpus.lexical
    index.add(1, 1, "the night watch opens", "harbour gate")
    index.add(2, 1, "watch the night", "x_y%z")
    index.add(3, 1, "서울 학교에서 공부했다", "東京都 の 人")
    index.commit(1)
    assert index.chunks_with_phrases([("night", "watch")], 9) == [1]
    assert index.chunks_with_phrases([("open", "harbour")], 9) == []
    said = phrase_terms(words_of("학교로 공부했다")).split()
    assert index.chunks_with_phrases([said], 9) == index.chunks_with_phrases([("서울",)], 9) == [3]
    assert index.chunks_with_phrases([("京", "都")], 9) == [3]
    assert index.chunks_with_phrases([("never",)], 9) == []
    assert [number for number, _ in index.search(["night"], 9, phrases=[("night", "watch")])] == [1]


def test_an_index_that_another_version_made_is_built_anew_by_the_writer(corpus: Corpus) -> None:
    database = corpus.backend.database  # type: ignore[attr-defined]
    corpus.lexical.add(1, 1, "one")
    corpus.lexical.commit(1)
    with database.changing_documents() as connection:
        connection.execute("UPDATE lexical_state SET version = 'of-old'")
    again = PostgresLexical(database, writable=True)
    assert (again.was_reset, again.revision, again.chunk_count) == (True, 0, 0)


def test_vectors_too_long_for_an_approximate_index_are_scanned_whole(corpus: Corpus) -> None:
    import numpy as np

    from dari.knowledge.index.postgres_vectors import PostgresVectors

    database = corpus.backend.database  # type: ignore[attr-defined]
    numbers = [row.chunk_no for row in put(make_store(database), "a.md", "a", "b", "c").added]
    rows = np.eye(3, 4001, dtype=np.float32)
    index = PostgresVectors(database, "m", 4001, writable=True, ann_above_rows=1)
    index.append(numbers, rows)
    assert not index.build_ann()
    assert index.search(rows[1], 1) == [(numbers[1], 1.0)]


def test_the_approximate_index_finds_what_a_whole_scan_finds(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    from dari.knowledge.index.postgres_vectors import PostgresVectors

    monkeypatch.setenv("PGOPTIONS", "-c enable_seqscan=off")  # few rows are scanned otherwise
    database, rng = corpus.backend.database, np.random.default_rng(3)  # type: ignore[attr-defined]
    database.drop_idle()
    rows = rng.standard_normal((600, 32)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    numbers = [row.chunk_no for row in put(make_store(database), "a.md", *map(str, range(600))).added]
    exact = PostgresVectors(database, "m", 32, writable=True)
    count = exact.append(numbers, rows)
    with corpus.store.write() as transaction:
        transaction.put_vectors("m", 32, numbers, count)
    exact.refresh(count)
    near = PostgresVectors(database, "m", 32, writable=True, ann_above_rows=100)
    assert near.build_ann() and not near.build_ann()
    plan = database.rows(
        "EXPLAIN SELECT chunk_no FROM vectors_1 ORDER BY vector::halfvec(32) <#> ?::vector::halfvec(32) LIMIT 10",
        near._shown(rows[0]),
    )
    assert "vectors_1_hnsw" in str(plan)
    found = right = 0
    for query in rows[:40]:
        wanted = [numbers[place] for place in np.argsort(-(rows @ query))[:10]]
        assert [number for number, _ in exact._exact(exact._shown(query), 10)] == wanted
        right += len(set(wanted) & {number for number, _ in near.search(query, 10)})
        found += 10
    assert right >= 0.98 * found
    number, score = near.search(rows[5], 1)[0]
    assert (number, round(score, 5)) == (numbers[5], 1.0)  # by full precision
    assert near.search(rows[5], 3, {numbers[5], numbers[9]})[0][0] == numbers[5]
    assert near.vectors_of([numbers[2]])[numbers[2]].tolist() == pytest.approx(rows[2].tolist())


def test_an_index_is_built_where_the_server_has_little_memory_to_share(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container, which has 64 MB of it by default: the workers of a build take all that they may at once."""
    import numpy as np

    from dari.knowledge.index import postgres_vectors

    monkeypatch.setattr(postgres_vectors, "_BUILD_MEMORY", "2000GB")
    monkeypatch.setenv("PGOPTIONS", "-c min_parallel_table_scan_size=0")
    database = corpus.backend.database  # type: ignore[attr-defined]
    numbers = [row.chunk_no for row in put(make_store(database), "a.md", *map(str, range(300))).added]
    index = postgres_vectors.PostgresVectors(database, "m", 32, writable=True, ann_above_rows=100)
    index.append(numbers, np.eye(300, 32, dtype=np.float32) + 0.01)
    with corpus.store.write() as transaction:
        transaction.put_vectors("m", 32, numbers, 300)
    database.close()
    again = type(database)(database._url, database.schema)
    try:
        assert postgres_vectors.PostgresVectors(again, "m", 32, writable=True, ann_above_rows=100).build_ann()
    finally:
        again.close()


def test_the_house_set_ranks_as_it_does_in_the_data_folder(corpus: Corpus, tmp_path: Path) -> None:
    from dari.knowledge.backend import FolderBackend
    from dari.knowledge.paths import DataPaths

    chosen, means = load_set("house"), []
    (tmp_path / "folder").mkdir()
    for backend in (corpus.backend, FolderBackend(DataPaths(tmp_path / "folder"))):
        names = index_set(chosen, backend, KebabConfig())
        store = backend.open_store()
        searcher = Searcher(store, backend.open_lexical())
        scores = []
        for question in chosen.questions:
            if question.relevant:
                hits = searcher.search(SearchRequest(query=question.text, mode="lexical")).hits
                scores.append(ndcg([names[hit.chunk.doc_no] for hit in hits], question.relevant))
        means.append(sum(scores) / len(scores))
        store.close()
    assert means[0] == pytest.approx(means[1], abs=0.02)
    assert means[0] > 0.5


def test_pending_chunks_get_their_vectors_and_a_second_run_does_nothing(corpus: Corpus) -> None:
    for name in ("backup.md", "ferry.md", "copy-of-ferry.md"):
        corpus.put(name, f"about the {name.removeprefix('copy-of-')[:-3]}", "second passage")
    corpus.commit()
    report = embed_pending(corpus.store, corpus.backend, corpus.model)
    assert (report.embedded, report.pending, report.cancelled) == (6, 0, False)
    assert embed_pending(corpus.store, corpus.backend, corpus.model).embedded == 0
    before = corpus.backend.signature()
    corpus.delete("ferry.md")
    corpus.put("night.md", "at night")
    corpus.commit()
    assert embed_pending(corpus.store, corpus.backend, corpus.model).embedded == 1
    assert corpus.backend.signature() != before  # readers choose their model again
    vectors = corpus.backend.open_vectors(corpus.model.key, corpus.model.dim, 0)
    assert vectors.chunk_count == 5  # a vector goes with its chunk
    searcher = Searcher(corpus.store, corpus.lexical, vectors, corpus.model)
    found = searcher.search(SearchRequest(query="evening", mode="vector", k=1)).hits
    assert [hit.document.path for hit in found] == ["night.md"]
    with corpus.store.write() as transaction:
        transaction.delete_vectors()
    assert corpus.store.vector_models() == []
    assert embed_pending(corpus.store, corpus.backend, corpus.model).embedded == 5
