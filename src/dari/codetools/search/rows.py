"""The rows of a page: lines cut around their matches, and no more of them than the caller pays for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import UNSET, Struct, UnsetType

from dari.codetools.search.cursor import SearchPosition
from dari.codetools.search.query import path_key

MAX_LINE_CHARS = 400
MAX_CONTEXT_CHARS = 200
MAX_SEEN_SPANS = 100
MAX_SPANS = 20
"""Of one line that are shown; a minified file has thousands of matches on its only line."""
BYTES_PER_TOKEN = 4
_BEFORE_MATCH_CHARS = 100
_UNDECODED = re.compile("[\udc80-\udcff]")
Span = tuple[int, int]
MetaVariables = dict[str, str | list[str]]


class SearchMatch(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One line with a match (of mode ast: one match). Lines and columns count from 1, columns in characters."""

    path: str
    line: int
    col: int
    end_col: int
    """The column after the match."""
    text: str
    """The line; of mode ast the match itself. … stands where a long one was cut."""
    more: list[Span] = []
    """[col, endCol] of further matches on the line."""
    text_col: int = 1
    """The column of the first character of text after its …"""
    end_line: int | UnsetType = UNSET
    """Where a match of several lines ends."""
    before: list[str] = []
    """Context lines that no row before this one has."""
    after: list[str] = []
    meta: MetaVariables = {}
    """What metavariables of the pattern stand for."""


class FoundLine(Struct):
    """A line with its matches as an engine found them; `spans` are characters from 0."""

    line: int
    text: str
    spans: list[Span]
    text_start: int = 0
    before: list[str] = []
    after: list[str] = []
    evidence: list[tuple[int, bytes]] = []
    """Where in the file which bytes must stand, for all that is shown of it."""
    end_line: int = 0
    meta: MetaVariables = {}


def cut_line(line: int, text: str, spans: Sequence[Span]) -> FoundLine:
    """The line around its first match. Spans are those that can be seen in it, the first one always."""
    first = spans[0] if spans else (0, 0)
    start = 0
    shown = text
    if len(text) > MAX_LINE_CHARS:
        start = max(0, min(first[0] - _BEFORE_MATCH_CHARS, len(text) - MAX_LINE_CHARS))
        end = start + MAX_LINE_CHARS
        shown = f"{'…' * (start > 0)}{text[start:end]}{'…' * (end < len(text))}"
        spans = [span for span in spans if span == first or span[1] <= end]
    others = [span for span in spans[1:] if span[1] > span[0]]
    return FoundLine(line, readable(shown), [first, *others[:MAX_SPANS]], start)


def cut_context(text: str) -> str:
    return readable(text if len(text) <= MAX_CONTEXT_CHARS else f"{text[:MAX_CONTEXT_CHARS]}…")


def readable(text: str) -> str:
    """Bytes that are not UTF-8, each as one U+FFFD, so that columns stay what they are."""
    return text if text.isascii() else _UNDECODED.sub("\ufffd", text)


def show_path(path: str) -> str:
    """JSON carries no lone surrogates: bytes of a name that are not UTF-8 are escaped."""
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "backslashreplace")


class MatchPage(Struct):
    matches: list[SearchMatch]
    last: SearchPosition | None = None
    """Where the next page begins; None when this is the last."""


def fill_page(
    files: Iterable[tuple[str, str, Sequence[FoundLine]]], max_matches: int, max_tokens: int, is_common: bool
) -> MatchPage:
    """`files` are (path, its name for the caller, lines), in order. At least one match is on a page."""
    page = MatchPage([])
    left_bytes = max_tokens * BYTES_PER_TOKEN
    last: SearchPosition | None = None
    for path, name, lines in files:
        key = path_key(path)
        for found in lines:
            match = _to_match(name, found)
            left_bytes -= len(msgspec.json.encode(match)) + 1
            if page.matches and (len(page.matches) == max_matches or left_bytes < 0):
                page.last = last
                return page
            page.matches.append(match)
            last = SearchPosition(key, found.line, found.spans[0][0] + 1, is_common)
    return page


def _to_match(name: str, found: FoundLine) -> SearchMatch:
    (start, end), *others = found.spans
    return SearchMatch(
        name,
        found.line,
        start + 1,
        end + 1,
        found.text,
        [(one + 1, other + 1) for one, other in others],
        found.text_start + 1,
        found.end_line or UNSET,
        found.before,
        found.after,
        found.meta,
    )
