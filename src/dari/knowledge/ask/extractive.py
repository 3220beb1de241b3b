"""An answer without a language model: the sentences that speak about the question most, each with its citation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from dari.knowledge.ask.evidence import FULL_SHARE, Sentence
from dari.knowledge.search.request import Hit

MODEL_ID = "extractive-v5"
_HIT_WEIGHT = 0.4
_HEADING_SHARE = 0.5  # what a word counts that stands only in the heading above the sentence
# The less of the question the words of the best sentence cover, the more meaning decides.
_COSINE_WEIGHT_BESIDE_WORDS = 1.0
_COSINE_WEIGHT_ALONE = 6.0
_NO_SHARE = 0.2
_NOT_PROSE_PENALTY = 0.3
# Where words do not find the sentence, the right passage is less sure than it looks: one more is heard.
_MAX_OF_ONE_PASSAGE = 2
# A sentence without a word of the question, and with less than this share of the nearest one's cosine, only fills the
# answer up: on the house set none of them has the gold string.
_NEAR_SHARE = 0.5
# Where words find the sentence, those of other documents with less than this share of its score speak about something
# else: a third of what was cited for plain questions, and no gold string among it.
_OTHER_DOCUMENT_SHARE = 0.5


class ScoredSentence(Struct, frozen=True):
    sentence: Sentence
    score: float


def best_sentences(sentences: Sequence[Sentence], hits: Sequence[Hit], limit: int) -> list[ScoredSentence]:
    """The sentences to answer with, best first, no text twice."""
    if not sentences:
        return []
    top = max(hit.score for hit in hits) or 1.0
    covered = (max(one.headed_share for one in sentences) - _NO_SHARE) / (FULL_SHARE - _NO_SHARE)
    fall = (_COSINE_WEIGHT_ALONE - _COSINE_WEIGHT_BESIDE_WORDS) * min(max(covered, 0.0), 1.0)
    of_one_passage = limit if covered >= 1 else _MAX_OF_ONE_PASSAGE
    nearest = max(one.cosine for one in sentences)
    near = min(nearest, _NEAR_SHARE * nearest)
    scored = [
        ScoredSentence(one, _score(one, hits[one.hit].score / top, _COSINE_WEIGHT_ALONE - fall))
        for one in sentences
        if one.headed_share > 0 or (one.cosine >= near and nearest)  # without a model no cosine says anything
    ]
    scored.sort(key=lambda one: (-one.score, one.sentence.hit, one.sentence.start))
    if covered >= 1 and scored:
        best = scored[0]
        document, least = hits[best.sentence.hit].document.doc_no, _OTHER_DOCUMENT_SHARE * best.score
        scored = [one for one in scored if one.score >= least or hits[one.sentence.hit].document.doc_no == document]
    chosen: dict[str, ScoredSentence] = {}
    for most in (of_one_passage, limit):
        taken = Counter(one.sentence.hit for one in chosen.values())
        for one in scored:
            if len(chosen) == limit:
                return list(chosen.values())
            if one.sentence.text not in chosen and taken[one.sentence.hit] < most:
                chosen[one.sentence.text] = one
                taken[one.sentence.hit] += 1
    return list(chosen.values())


def _score(sentence: Sentence, hit_score: float, cosine_weight: float) -> float:
    share = sentence.share + _HEADING_SHARE * (sentence.headed_share - sentence.share)
    prose = 0.0 if sentence.is_prose else _NOT_PROSE_PENALTY
    return share + _HIT_WEIGHT * hit_score + cosine_weight * sentence.cosine - prose
