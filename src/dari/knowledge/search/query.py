"""A query as a person or a model types it: terms that any hit may have, and quoted phrases that every hit must have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from dari.knowledge.index.analyzer import is_stop_word, phrase_terms, terms_of_word, words_of
from dari.knowledge.search.request import QueryStats

if TYPE_CHECKING:
    from dari.knowledge.index.index import Lexical

MAX_QUERY_CHARS = 10_000
_MAX_TERMS = 128  # of a pasted page; the rarest stay
# A quotation begins at the last opening mark before its end, so that ten thousand of them are looked at once each.
_QUOTED = re.compile(r'"([^"]+)"|“([^“”]+)”|「([^「」]+)」')
_MIN_TYPO_CHARS = 4
_TWO_TYPOS_CHARS = 8
_MAX_NEAR_TERMS = 3
_SCANNED_TERMS = 4000
_NEAR_WEIGHT = 0.8


class ParsedQuery(Struct, frozen=True):
    terms: tuple[str, ...]
    phrases: tuple[tuple[str, ...], ...]
    has_words_beside: bool = False
    """Words outside the quotes say something too: a sentence that quotes, not a search for a phrase."""


class WeightedQuery(Struct, frozen=True):
    """What the lexical index is asked for, and what is known of it."""

    weights: dict[str, float]
    phrases: tuple[tuple[str, ...], ...]
    stats: QueryStats
    has_words_beside: bool = False


def parse_query(text: str) -> ParsedQuery:
    """Any text is a query. Stop words are left out, unless nothing else is there."""
    text = text[:MAX_QUERY_CHARS]
    words = words_of(text)
    said = [word for word in words if not is_stop_word(word)] or words
    terms = dict.fromkeys(term for word in said for term in terms_of_word(word))
    quoted = (next(filter(None, found.groups())) for found in _QUOTED.finditer(text))
    phrases = (tuple(phrase_terms(words_of(one)).split()) for one in quoted)
    beside = any(not is_stop_word(word) for word in words_of(_QUOTED.sub(" ", text)))
    return ParsedQuery(tuple(terms), tuple(phrase for phrase in phrases if phrase), beside)


def weigh(parsed: ParsedQuery, lexical: Lexical) -> WeightedQuery:
    """The terms with their idf; for one that no chunk has, the terms near it."""
    idf = lexical.idf(parsed.terms)
    if len(idf) > _MAX_TERMS:
        idf = dict(sorted(idf.items(), key=lambda one: -one[1])[:_MAX_TERMS])
    weights: dict[str, float] = {}
    corrections: dict[str, tuple[str, ...]] = {}
    for term, weight in idf.items():
        if weight > 0:
            weights[term] = 1.0
        elif near := near_terms(lexical, term):
            corrections[term] = near
    for near in corrections.values():
        for term in near:
            weights.setdefault(term, _NEAR_WEIGHT)
    rarest = lexical.highest_idf
    total = sum(weight or rarest for weight in idf.values())
    stats = QueryStats(idf=idf, sum_idf=total, corrections=corrections)
    return WeightedQuery(weights, parsed.phrases, stats, parsed.has_words_beside)


def near_terms(lexical: Lexical, term: str) -> tuple[str, ...]:
    """Terms of the index that a slip of the finger away from `term`: the nearest, most frequent first."""
    is_hangul = term.startswith("=")
    bare = term[1:] if is_hangul else term
    if (
        not bare.isalpha()
        or len(bare) < (3 if is_hangul else _MIN_TYPO_CHARS)
        or (not is_hangul and not term.isascii())
    ):
        return ()
    most = 2 if len(bare) >= _TWO_TYPOS_CHARS and not is_hangul else 1
    # The first letter is right, two letters changed places, or one was left out or typed too much.
    prefixes = {term[:2]} if is_hangul else {term[:2], term[1] + term[0], term[1:3], term[0] + term[2]}
    found: dict[str, tuple[int, int]] = {}
    for prefix in prefixes:
        for candidate, count in lexical.terms_with_prefix(prefix, _SCANNED_TERMS):
            if abs(len(candidate) - len(term)) <= most and candidate not in found:
                distance = edit_distance(term, candidate, most)
                if distance <= most:
                    found[candidate] = (distance, -count)
    if not found:
        return ()
    nearest = min(found.values())[0]
    best = sorted((rank, candidate) for candidate, rank in found.items() if rank[0] == nearest)
    return tuple(candidate for _, candidate in best[:_MAX_NEAR_TERMS])


def edit_distance(one: str, other: str, most: int) -> int:
    """Insertions, deletions, substitutions and swaps of neighbours; `most + 1` stands for anything above `most`."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        current = [row]
        for column, against in enumerate(other, 1):
            cost = min(last[column] + 1, current[-1] + 1, last[column - 1] + (letter != against))
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == against:
                cost = min(cost, before[column - 2] + 1)
            current.append(cost)
        if min(current) > most:
            return most + 1
        before, last = last, current
    return min(last[-1], most + 1)
