"""Sentences of Korean and English text, as spans: what is cited in an answer, and where pages are cut.

A line of a list, a table, a heading or code is a sentence of its own; other lines run on, since people wrap them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINE = re.compile(r"[^\n]*\n?")
# Possessive, and never begun in the middle of a run: a line of a million dots or blanks takes linear time.
_ITEM = re.compile(r"\s*+(?:[-*+•·▪◦‣–]|\(?\d{1,3}[.)]|[가-하][.)]|[①-⑳])\s+\S")
_OWN_LINE = re.compile(r"\s*+(?:\||#{1,6}\s|>\s*\||={3,}|-{3,})")
_TAB_INSIDE = re.compile(r"\s*+[^\n\t]+\t")
_FENCE = re.compile(r"\s{0,3}(```|~~~)")
_CLOSERS = "\"'”’»)\\]」』】〉》*_`"
_MARK = re.compile("[.!?…]++|[。！？]")
_END = re.compile(
    rf"(?<![.!?…])[.!?…]++[{_CLOSERS}]*+(?=\s|$)"  # English, and Korean as it is typed
    rf"|[。！？]++[{_CLOSERS}]*+"  # full-width marks need no space after them
    r"|(?<=[다요죠까음임함됨])[.!?]++(?=[가-힣])"  # Korean typed without the space
)
_WORD = re.compile(r"\w")
_WORD_BEFORE = re.compile(r"[^\s(\[\"'“‘「『]*$")
_MAX_WORD_CHARS = 24
_NEVER_LAST_WORDS = (
    "mr mrs ms dr prof sr jr st gen rep sen hon e.g i.e eg ie vs cf fig figs no nos vol vols pp p ch sec eq eqs ref "
    "refs approx al dept est ver ca resp viz jan feb mar apr jun jul aug sep sept oct nov dec mt"
)
_NEVER_LAST = frozenset(_NEVER_LAST_WORDS.split())
_SELDOM_LAST_WORDS = "etc inc ltd co corp u.s u.k a.m p.m ph.d b.c a.d"
_SELDOM_LAST = frozenset(_SELDOM_LAST_WORDS.split())


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of every sentence, in order, without the white space around it. Each has a word in it."""
    return [*_sentences(text)]


def sentence_at(text: str, place: int) -> tuple[int, int]:
    """The sentence around a place; the first one where none is there, and nothing of a text without a word."""
    first = None
    for start, end in _sentences(text):
        if start <= place < end:
            return start, end
        first = first or (start, end)
    return first or (0, 0)


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    for start, end, is_prose in _passages(text):
        for first, last in _split(text, start, end) if is_prose else ((start, end),):
            piece = text[first:last]
            stripped = piece.strip()
            if stripped and _WORD.search(stripped):
                at = first + piece.index(stripped[0]) if piece[0].isspace() else first
                yield at, at + len(stripped)


def _passages(text: str) -> Iterator[tuple[int, int, bool]]:
    """Stretches that no sentence crosses, and whether sentences are to be looked for in them."""
    begun, fence = -1, ""
    for line in _LINE.finditer(text):
        start, end = line.span()
        content = line[0]
        if not content:
            break
        mark = _FENCE.match(content)
        if fence or mark or content.isspace() or _is_own_line(content):
            if begun >= 0:
                yield begun, start, True
                begun = -1
            if mark and (not fence or mark[1] == fence):
                fence = "" if fence else mark[1]
            yield start, end, False
        elif begun < 0:
            begun = start
        elif _ITEM.match(content):
            yield begun, start, True
            begun = start
    if begun >= 0:
        yield begun, len(text), True


def _is_own_line(line: str) -> bool:
    return _OWN_LINE.match(line) is not None or ("\t" in line and _TAB_INSIDE.match(line) is not None)


def _split(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    first = place = start
    # To look for marks first is four times faster than to try the whole pattern at every letter.
    while mark := _MARK.search(text, place, end):
        at, place = mark.span()
        if place < end and not text[place].isspace():
            found = _END.match(text, at, end)
            if found is None:
                continue
            place = found.end()
        if _is_end(text, first, at, place, end):
            yield first, place
            first = place
    if first < end:
        yield first, end


def _is_end(text: str, first: int, at: int, past: int, end: int) -> bool:
    """Does a sentence that began at `first` end with the mark from `at` to `past`?"""
    mark = text[at:past]
    word = _word_before(text, first, at) if mark[0] == "." else ""
    lower = word.lower()
    if mark == "." and lower.isalpha() and len(word) > 1 and lower not in _NEVER_LAST and lower not in _SELDOM_LAST:
        return True  # most ends are like this
    after = text[past : past + 8].lstrip()[:1] if past < end else ""
    if mark[0] != ".":
        # `"Really?" he asked` goes on; so does `(Why?) because …`.
        return not (len(mark.rstrip(".!?…")) != len(mark) or mark[-1] not in ".!?…。！？") or not after.islower()
    if mark.startswith(".."):
        return not after.islower()
    if word.isdigit():
        # `1. item` and the dates `2024. 3. 15.`; a year at the end of a sentence is an end.
        before_it = text[max(first, at - len(word) - 4) : at - len(word)].rstrip()
        is_date = before_it.endswith(".") and before_it[-2:-1].isdigit()
        return not (after.isdigit() or is_date or not text[first : at - len(word)].strip())
    if lower in _NEVER_LAST or (len(word) == 1 and word.isupper()):
        return not after
    if lower in _SELDOM_LAST or "." in word:
        return not (after.islower() or after.isdigit())
    return True


def _word_before(text: str, first: int, last: int) -> str:
    """What stands before `last` without a blank, a bracket or a quotation mark in it; a line may end between them."""
    piece = text[max(first, last - _MAX_WORD_CHARS) : last].removesuffix("\n")
    if not piece or piece[-1].isspace():
        return ""
    word = piece.split()[-1]
    if word.isalnum():
        return word
    found = _WORD_BEFORE.search(word)
    return found[0] if found else ""
