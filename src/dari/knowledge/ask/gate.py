"""Can the documents answer this at all? Decided from what the search found, before a language model writes.

Two witnesses. The lexical one says how much of the question the best passage and its best sentence speak about, and
how much of it no document knows. The dense one says how near the question is in meaning to the three nearest sentences
of the passages; it is heard for questions in another language or in other words than the documents', where the lexical
one is silent. Each is a logistic function; the surer one counts. docs/decisions/0015-knowledge.md has what they were
fitted on and what they are worth. The gate stops questions whose topic is absent; a topic that is there with a fact
that is not needs a language model's own judgement, or a reader's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from dari.knowledge.ask.evidence import Sentence
from dari.knowledge.ask.instructions import without_instructions
from dari.knowledge.ask.nearness import is_latin
from dari.knowledge.search.coverage import QuestionWords, read_question, terms_in
from dari.knowledge.search.request import SearchResult

GATE_VERSION = "gate-v4"
DEFAULT_THRESHOLD = 0.5
_JUDGED_HITS = 5
_JUDGED_SENTENCES = 3


class DenseFit(Struct, frozen=True):
    """The logistic function of one model's cosines."""

    bias: float
    sentences: float
    is_english: bool = False  # cosines of questions in another script mean nothing


# By model: cosines of each lie in a band of their own. Half a chance is the point that one in forty questions of
# the house set about an absent topic passes.
DENSE_FITS: dict[str, DenseFit] = {
    "use-m": DenseFit(-8.7, 30.0),
    "potion-ml": DenseFit(-12.6, 20.0),
    "minilm": DenseFit(-9.2, 25.0, is_english=True),
}
_NO_DENSE = DenseFit(-99.0, 0.0)


class Features(Struct, frozen=True):
    """What the decision is made from; all between 0 and 1."""

    passage_share: float  # of the question, in the best passage with its headings
    sentence_share: float  # of the question, in the best sentence with the headings above it
    unknown_share: float  # of the question, in no document
    density: float  # BM25 of the best hit for the sum of the question's idf
    sentence_cosine: float  # mean of the nearest sentences; 0 without vectors


class Judgement(Struct, frozen=True):
    """`chance` is the probability that the documents hold an answer."""

    chance: float
    threshold: float
    features: Features

    @property
    def may_answer(self) -> bool:
        return self.chance >= self.threshold


def judge(
    question: str,
    result: SearchResult,
    sentences: Sequence[Sentence],
    model_name: str,
    threshold: float | None = None,
    measured: DenseFit | None = None,
) -> Judgement:
    """Judge a question by the hits of its search and by their sentences. `measured` is for a model without a fit."""
    features = read_features(read_question(question, result.query), result, sentences)
    lexical = _lexical_chance(features)
    fit = DENSE_FITS.get(model_name, measured or _NO_DENSE)
    dense = 0.0 if fit.is_english and not is_latin(question) else _dense_chance(features, fit)
    return Judgement(max(lexical, dense), DEFAULT_THRESHOLD if threshold is None else threshold, features)


def read_features(words: QuestionWords, result: SearchResult, sentences: Sequence[Sentence]) -> Features:
    passages = [without_instructions(hit.chunk.text) for hit in result.hits]
    shares = [
        words.share_in(terms_in(" ".join((text, hit.document.title, *hit.chunk.heading_path))))
        for hit, text in zip(result.hits, passages[:_JUDGED_HITS], strict=False)
    ]
    # What a document says to a model gives no answer, so the words in it are no sign of one.
    heard = (
        hit.retrieval.lexical_score or 0.0
        for hit, text in zip(result.hits, passages, strict=True)
        if text == hit.chunk.text or words.share_in(terms_in(text))
    )
    lexical = max(heard, default=0.0)
    return Features(
        passage_share=max(shares, default=0.0),
        sentence_share=max((one.headed_share for one in sentences if one.hit < _JUDGED_HITS), default=0.0),
        unknown_share=words.unknown_share,
        density=min(1.0, lexical / result.query.sum_idf) if result.query.sum_idf else 0.0,
        sentence_cosine=nearest_cosine(sentences),
    )


def nearest_cosine(sentences: Sequence[Sentence]) -> float:
    """The mean of the nearest sentences; 0 without vectors."""
    nearest = sorted((one.cosine for one in sentences), reverse=True)[:_JUDGED_SENTENCES]
    return max(0.0, sum(nearest) / len(nearest)) if nearest else 0.0


def _lexical_chance(features: Features) -> float:
    return _logistic(
        -3.5
        + 2.8 * features.passage_share
        + 1.8 * features.sentence_share
        - 4.4 * features.unknown_share
        + 4.8 * features.density
    )


def _dense_chance(features: Features, fit: DenseFit) -> float:
    return _logistic(fit.bias + fit.sentences * features.sentence_cosine)


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, value))))
