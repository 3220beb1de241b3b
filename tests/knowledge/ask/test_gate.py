"""The gate: what the documents speak about passes, what they do not is refused; a sure model is heard."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from dari.knowledge.ask.gate import DENSE_FITS, judge
from dari.knowledge.search.request import SearchRequest, SearchResult
from tests.support.knowledge_corpus import corpus_of

_DOCUMENTS = {
    "ferry.md": "The ferry to Skarholm takes fifty minutes. It leaves at 7:10 in winter.",
    "여객선.md": "소리섬 여객선은 45분이 걸린다. 겨울에는 7시 20분에 떠난다.",
}


@pytest.fixture
def search(tmp_path: Path):  # type: ignore[no-untyped-def]
    corpus = corpus_of(tmp_path, _DOCUMENTS)
    return lambda query: corpus.searcher().search(SearchRequest(query=query))


def _as_dense(result: SearchResult, cosines: tuple[float, ...]) -> SearchResult:
    """The same hits, found by meaning with these cosines and by no word."""
    hits = tuple(
        replace(hit, retrieval=replace(hit.retrieval, lexical_score=None, vector_score=cosine))
        for hit, cosine in zip(result.hits, cosines, strict=True)
    )
    return replace(result, hits=hits)


@pytest.mark.parametrize("question", ["How long does the ferry to Skarholm take?", "소리섬 여객선은 언제 떠나나요?"])
def test_a_question_in_the_documents_words_passes(search, question: str) -> None:  # type: ignore[no-untyped-def]
    assert judge(question, search(question), "").may_answer


def test_a_question_that_shares_one_common_word_is_refused(search) -> None:  # type: ignore[no-untyped-def]
    question = "Which winter tyres are recommended for mountain bicycles?"
    assert not judge(question, search(question), "").may_answer


def test_a_sure_model_is_heard_for_a_question_without_a_word_in_common(search) -> None:  # type: ignore[no-untyped-def]
    question = "선박 소요 시간"
    found = search("The ferry, 여객선은")
    assert not judge(question, _as_dense(found, (0.1, 0.1)), "use-m").may_answer
    assert judge(question, _as_dense(found, (0.6, 0.2)), "use-m").may_answer


def test_a_model_of_english_is_not_heard_in_korean(search) -> None:  # type: ignore[no-untyped-def]
    assert DENSE_FITS["minilm"].is_english
    found = _as_dense(search("The ferry, 여객선은"), (0.9, 0.2))
    assert not judge("선박 소요 시간", found, "minilm").may_answer
    assert judge("ship duration", found, "minilm").may_answer


def test_the_threshold_of_the_settings_holds(search) -> None:  # type: ignore[no-untyped-def]
    question = "How long does the ferry to Skarholm take?"
    assert not judge(question, search(question), "", 1.0).may_answer
    assert judge("Mona Lisa", search("ferry"), "", 0.0).may_answer
