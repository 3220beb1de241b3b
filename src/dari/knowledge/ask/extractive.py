"""An answer without a language model: the sentences that speak about the question most, each with its citation."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from dari.knowledge.ask.evidence import Sentence
from dari.knowledge.search.request import Hit

MODEL_ID = "extractive-v2"
_HIT_WEIGHT = 0.4
_HEADING_SHARE = 0.5  # what a word counts that stands only in the heading above the sentence
_COSINE_WEIGHT = 2.0
_NOT_PROSE_PENALTY = 0.3


class ScoredSentence(Struct, frozen=True):
    sentence: Sentence
    score: float


def best_sentences(sentences: Sequence[Sentence], hits: Sequence[Hit], limit: int) -> list[ScoredSentence]:
    """The sentences to answer with, best first, no text twice."""
    if not sentences:
        return []
    top = max(hit.score for hit in hits) or 1.0
    scored = [ScoredSentence(one, _score(one, hits[one.hit].score / top)) for one in sentences]
    scored.sort(key=lambda one: (-one.score, one.sentence.hit, one.sentence.start))
    chosen: dict[str, ScoredSentence] = {}
    for one in scored:
        chosen.setdefault(one.sentence.text, one)
        if len(chosen) == limit:
            break
    return list(chosen.values())


def _score(sentence: Sentence, hit_score: float) -> float:
    share = sentence.share + _HEADING_SHARE * (sentence.headed_share - sentence.share)
    prose = 0.0 if sentence.is_prose else _NOT_PROSE_PENALTY
    return share + _HIT_WEIGHT * hit_score + _COSINE_WEIGHT * sentence.cosine - prose
