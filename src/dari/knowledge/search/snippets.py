"""Snippets: the piece of a chunk around the sentence that matches best, with the places of the matched words."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from math import fsum
from typing import TYPE_CHECKING

from dari.knowledge.chunk.sentences import sentence_at
from dari.knowledge.index.analyzer import composed, is_plain, letters_of, lower_letters, terms_of_word, word_spans
from dari.knowledge.search.request import PassageSnippet

if TYPE_CHECKING:
    from collections.abc import Mapping

Span = tuple[int, int, tuple[str, ...]]
"""Start and end of a matched word, and the query's terms in it."""

MIN_SNIPPET_CHARS = 20
_CUT = "…"
# Begins with one set of letters, so that the search for the next one runs over the text without trying to match.
_STOP = re.compile(r"[.!?。！？…\n](?:(?<=\n)\n*+|(?<!\n)\S{0,3}\s+)")


class Match:
    """Where a chunk has words of the query."""

    __slots__ = ("spans", "terms", "text")

    def __init__(self, text: str, spans: list[Span], terms: tuple[str, ...]) -> None:
        self.text = text
        self.spans = spans
        self.terms = terms


class _Pieces(dict[str, tuple[tuple[str, ...], tuple[Span, ...]]]):
    """The query's terms in a piece of text, and the places in it to mark; a piece is looked at once, and the words of
    the query come again in every hit."""

    def __init__(self, idf: Mapping[str, float]) -> None:
        super().__init__()
        self._idf = idf

    def __missing__(self, piece: str) -> tuple[tuple[str, ...], tuple[Span, ...]]:
        idf = self._idf
        found: list[str] = []
        spans: list[Span] = []
        for place in word_spans(piece):
            word = place[0]
            if terms := tuple([term for term in terms_of_word(word) if term in idf]):
                found += terms
                if span := self._span_in_word(word, place.start(), terms):
                    spans.append((*span, terms))
        known = self[piece] = tuple(found), tuple(spans)
        return known

    def _span_in_word(self, word: str, start: int, terms: tuple[str, ...]) -> tuple[int, int] | None:
        """The matched part: an eojeol without its particle, or the bigrams that match; of other words, all of it."""
        if not "가" <= word[0] <= "힣":
            return start, start + len(word)
        if terms[0].startswith("="):
            return start, start + len(terms[0]) - 1
        if len(terms) == 1 and f"={terms[0]}" not in self._idf:
            return None  # one bigram of a longer word in common: 데이터베이스 and 이스라엘
        places = [word.find(term) for term in terms]
        return start + min(places), start + max(places) + 2


class Highlighter:
    """Finds the words of one query in many chunks."""

    def __init__(self, idf: Mapping[str, float]) -> None:
        self._idf = idf
        self._pieces = _Pieces(idf)
        # A bigram of a Korean stem is looked for anyway: the stem stands nowhere else.
        self._letters = {letters_of(term) for term in idf if term[0] != "=" or term[1:3] not in idf}

    def match(self, text: str) -> Match:
        """The matched words of a chunk, in order, and the query's terms among them."""
        text = composed(text)
        pieces = self._pieces
        spans: list[Span] = []
        found: set[str] = set()
        for first, last in self._stretches(text):
            terms, places = pieces[text[first:last]]
            found.update(terms)
            spans += [(first + start, first + end, marked) for start, end, marked in places]
        return Match(text, spans, tuple(sorted(found)))

    def terms_in(self, text: str) -> frozenset[str]:
        """The query's terms that a text has."""
        text = composed(text)
        return frozenset([term for first, last in self._stretches(text) for term in self._pieces[text[first:last]][0]])

    def _stretches(self, text: str) -> list[tuple[int, int]]:
        """The pieces between blanks in which words of the query can be: to analyse all words of ten passages costs
        three times what the index needs to find them."""
        if not is_plain(text):
            return [(0, len(text))]
        lowered, size = lower_letters(text).replace("\n", " "), len(text)
        stretches: dict[int, int] = {}
        for letters in self._letters:
            place = lowered.find(letters)
            while place >= 0:
                first = lowered.rfind(" ", 0, place) + 1
                last = stretches.get(first, -1)
                if last < 0:
                    last = lowered.find(" ", place)
                    stretches[first] = last = last if last >= 0 else size
                place = lowered.find(letters, last)
        return sorted(stretches.items())

    def snippet(self, match: Match, chars: int) -> PassageSnippet:
        """At most `chars` characters around the sentence whose terms weigh most; without a match, the beginning."""
        text, chars = match.text, max(chars, MIN_SNIPPET_CHARS)
        first, last = self._best_sentence(match)
        sentence = text[first:last]
        start, end = _window(text, first, last, chars, match)
        head, tail = _CUT if start > 0 else "", _CUT if end < len(text) else ""
        shift = len(head) - start
        highlights = [(a + shift, b + shift) for a, b, _ in match.spans if start <= a and b <= end]
        return PassageSnippet(head + text[start:end] + tail, not (head or tail), tuple(highlights), sentence)

    def _best_sentence(self, match: Match) -> tuple[int, int]:
        """Which of the pieces between full stops weighs most; then the sentence it belongs to, by the rules."""
        text, spans = match.text, match.spans
        ends = [place.end() for place in _STOP.finditer(text)]
        ends.append(len(text))
        best, best_weight, peak, place = 0, 0.0, 0, 0
        while place < len(spans):  # pieces without a match weigh nothing
            begin = spans[place][0]
            index = bisect_right(ends, begin)
            seen: set[str] = set()
            while place < len(spans) and spans[place][0] < ends[index]:
                seen.update(spans[place][2])
                place += 1
            weight = fsum(map(self._idf.__getitem__, seen))  # the same sum in any order of the set
            if weight > best_weight:
                best, best_weight, peak = index, weight, begin
        start, end = ends[best - 2] if best > 1 else 0, ends[min(best + 1, len(ends) - 1)]
        first, last = sentence_at(text[start:end], peak - start)
        return start + first, start + last


def _window(text: str, first: int, last: int, chars: int, match: Match) -> tuple[int, int]:
    if len(text) <= chars:
        return 0, len(text)
    if last - first > chars:
        return _densest(text, first, last, chars, match)
    # Sentences after the best one explain it more often than those before: they get what is left first.
    end = _end_of_word(text, first + chars - 1) if first + chars < len(text) else len(text)
    start = first
    if end == len(text):
        start = _start_of_word(text, max(end - chars + 1, 0), first)
    return start, end


def _densest(text: str, first: int, last: int, chars: int, match: Match) -> tuple[int, int]:
    """The piece of one long sentence in which the most matched words stand."""
    inside = [(a, b) for a, b, _ in match.spans if first <= a and b <= last]
    best, best_count = first, -1
    for index, (begin, _) in enumerate(inside):
        count = sum(1 for _, end in inside[index:] if end - begin <= chars - 2)
        if count > best_count:
            best, best_count = begin, count
    start = _start_of_word(text, max(best - chars // 5, first), best)
    return start, min(_end_of_word(text, min(start + chars - 2, len(text))), len(text))


def _start_of_word(text: str, place: int, latest: int) -> int:
    """The beginning of a word at or after `place`, `latest` at the latest."""
    if place <= 0:
        return 0
    if not text[place - 1].isspace():
        while place < latest and not text[place].isspace():
            place += 1
    while place < latest and (text[place].isspace() or _continues(text[place])):
        place += 1
    return place


def _end_of_word(text: str, place: int) -> int:
    """The end of a word at or before `place`; inside a run without spaces, where no character is torn."""
    if place >= len(text):
        return len(text)
    back = place
    while back > place - 30 and back > 0 and not text[back].isspace():
        back -= 1
    if back > 0 and text[back].isspace():
        return len(text[:back].rstrip()) or place
    while place > 1 and (_continues(text[place]) or text[place - 1] == "\u200d"):
        place -= 1
    return place


def _continues(letter: str) -> bool:
    """Does it belong to the character before it: an accent, a variation selector, a joiner?"""
    return letter == "\u200d" or "\ufe00" <= letter <= "\ufe0f" or unicodedata.combining(letter) != 0
