"""Sentences of Korean and English text, as spans: what is cited in an answer, and where pages are cut.

A line of a list, a table, a heading or code is a sentence of its own; other lines run on, since people wrap them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINE = re.compile(r"[^\n]*\n?")
# Possessive, and never begun in the middle of a run: a line of a million dots or blanks takes linear time.
_ITEM = re.compile(r"\s*+(?:[-*+•·▪◦‣–]|\(?\d{1,3}[.)]|[가-하][.)]|[①-⑳])\s+\S")
_OWN_LINE = re.compile(r"\s*+(?:\||#{1,6}\s|>\s*\||={3,}|-{3,}|[^\n\t]+\t)")
_FENCE = re.compile(r"\s{0,3}(```|~~~)")
_CLOSERS = "\"'”’»)\\]」』】〉》*_`"
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
    spans: list[tuple[int, int]] = []
    for start, end, is_prose in _passages(text):
        for first, last in _split(text, start, end) if is_prose else ((start, end),):
            piece = text[first:last]
            stripped = piece.strip()
            if stripped and _WORD.search(stripped):
                at = first + piece.index(stripped[0]) if piece[0].isspace() else first
                spans.append((at, at + len(stripped)))
    return spans


def _passages(text: str) -> Iterator[tuple[int, int, bool]]:
    """Stretches that no sentence crosses, and whether sentences are to be looked for in them."""
    begun, fence = -1, ""
    for line in _LINE.finditer(text):
        start, end = line.span()
        content = line[0]
        if not content:
            break
        mark = _FENCE.match(content)
        if fence or mark or not content.strip() or _OWN_LINE.match(content):
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


def _split(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    first = start
    for found in _END.finditer(text, start, end):
        if _is_end(text, first, found, end):
            yield first, found.end()
            first = found.end()
    if first < end:
        yield first, end


def _is_end(text: str, first: int, found: re.Match[str], end: int) -> bool:
    mark = found[0]
    after = text[found.end() : found.end() + 8].lstrip()[:1] if found.end() < end else ""
    if mark[0] != ".":
        # `"Really?" he asked` goes on; so does `(Why?) because …`.
        return not (len(mark.rstrip(".!?…")) != len(mark) or mark[-1] not in ".!?…。！？") or not after.islower()
    if mark.startswith(".."):
        return not after.islower()
    before = _WORD_BEFORE.search(text[max(first, found.start() - _MAX_WORD_CHARS) : found.start()])
    word = before[0] if before else ""
    if word.isdigit():
        # `1. item` and the dates `2024. 3. 15.`; a year at the end of a sentence is an end.
        before_it = text[max(first, found.start() - len(word) - 4) : found.start() - len(word)].rstrip()
        is_date = before_it.endswith(".") and before_it[-2:-1].isdigit()
        return not (after.isdigit() or is_date or not text[first : found.start() - len(word)].strip())
    lower = word.lower()
    if lower in _NEVER_LAST or (len(word) == 1 and word.isupper()):
        return not after
    if lower in _SELDOM_LAST or "." in word:
        return not (after.islower() or after.isdigit())
    return True
