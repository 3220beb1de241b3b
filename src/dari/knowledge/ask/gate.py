"""Can the documents answer this at all? Decided before any model is asked, from what the search found.

Two witnesses. The lexical one says how much of the question the best passage and its best sentence speak about, and
how much of it no document knows. The dense one says how near the question is to the best passage in meaning, and how
far that one stands out; it is heard for questions in another language or in other words than the documents', where the
lexical one is silent. Each is a logistic function, fitted on the house set (docs/decisions/0015-knowledge.md has the
numbers); the surer one counts. The gate stops questions whose topic is absent; a topic that is there with a fact that
is not needs a language model's own judgement, or a reader's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from dari.knowledge.ask.evidence import Sentence, heading_terms, sentences_of
from dari.knowledge.search.coverage import QuestionWords, read_question, terms_in
from dari.knowledge.search.request import Hit, SearchResult

GATE_VERSION = "gate-v1"
DEFAULT_THRESHOLD = 0.5
_JUDGED_HITS = 5


class DenseFit(Struct, frozen=True):
    """The logistic function of one model's cosines."""

    bias: float
    cosine: float
    lead: float
    is_english: bool = False  # cosines of questions in another script mean nothing


# By model: cosines of each lie in a band of their own. Half a chance is the point where 2.5 % of the questions about
# absent topics pass.
DENSE_FITS: dict[str, DenseFit] = {
    "use-m": DenseFit(-5.1, 13.2, 5.0),
    "potion-ml": DenseFit(-7.3, 9.5, 7.9),
    "minilm": DenseFit(-6.2, 16.7, -1.5, is_english=True),
}
_NO_DENSE = DenseFit(-99.0, 0.0, 0.0)


class Features(Struct, frozen=True):
    """What the decision is made from; all between 0 and 1 but `lead`."""

    passage_share: float  # of the question, in the best passage with its headings
    sentence_share: float  # of the question, in the best sentence with the headings above it
    unknown_share: float  # of the question, in no document
    density: float  # BM25 of the best hit for the sum of the question's idf
    cosine: float  # of the best hit; 0 without vectors
    lead: float  # how far that stands above the tenth


class Judgement(Struct, frozen=True):
    """`chance` is the probability that the documents hold an answer."""

    chance: float
    threshold: float
    features: Features

    @property
    def may_answer(self) -> bool:
        return self.chance >= self.threshold


def judge(question: str, result: SearchResult, model_name: str, threshold: float | None = None) -> Judgement:
    """Judge a question by the hits of its search."""
    words = read_question(question, result.query)
    features = read_features(words, result)
    lexical = _lexical_chance(features)
    fit = DENSE_FITS.get(model_name, _NO_DENSE)
    dense = 0.0 if fit.is_english and not _is_latin(question) else _dense_chance(features, fit)
    return Judgement(max(lexical, dense), DEFAULT_THRESHOLD if threshold is None else threshold, features)


def read_features(words: QuestionWords, result: SearchResult) -> Features:
    hits = result.hits[:_JUDGED_HITS]
    headings = [heading_terms(hit) for hit in hits]
    passages = [terms_in(hit.chunk.text) | heading for hit, heading in zip(hits, headings, strict=True)]
    lexical = max((hit.retrieval.lexical_score or 0.0 for hit in result.hits), default=0.0)
    cosines = sorted((hit.retrieval.vector_score or 0.0 for hit in result.hits), reverse=True)
    return Features(
        passage_share=max(map(words.share_in, passages), default=0.0),
        sentence_share=_best_sentence(words, hits, headings),
        unknown_share=words.unknown_share,
        density=min(1.0, lexical / result.query.sum_idf) if result.query.sum_idf else 0.0,
        cosine=max(0.0, cosines[0]) if cosines else 0.0,
        lead=cosines[0] - cosines[-1] if cosines else 0.0,
    )


def _best_sentence(words: QuestionWords, hits: Sequence[Hit], headings: Sequence[frozenset[str]]) -> float:
    def share(one: Sentence) -> float:
        return words.share_in(one.terms | headings[one.hit])

    return max(map(share, sentences_of(hits)), default=0.0)


def _lexical_chance(features: Features) -> float:
    return _logistic(
        -6.0
        + 5.1 * features.passage_share
        + 3.5 * features.sentence_share
        - 2.5 * features.unknown_share
        + 6.9 * features.density
    )


def _dense_chance(features: Features, fit: DenseFit) -> float:
    return _logistic(fit.bias + fit.cosine * features.cosine + fit.lead * features.lead)


def _is_latin(text: str) -> bool:
    return all(letter < "\u0250" for letter in text if letter.isalpha())


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, value))))
