"""The gate: what the documents speak about passes, what they do not is refused; a sure model is heard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dari.knowledge.ask.asker import Asker, AskRequest
from dari.knowledge.ask.evidence import Sentence, read_evidence
from dari.knowledge.ask.gate import DENSE_FITS, Judgement, judge
from dari.knowledge.config import AskSettings, LlmSettings
from dari.knowledge.render import Renderer
from dari.knowledge.search.coverage import read_question
from dari.knowledge.search.request import SearchRequest
from dari.knowledge.wire.objects import AnswerV1
from tests.support.knowledge_corpus import corpus_of

_DOCUMENTS = {
    "ferry.md": "The ferry to Skarholm takes fifty minutes. It leaves at 7:10 in winter.",
    "여객선.md": "소리섬 여객선은 45분이 걸린다. 겨울에는 7시 20분에 떠난다.",
}
Judge = Callable[..., Judgement]


@pytest.fixture
def judged(tmp_path: Path) -> Judge:
    """Search, read the sentences, judge. `cosines` are those of a model; without them words alone speak."""
    corpus = corpus_of(tmp_path, _DOCUMENTS)

    def run(
        question: str, model: str = "", cosines: tuple[float, ...] = (), threshold: float | None = None
    ) -> Judgement:
        result = corpus.searcher().search(SearchRequest(query=question))
        sentences = read_evidence(question, read_question(question, result.query), result.hits)
        near = tuple(Sentence(0, f"sentence {at}", 0, 1, cosine=cosine) for at, cosine in enumerate(cosines))
        return judge(question, result, sentences + near, model, threshold)

    return run


@pytest.mark.parametrize("question", ["How long does the ferry to Skarholm take?", "소리섬 여객선은 언제 떠나나요?"])
def test_a_question_in_the_documents_words_passes(judged: Judge, question: str) -> None:
    assert judged(question).may_answer


def test_a_question_that_shares_one_common_word_is_refused(judged: Judge) -> None:
    assert not judged("Which winter tyres are recommended for mountain bicycles?").may_answer


def test_a_sure_model_is_heard_for_a_question_without_a_word_in_common(judged: Judge) -> None:
    assert not judged("선박 소요 시간", "use-m", (0.2, 0.2, 0.2)).may_answer
    assert judged("선박 소요 시간", "use-m", (0.5, 0.4, 0.35)).may_answer


def test_one_near_sentence_among_far_ones_is_not_sure(judged: Judge) -> None:
    assert not judged("선박 소요 시간", "use-m", (0.4, 0.1, 0.1)).may_answer


def test_a_model_of_english_is_not_heard_in_korean(judged: Judge) -> None:
    assert DENSE_FITS["minilm"].is_english
    assert not judged("선박 소요 시간", "minilm", (0.9, 0.9, 0.9)).may_answer
    assert judged("ship duration", "minilm", (0.9, 0.9, 0.9)).may_answer


def test_a_model_that_nobody_calibrated_is_not_heard(judged: Judge) -> None:
    assert not judged("ship duration", "mine", (0.99, 0.99, 0.99)).may_answer


def test_the_threshold_of_the_settings_holds(judged: Judge) -> None:
    assert not judged("How long does the ferry to Skarholm take?", threshold=1.0).may_answer
    assert judged("Mona Lisa", threshold=0.0).may_answer


def test_a_model_without_a_fit_is_judged_by_questions_about_nothing_in_particular(tmp_path: Path) -> None:
    ferry = "The ferry has one fare. Children ride the ferry at half the price. The cost of a boat of your own is high."
    corpus = corpus_of(
        tmp_path, {"ferry.md": ferry, "bees.md": "A hive faces south-east. Honey is taken twice a year."}
    )
    corpus.embed()
    assert corpus.model.name not in DENSE_FITS

    def ask(question: str) -> AnswerV1:
        cite = Renderer(stale_after_days=30).citation
        asker = Asker(corpus.store, corpus.searcher(), corpus.model, AskSettings(), LlmSettings(), cite)
        return asker.answer(AskRequest(question=question))

    assert "ferry" in ask("배 가격").answer
    assert ask("초상화 화가").refusal_reason == "score_gate"
