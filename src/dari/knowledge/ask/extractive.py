"""An answer without a language model: the sentences that speak about the question most, each with its citation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from dari.knowledge.ask.evidence import Sentence, heading_terms, sentences_of
from dari.knowledge.search.coverage import QuestionWords
from dari.knowledge.search.request import Hit

if TYPE_CHECKING:
    from dari.knowledge.models.model import EmbeddingModel

MODEL_ID = "extractive-v1"
_READ_HITS = 5
_EMBEDDED_SENTENCES = 32
_HIT_WEIGHT = 0.9
_HEADING_SHARE = 0.5  # what a word counts that stands only in the heading above the sentence
_COSINE_WEIGHT = 0.6
_NOT_PROSE_PENALTY = 0.3
# Lines of Markdown that name or separate what follows; they say nothing themselves.
_STRUCTURE = re.compile(r"#{1,6}\s|```|~~~|<!--|[-=*_|:\s]+$")
_ENDED = re.compile(r"[.!?。！？…][\"'”’」』)\]*_`]*$|[다요음함됨임까]$")


class ScoredSentence(Struct, frozen=True):
    sentence: Sentence
    score: float


def best_sentences(
    words: QuestionWords, hits: Sequence[Hit], limit: int, question: str = "", model: EmbeddingModel | None = None
) -> list[ScoredSentence]:
    """The sentences to answer with, best first, no text twice. A model compares meaning besides words."""
    read = list(hits[:_READ_HITS])
    if not read:
        return []
    headings = [heading_terms(hit) for hit in read]
    top = max(hit.score for hit in read) or 1.0
    scored = []
    for sentence in sentences_of(read):
        if _STRUCTURE.match(sentence.text):
            continue
        own = words.share_in(sentence.terms)
        with_heading = words.share_in(sentence.terms | headings[sentence.hit])
        share = own + _HEADING_SHARE * (with_heading - own)
        prose = 0.0 if _ENDED.search(sentence.text) else _NOT_PROSE_PENALTY  # a line of code, a cell, a list of words
        scored.append(ScoredSentence(sentence, share + _HIT_WEIGHT * read[sentence.hit].score / top - prose))
    scored.sort(key=_order)
    if model is not None and question:
        scored = _with_meaning(scored, question, model)
    return _distinct(scored, limit)


def _with_meaning(scored: list[ScoredSentence], question: str, model: EmbeddingModel) -> list[ScoredSentence]:
    """Add the cosine of the most promising sentences to their scores; all would take too long."""
    head, tail = scored[:_EMBEDDED_SENTENCES], scored[_EMBEDDED_SENTENCES:]
    vectors = model.embed_passages([one.sentence.text for one in head])
    cosines = vectors @ model.embed_query(question)
    meant = [
        ScoredSentence(one.sentence, one.score + _COSINE_WEIGHT * float(cosine))
        for one, cosine in zip(head, cosines, strict=True)
    ]
    return sorted(meant, key=_order) + tail


def _distinct(scored: list[ScoredSentence], limit: int) -> list[ScoredSentence]:
    chosen: dict[str, ScoredSentence] = {}
    for one in scored:
        chosen.setdefault(one.sentence.text, one)
        if len(chosen) == limit:
            break
    return list(chosen.values())


def _order(one: ScoredSentence) -> tuple[float, int, int]:
    return -one.score, one.sentence.hit, one.sentence.start
