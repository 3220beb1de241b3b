"""Searching: the halves, their fusion, filters, pages, and what is said when something is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from dari.errors import Unavailable
from dari.knowledge.document import TrustLevel
from dari.knowledge.errors import InvalidArgument, ModelNotInstalled, StaleCursor
from dari.knowledge.search.request import SearchRequest, SearchResult
from dari.knowledge.search.searcher import Searcher
from dari.knowledge.store.records import DocumentFilter
from tests.support.knowledge_corpus import Corpus, corpus_of

pytest.importorskip("numpy")
pytestmark = pytest.mark.usefixtures("either_store")

DOCUMENTS = {
    "backup.md": "The backup runs every night at two and is kept for thirty days.",
    "backup-ko.md": "백업은 매일 밤 두 시에 실행되고 30일 동안 보관됩니다.",
    "vault.md": "A restore of the database needs the key of the vault.",
    "watch.md": "The key of the night watch opens the vault.",
    "ferry.md": "The ferry to the island costs nine euros; children ride free.",
    "여객선.md": "섬으로 가는 여객선 요금은 9유로이고 어린이는 무료입니다.",
    "code.py": "def get_user_name(user_id): return USERS[user_id].displayName",
}


def ask(corpus: Corpus, query: str, **fields: object) -> SearchResult:
    return corpus.searcher().search(SearchRequest(query=query, **fields))  # type: ignore[arg-type]


def paths(result: SearchResult) -> list[str]:
    return [hit.document.path for hit in result.hits]


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return corpus_of(tmp_path, DOCUMENTS)


@pytest.fixture
def embedded(corpus: Corpus) -> Corpus:
    corpus.embed()
    return corpus


def test_a_question_in_either_language_finds_its_passage_by_words(corpus: Corpus) -> None:
    assert paths(ask(corpus, "How long is a backup kept?", mode="lexical"))[0] == "backup.md"
    assert paths(ask(corpus, "백업은 얼마나 보관되나요?", mode="lexical"))[0] == "backup-ko.md"


@pytest.mark.parametrize("query", ["get_user_name", "displayName", "user name", "getUserName"])
def test_an_identifier_is_found_whole_and_by_its_parts(corpus: Corpus, query: str) -> None:
    assert paths(ask(corpus, query, mode="lexical"))[0] == "code.py"


def test_hybrid_without_a_model_is_lexical_and_says_so(corpus: Corpus) -> None:
    result = ask(corpus, "nightly backup")
    assert (result.mode, result.degraded, bool(result.hint)) == ("lexical", "no_model", True)
    assert paths(result)[0] == "backup.md"


def test_hybrid_before_the_first_vector_is_lexical_and_says_so(corpus: Corpus) -> None:
    vectors = corpus.backend.open_vectors(corpus.model.key, corpus.model.dim, 0)
    result = Searcher(corpus.store, corpus.lexical, vectors, corpus.model).search(SearchRequest(query="backup"))
    assert (result.degraded, result.mode) == ("no_vectors", "lexical")


def test_a_vector_search_without_a_model_is_refused(corpus: Corpus) -> None:
    with pytest.raises(ModelNotInstalled):
        ask(corpus, "backup", mode="vector")


def test_a_model_that_fails_degrades_a_hybrid_search_and_fails_a_vector_search(embedded: Corpus) -> None:
    embedded.model.failure = Unavailable("the server does not answer")
    result = ask(embedded, "backup")
    assert (result.degraded, paths(result)[0]) == ("model_failed", "backup.md")
    with pytest.raises(Unavailable):
        ask(embedded, "backup", mode="vector")


def test_the_dense_half_carries_a_question_in_other_words(embedded: Corpus) -> None:
    result = ask(embedded, "ship fare")
    assert set(paths(result)[:2]) == {"ferry.md", "여객선.md"}
    assert result.hits[0].retrieval.method == "vector"
    assert result.hits[0].retrieval.lexical_rank is None


def test_a_question_in_another_language_is_carried_by_the_dense_half_beside_weak_words(embedded: Corpus) -> None:
    # "9" stands in the Korean passage, and nothing else of the question does.
    assert "여객선.md" in paths(ask(embedded, "boat price 9"))[:2]


def test_a_hit_says_which_half_found_it_with_ranks_and_scores(embedded: Corpus) -> None:
    first = ask(embedded, "nightly backup").hits[0]
    assert (first.score_kind, first.retrieval.method) == ("convex", "hybrid")
    assert first.retrieval.lexical_rank == 1
    assert first.retrieval.vector_rank is not None
    assert first.retrieval.fusion_score == first.score <= 1.0
    assert (first.retrieval.lexical_score or 0) > 0
    assert (first.retrieval.vector_score or 0) > 0


def test_reciprocal_ranks_are_a_setting(embedded: Corpus) -> None:
    result = embedded.searcher(fusion="rrf").search(SearchRequest(query="the night key"))
    assert {hit.score_kind for hit in result.hits} == {"rrf"}
    assert result.hits[0].score == pytest.approx(1.0)


@pytest.mark.parametrize(("mode", "kind"), [("lexical", "bm25"), ("vector", "cosine"), ("hybrid", "convex")])
def test_scores_descend_and_name_their_kind(embedded: Corpus, mode: str, kind: str) -> None:
    hits = ask(embedded, "the key of the night", mode=mode).hits
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert {hit.score_kind for hit in hits} == {kind}
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "'",
        '"unbalanced backup',
        "backup AND (",
        "a:b^2~",
        "backup*",
        "+backup -night",
        "백업?!",
        "[x TO y]",
        "\\",
        "\x00",
    ],
)
def test_punctuation_never_fails_a_search(embedded: Corpus, query: str) -> None:
    for mode in ("lexical", "vector", "hybrid"):
        ask(embedded, query, mode=mode)


def test_a_query_of_stop_words_alone_searches_them(corpus: Corpus) -> None:
    assert paths(ask(corpus, "for the", mode="lexical"))


def test_an_empty_query_and_a_wrong_k_are_invalid(corpus: Corpus) -> None:
    for fields in ({"query": "  "}, {"query": "x", "k": 0}, {"query": "x", "k": 101}, {"query": "x", "max_tokens": 0}):
        with pytest.raises(InvalidArgument):
            corpus.searcher().search(SearchRequest(**fields))  # type: ignore[arg-type]


def test_a_quoted_phrase_binds_both_halves(embedded: Corpus) -> None:
    for mode in ("lexical", "vector", "hybrid"):
        assert paths(ask(embedded, '"key of the vault"', mode=mode)) == ["vault.md"]
    result = ask(embedded, '"vault of the key"')
    assert (paths(result), bool(result.hint)) == ([], True)


def test_a_sentence_that_quotes_what_no_passage_says_is_searched_by_its_words(corpus: Corpus) -> None:
    result = ask(corpus, 'Who holds the "vault of the key" for a restore of the database?', mode="lexical")
    assert paths(result)[0] == "vault.md"
    assert "quoted phrase" in result.hint
    kept = ask(corpus, 'restore of the "night watch"', mode="lexical")
    assert (paths(kept), kept.hint) == (["watch.md"], "")


def test_a_korean_phrase_matches_with_other_particles(corpus: Corpus) -> None:
    assert paths(ask(corpus, '"여객선 요금"', mode="lexical")) == ["여객선.md"]


@pytest.mark.parametrize("query", ["bakcup", "databse restore", "vualt", "여객성"])
def test_a_misspelt_word_finds_what_was_meant(corpus: Corpus, query: str) -> None:
    result = ask(corpus, query, mode="lexical")
    assert paths(result)[0] in ("backup.md", "vault.md", "watch.md", "여객선.md")


def test_a_correction_is_named(corpus: Corpus) -> None:
    assert ask(corpus, "bakcup", mode="lexical").query.corrections == {"bakcup": ("backup",)}


@pytest.mark.parametrize("mode", ["lexical", "vector", "hybrid"])
def test_filters_hold_in_every_mode(tmp_path: Path, mode: str) -> None:
    corpus = Corpus(tmp_path)
    trust: tuple[TrustLevel, ...] = ("primary", "secondary", "generated")
    for number, level in enumerate(trust):
        corpus.put(f"notes/{level}.md", f"The backup key number {number}.", trust_level=level, tags=(level,), lang="en")
        corpus.put(f"src/{level}.py", f"backup key {number}", media="code", code_lang="python", repo="r", lang="en")
    corpus.commit()
    corpus.embed()
    cases = {
        DocumentFilter(tags=("secondary",)): {"notes/secondary.md"},
        DocumentFilter(path_glob="src/*.py"): {"src/primary.py", "src/secondary.py", "src/generated.py"},
        DocumentFilter(trust_min="secondary", media=("markdown",)): {"notes/primary.md", "notes/secondary.md"},
        DocumentFilter(code_langs=("python",), repos=("r",)): {f"src/{level}.py" for level in trust},
        DocumentFilter(langs=("ko",)): set(),
    }
    for where, expected in cases.items():
        assert set(paths(ask(corpus, "backup key", mode=mode, where=where))) == expected


@pytest.mark.parametrize("mode", ["lexical", "vector", "hybrid"])
def test_pages_follow_each_other_without_gaps_or_repeats_also_among_ties(tmp_path: Path, mode: str) -> None:
    corpus = corpus_of(tmp_path, {f"{number:02}.md": "The same backup text." for number in range(23)})
    corpus.embed()
    seen: list[str] = []
    cursor = ""
    for _ in range(6):
        result = ask(corpus, "backup", mode=mode, k=5, cursor=cursor)
        seen += [hit.chunk.chunk_id for hit in result.hits]
        cursor = result.next_cursor or ""
        if not cursor:
            break
    assert len(seen) == len(set(seen)) == 23
    if mode == "lexical":
        assert seen == sorted(seen)


def test_a_cursor_is_stale_after_a_change_and_bound_to_its_search(corpus: Corpus) -> None:
    cursor = ask(corpus, "the key", mode="lexical", k=1).next_cursor
    assert cursor
    assert ask(corpus, "the key", mode="lexical", k=1, cursor=cursor).hits[0].rank == 2
    for query, given in (("another", cursor), ("the key", "nonsense!"), ("the key", "AAAA")):
        with pytest.raises(InvalidArgument):
            ask(corpus, query, mode="lexical", cursor=given)
    corpus.put("new.md", "A new key.")
    corpus.commit()
    with pytest.raises(StaleCursor):
        ask(corpus, "the key", mode="lexical", k=1, cursor=cursor)


def test_the_token_budget_ends_a_page_and_the_cursor_goes_on_behind_it(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, {f"{n}.md": f"backup {'word ' * 20}{n}" for n in range(6)})
    first = ask(corpus, "backup", mode="lexical", max_tokens=80)
    assert first.truncated
    assert 0 < len(first.hits) < 6
    assert sum(len(hit.snippet.text.encode()) for hit in first.hits) <= 80 * 3
    rest = ask(corpus, "backup", mode="lexical", cursor=first.next_cursor or "")
    assert len(first.hits) + len(rest.hits) == 6
    tiny = ask(corpus, "backup", mode="lexical", max_tokens=10)
    assert (len(tiny.hits), len(tiny.hits[0].snippet.text) <= 30) == (1, True)


def test_a_chunk_that_left_the_store_is_passed_over_until_the_index_follows(embedded: Corpus) -> None:
    embedded.delete("backup.md")
    assert "backup.md" not in paths(ask(embedded, "nightly backup"))


def test_a_reader_follows_a_writer_of_another_process(embedded: Corpus) -> None:
    state = embedded.store.vector_state(embedded.model.key)
    assert state is not None
    reader = Searcher(
        embedded.store,
        embedded.backend.open_lexical(),
        embedded.backend.open_vectors(embedded.model.key, embedded.model.dim, state.committed_rows),
        embedded.model,
    )
    embedded.put("fresh.md", "A hound guards the harbour.")
    embedded.commit()
    embedded.embed()
    assert paths(reader.search(SearchRequest(query="harbour", mode="lexical"))) == ["fresh.md"]
    assert paths(reader.search(SearchRequest(query="dog", mode="vector", k=1))) == ["fresh.md"]


def test_a_trace_names_the_candidates_of_each_half_and_the_time_each_took(embedded: Corpus) -> None:
    result = ask(embedded, "backup at night", trace=True)
    assert result.trace is not None
    assert result.trace.lexical[0].rank == 1
    assert len(result.trace.vector) == len(DOCUMENTS)
    assert [entry.chunk_id for entry in result.trace.fused][:1] == [result.hits[0].chunk.chunk_id]
    assert result.timing.total_ms >= result.timing.lexical_ms >= 0
    assert ask(embedded, "backup").trace is None


def test_the_query_statistics_say_what_a_hit_covers(corpus: Corpus) -> None:
    result = ask(corpus, "restore the database zeppelin", mode="lexical")
    stats = result.query
    assert stats.idf["zeppelin"] == 0.0
    assert stats.sum_idf > sum(stats.idf.values())  # what no chunk has counts as the rarest
    assert {"databas", "restor"} <= set(result.hits[0].matched_terms)


def test_a_vector_search_before_the_first_vector_does_not_say_that_words_were_compared(corpus: Corpus) -> None:
    vectors = corpus.backend.open_vectors(corpus.model.key, corpus.model.dim, 0)
    searcher = Searcher(corpus.store, corpus.lexical, vectors, corpus.model)
    result = searcher.search(SearchRequest(query="backup", mode="vector"))
    assert (result.hits, result.degraded) == ((), "no_vectors")
    assert "only words were compared" not in result.hint
    assert "kebab ingest" in result.hint


@pytest.mark.parametrize("where", [DocumentFilter(langs=("english",)), DocumentFilter(path_glob="nowhere/**")])
def test_a_filter_that_no_document_fits_is_named(corpus: Corpus, where: DocumentFilter) -> None:
    result = ask(corpus, "backups", where=where)
    assert not result.hits
    assert "no document fits the filter" in result.hint
    assert ("(lang)" if where.langs else "(path_glob)") in result.hint
