"""How much of a question a text speaks about: shares of its words, each weighed by how rare it is in the corpus."""

from __future__ import annotations

from msgspec import Struct

from dari.knowledge.index.analyzer import index_terms, is_stop_word, terms_of_word, words_of
from dari.knowledge.search.request import QueryStats

_PART_SHARE = 0.8  # of a word whose parts (bigrams, parts of an identifier) stand in a text, but not the whole


class QuestionWord(Struct, frozen=True):
    """A word that says something of the question's subject. `whole` has the term itself and near ones for a typo."""

    whole: frozenset[str]
    parts: tuple[frozenset[str], ...]
    weight: float
    is_known: bool  # some chunk of the corpus has it, or all of its parts


class QuestionWords(Struct, frozen=True):
    words: tuple[QuestionWord, ...]
    total: float

    @property
    def unknown_share(self) -> float:
        """The share of the question that no chunk of the corpus can speak about."""
        if not self.total:
            return 1.0
        return sum(word.weight for word in self.words if not word.is_known) / self.total

    @property
    def terms(self) -> dict[str, float]:
        """Every term that a text may have of the question, with the weight of its word."""
        return {term: word.weight for word in self.words for one in (word.whole, *word.parts) for term in one}

    def share_in(self, terms: frozenset[str]) -> float:
        """The share of the question that a text with these terms speaks about, from 0 to 1."""
        if not self.total:
            return 0.0
        return sum(word.weight * _presence(word, terms) for word in self.words) / self.total


def read_question(question: str, stats: QueryStats) -> QuestionWords:
    """The words of a question that carry its subject, weighed as its search weighed them; none for stop words alone."""
    words = [word for word in dict.fromkeys(words_of(question)) if not is_stop_word(word)]
    unknown_idf = _unknown_idf(stats)
    read = tuple(_read_word(word, stats, unknown_idf) for word in words)
    return QuestionWords(read, sum(word.weight for word in read))


def terms_in(text: str) -> frozenset[str]:
    """Every index term of a text."""
    return frozenset(index_terms(words_of(text)).split())


def _unknown_idf(stats: QueryStats) -> float:
    """The weight of a term that no chunk has: what the sum holds beyond the known ones, spread over the unknown."""
    unknown = sum(1 for weight in stats.idf.values() if weight <= 0)
    if not unknown:
        return max(stats.idf.values(), default=1.0)
    return (stats.sum_idf - sum(stats.idf.values())) / unknown


def _read_word(word: str, stats: QueryStats, unknown_idf: float) -> QuestionWord:
    whole, *parts = terms_of_word(word)
    weight = stats.idf.get(whole, 0.0)
    part_weights = [stats.idf.get(part, 0.0) for part in parts]
    has_parts = bool(parts) and all(part > 0 for part in part_weights)
    near = stats.corrections.get(whole, ())
    if weight <= 0:
        # An inflected Korean word is rare as a whole; its bigrams say how rare its stem is.
        weight = max(part_weights) if has_parts else unknown_idf
    return QuestionWord(
        frozenset((whole, *near)),
        tuple(frozenset((part, *stats.corrections.get(part, ()))) for part in parts),
        weight,
        stats.idf.get(whole, 0.0) > 0 or has_parts or bool(near),
    )


def _presence(word: QuestionWord, terms: frozenset[str]) -> float:
    if not word.whole.isdisjoint(terms):
        return 1.0
    if not word.parts:
        return 0.0
    return _PART_SHARE * sum(not part.isdisjoint(terms) for part in word.parts) / len(word.parts)
