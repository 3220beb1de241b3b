"""Sentences of the hits: their words, their meaning below a title, and which of them make an answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from msgspec.structs import replace

from dari.knowledge.ask.evidence import (
    MAX_EMBEDDED_BESIDE_WORDS,
    MAX_EMBEDDED_SENTENCES,
    Sentence,
    read_evidence,
)
from dari.knowledge.ask.extractive import best_sentences
from dari.knowledge.ask.nearness import Nearness
from dari.knowledge.search.coverage import QuestionWords, read_question
from dari.knowledge.search.request import Hit, SearchRequest
from tests.support.knowledge_corpus import corpus_of

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray


class NearModel:
    """A model that finds texts with one string near, and keeps what it was given."""

    key = name = "near"
    dim = 2
    lexical_weight = 0.8
    max_tokens = 0

    def __init__(self, near: str) -> None:
        self._near = near
        self.texts: list[str] = []

    def embed_passages(self, texts: Sequence[str]) -> NDArray[float32]:
        self.texts += texts
        return np.array([(1.0, 0.0) if self._near in text else (0.0, 1.0) for text in texts], dtype=np.float32)

    def embed_query(self, text: str) -> NDArray[float32]:
        return np.array((1.0, 0.0), dtype=np.float32)


def _read(
    folder: Path, documents: dict[str, str], question: str, search: str, model: NearModel | None
) -> tuple[tuple[Hit, ...], tuple[Sentence, ...]]:
    result = corpus_of(folder, documents).searcher().search(SearchRequest(query=search))
    nearness = None if model is None else Nearness(model)
    return result.hits, read_evidence(question, read_question(question, result.query), result.hits, nearness)


def test_a_sentence_is_compared_below_its_heading(tmp_path: Path) -> None:
    model = NearModel("fifty")
    text = "The crossing takes fifty minutes. Dogs are welcome."
    hits, _ = _read(tmp_path, {"ferry.md": text}, "boat", "crossing", None)
    below = replace(hits[0], chunk=replace(hits[0].chunk, heading_path=("Boats", "Skarholm ferry")))
    sentences = read_evidence("boat", QuestionWords((), 0.0), [below], Nearness(model))
    assert "Skarholm ferry: The crossing takes fifty minutes." in model.texts
    assert [one.cosine for one in sentences] == [1.0, 0.0]


def test_the_nearest_sentence_answers_where_no_word_is_shared(tmp_path: Path) -> None:
    text = "Dogs are welcome on board. The crossing takes fifty minutes. Tickets are sold at the pier."
    hits, sentences = _read(tmp_path, {"ferry.md": text}, "배는 얼마나 걸리나요?", "crossing", NearModel("fifty"))
    chosen = best_sentences(sentences, hits, 1)
    assert [one.sentence.text for one in chosen] == ["The crossing takes fifty minutes."]


def test_a_sentence_that_is_far_in_words_and_in_meaning_does_not_fill_the_answer_up(tmp_path: Path) -> None:
    text = "Dogs are welcome on board. The crossing takes fifty minutes. Tickets are sold at the pier."
    hits, sentences = _read(tmp_path, {"ferry.md": text}, "배는 얼마나 걸리나요?", "crossing", NearModel("fifty"))
    assert [one.sentence.text for one in best_sentences(sentences, hits, 3)] == ["The crossing takes fifty minutes."]
    negative = [replace(one, cosine=one.cosine - 2) for one in sentences]
    assert len(best_sentences(negative, hits, 3)) == 1


def test_a_second_passage_is_heard_where_words_do_not_find_the_sentence(tmp_path: Path) -> None:
    documents = {
        "ferry.md": "The crossing takes fifty minutes. It leaves fifty times. Fifty dogs are welcome.",
        "island.md": "The crossing is rough and fifty miles long. Fifty people live on the island.",
    }
    hits, sentences = _read(tmp_path, documents, "배는 얼마나 걸리나요?", "crossing", NearModel("ifty"))
    assert len({one.sentence.hit for one in best_sentences(sentences, hits, 3)}) == 2
    assert len(best_sentences([one for one in sentences if one.hit == 0], hits, 3)) == len(
        [one for one in sentences if one.hit == 0]
    )


def test_without_a_model_too_a_sentence_that_shares_no_word_does_not_fill_the_answer_up(tmp_path: Path) -> None:
    text = "Dogs are welcome on board. The crossing takes fifty minutes."
    hits, sentences = _read(tmp_path, {"ferry.md": text}, "Are dogs welcome?", "dogs", None)
    assert [one.sentence.text for one in best_sentences(sentences, hits, 3)] == ["Dogs are welcome on board."]


def test_words_decide_without_a_model(tmp_path: Path) -> None:
    text = "Dogs are welcome on board. The crossing takes fifty minutes."
    hits, sentences = _read(tmp_path, {"ferry.md": text}, "Are dogs welcome?", "dogs", None)
    assert all(one.cosine == 0 for one in sentences)
    assert best_sentences(sentences, hits, 1)[0].sentence.text == "Dogs are welcome on board."


@pytest.mark.parametrize(
    ("question", "count"),
    [("항구에 자리가 있나요", MAX_EMBEDDED_SENTENCES), ("harbour", MAX_EMBEDDED_BESIDE_WORDS)],
)
def test_fewer_sentences_are_embedded_where_words_find_them(tmp_path: Path, question: str, count: int) -> None:
    model = NearModel("none")
    text = " ".join(f"The harbour has berth number {number} for small boats." for number in range(200))
    _, sentences = _read(tmp_path, {"berths.md": text}, question, "harbour", model)
    assert len(sentences) > count == len(model.texts)


@pytest.mark.parametrize("line", ["# Heading", "---", "| --- | --- |", "```"])
def test_lines_of_structure_are_not_sentences(tmp_path: Path, line: str) -> None:
    _, sentences = _read(tmp_path, {"a.md": f"{line}\n\nThe harbour is deep.\n"}, "harbour", "harbour", None)
    assert line not in [one.text for one in sentences]


def test_where_words_find_the_sentence_other_documents_do_not_fill_the_answer_up(tmp_path: Path) -> None:
    documents = {
        "ferry.md": "The night ferry crossing to Skarholm takes fifty minutes. Dogs may take the ferry.",
        "bus.md": "The bus takes an hour.",
        "train.md": "The night train to Skarholm has no ferry crossing.",
    }
    question = "How long does the night ferry crossing to Skarholm take?"
    hits, sentences = _read(tmp_path, documents, question, question, None)
    assert "bus.md" in {hit.document.path for hit in hits}
    assert {one.sentence.text for one in best_sentences(sentences, hits, 3)} == {
        "The night ferry crossing to Skarholm takes fifty minutes.",
        "Dogs may take the ferry.",
        "The night train to Skarholm has no ferry crossing.",
    }
    assert len(best_sentences(sentences, hits, 4)) == 3, "the bus takes an hour to somewhere else"


FAQ = """Q: How long are the tapes kept?
A: Eleven years, in the lower vault.

Q: Who may open the lower vault?
A: The archivist and her deputy, together.

문: 열람실은 몇 시에 닫습니까?
답: 평일에는 저녁 아홉 시입니다.
"""


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How long are the tapes kept?", "A: Eleven years, in the lower vault."),
        ("Who may open the vault?", "A: The archivist and her deputy, together."),
        ("열람실은 몇 시에 닫습니까?", "답: 평일에는 저녁 아홉 시입니다."),
    ],
)
def test_a_question_in_a_document_is_answered_by_the_sentence_behind_it(
    tmp_path: Path, question: str, answer: str
) -> None:
    hits, sentences = _read(tmp_path, {"faq.txt": FAQ}, question, question, None)
    assert best_sentences(sentences, hits, 1)[0].sentence.text == answer


def test_a_question_leads_its_paragraph_and_is_compared_with_it(tmp_path: Path) -> None:
    model = NearModel("permit")
    text = "A camera? Ask at the desk. A permit costs two crowns.\n\nDogs stay outside.\n\nAnd a bird? And a cat?\n"
    _, sentences = _read(tmp_path, {"visit.txt": text}, "Foto", "camera", model)
    leads = {one.text: one.lead for one in sentences}
    assert leads == {
        "Ask at the desk.": "A camera?",
        "A permit costs two crowns.": "A camera?",
        "Dogs stay outside.": "",
        "And a bird?": "",  # nothing follows that would answer it
        "And a cat?": "",
    }
    assert "A camera?: A permit costs two crowns." in model.texts
