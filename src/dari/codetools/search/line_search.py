"""Search by lines without ripgrep: blocks of a file are decoded and searched, so memory does not grow with the file."""

from __future__ import annotations

import codecs
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any, Protocol

from dari.codetools.search.query import CodeQuery
from dari.codetools.search.rows import MAX_SEEN_SPANS, FoundLine, Span, cut_context, cut_line
from dari.codetools.search.rust_regex import compile_pattern, is_case_ignored
from dari.errors import TimedOut
from dari.files.inside import opened_file
from dari.text.regex import PatternTooSlow

BLOCK_BYTES = 64 << 10
"""As ripgrep reads: a NUL in a block makes the file binary from that block on."""
MAX_LINE_CHARS = 32 << 20
"""A longer line is searched in pieces of this length; a match across their border is not found."""
SEARCH_S = 5.0
"""Of one search in one block."""
_BARRIER = re.compile("[\r\udc80-\udcff]")
"""No match of ripgrep holds one: it is not text, or the end of a line."""


class LineMatcher(Protocol):
    """`find` looks for a line that may match, from a place on; `spans` are the matches of one line."""

    def find(self, text: str, start: int) -> int: ...

    def spans(self, line: str) -> list[Span]: ...


class StopSearch(Exception):
    """The caller has gone, or has enough."""


class SearchClock:
    """Asked between blocks: may the search go on?"""

    def __init__(self, limit_s: float) -> None:
        self.stop = Event()
        self._limit_s = limit_s
        self._ends_at = time.monotonic() + limit_s

    def check(self) -> None:
        if self.stop.is_set():
            raise StopSearch
        if time.monotonic() > self._ends_at:
            raise too_slow(self._limit_s)


def too_slow(limit_s: float) -> TimedOut:
    return TimedOut(f"the search took more than {limit_s:g} s", "narrow it: paths, globs, or a rarer pattern")


def make_matcher(query: CodeQuery) -> LineMatcher:
    is_literal = query.mode == "literal"
    ignores_case = is_case_ignored(query.pattern, query.case, is_literal=is_literal)
    compiled = compile_pattern(query.pattern, is_literal=is_literal, ignore_case=ignores_case)
    if is_literal and query.pattern and not ignores_case:
        return _Literal(query.pattern)
    return _Expression(query.pattern, compiled)


class _Literal:
    def __init__(self, text: str) -> None:
        self._text = text

    def find(self, text: str, start: int) -> int:
        return text.find(self._text, start)

    def spans(self, line: str) -> list[Span]:
        found: list[Span] = []
        at = line.find(self._text)
        while at >= 0 and len(found) < MAX_SEEN_SPANS:
            found.append((at, at + len(self._text)))
            at = line.find(self._text, at + len(self._text))
        return found


class _Expression:
    def __init__(self, pattern: str, compiled: Any) -> None:
        self._pattern = pattern
        self._compiled = compiled

    def find(self, text: str, start: int) -> int:
        try:
            found = self._compiled.search(text, start, timeout=SEARCH_S)
        except TimeoutError:
            raise self._too_slow() from None
        return found.start() if found is not None else -1

    def spans(self, line: str) -> list[Span]:
        spans: list[Span] = []
        try:
            for found in self._compiled.finditer(line, timeout=SEARCH_S):
                spans.append(found.span())
                if len(spans) == MAX_SEEN_SPANS:
                    break
            if _BARRIER.search(line):
                return self._between_barriers(line, spans)
        except TimeoutError:
            raise self._too_slow() from None
        return spans

    def _between_barriers(self, line: str, spans: list[Span]) -> list[Span]:
        """A match that holds a barrier is looked for again on both sides of it."""
        if not any(_BARRIER.search(line, *span) for span in spans):
            return spans
        found: list[Span] = []
        start = 0
        for end in [*(barrier.start() for barrier in _BARRIER.finditer(line)), len(line)]:
            found += (one.span() for one in self._compiled.finditer(line, start, end, timeout=SEARCH_S))
            start = end + 1
            if len(found) >= MAX_SEEN_SPANS:
                break
        return found[:MAX_SEEN_SPANS]

    def _too_slow(self) -> PatternTooSlow:
        return PatternTooSlow(
            f"the pattern {self._pattern!r} is too slow: a search took more than {SEARCH_S:g} s",
            "repeat nothing that is itself repeated: [ab]* for (a|b*)*; with ripgrep installed every pattern is fast",
        )


class Binary(Exception):
    """The file that was named is not text."""


def search_file(
    path: str,
    matcher: LineMatcher,
    clock: SearchClock,
    *,
    context: int = 0,
    since_line: int = 0,
    wanted: int = 1 << 60,
    is_named: bool = False,
) -> list[FoundLine]:
    """The first `wanted` lines with a match after `since_line`. A file that is gone, a link or unreadable has none."""
    try:
        with opened_file(Path(path)) as (file, real):
            if real != path or not stat.S_ISREG(os.fstat(file).st_mode):
                return []
            return list(_search(_read_blocks(file, clock, is_named), matcher, context, since_line, wanted))
    except (OSError, Binary):
        return []


def _read_blocks(file: int, clock: SearchClock, is_named: bool) -> Iterator[str]:
    """Text of whole lines, with their ends. Ends at the block with a NUL; `Binary` for a file that was named."""
    data = os.read(file, BLOCK_BYTES)
    decoder = _choose_decoder(data)
    rest = ""
    while data:
        clock.check()
        text = decoder(data, False)
        if "\0" in text:
            if is_named:
                raise Binary
            return
        head, newline, tail = text.rpartition("\n")
        if newline or len(rest) > MAX_LINE_CHARS:
            yield f"{rest}{head}{newline}"
            rest = tail
        else:
            rest += text
        data = os.read(file, BLOCK_BYTES)
    rest += decoder(b"", True)
    if rest:
        yield rest


def _choose_decoder(head: bytes) -> Callable[[bytes, bool], str]:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return codecs.getincrementaldecoder("utf-16")("replace").decode
    name = "utf-8-sig" if head.startswith(codecs.BOM_UTF8) else "utf-8"
    return codecs.getincrementaldecoder(name)("surrogateescape").decode


def _search(
    blocks: Iterator[str], matcher: LineMatcher, context: int, since_line: int, wanted: int
) -> Iterator[FoundLine]:
    """Context is kept apart from blocks: the last lines before a match, and what the last match still may have."""
    number = 0  # of the lines before this block
    count = 0
    last: FoundLine | None = None
    tail: list[str] = []  # the last `context` lines that no row has
    for block in blocks:
        at = 0
        done_to = 0
        if context:
            # Every line is looked at, since any may be context.
            for line in _split(block):
                number += 1
                text = line.removesuffix("\r")
                spans = matcher.spans(text) if number > since_line and count < wanted else []
                if spans:
                    if last is not None:
                        yield last
                    last = cut_line(number, text, spans)
                    last.before, last.after, tail = tail, [], []
                    count += 1
                elif last is not None and number <= last.line + context:
                    last.after.append(cut_context(text))
                elif count >= wanted:
                    if last is not None:
                        yield last
                    return
                else:
                    tail = [*tail, cut_context(text)][-context:]
            continue
        while at <= len(block) and (found := matcher.find(block, at)) >= 0:
            start = block.rfind("\n", 0, found) + 1
            end = block.find("\n", found)
            end = len(block) if end < 0 else end
            if start == len(block) and block.endswith("\n"):
                break  # behind the last line
            number += block.count("\n", done_to, start)
            done_to = start
            text = block[start:end].removesuffix("\r")
            if number >= since_line and (spans := matcher.spans(text)):
                line_found = cut_line(number + 1, text, spans)
                yield line_found
                count += 1
                if count >= wanted:
                    return
            at = end + 1
        number += block.count("\n", done_to)
    if last is not None:
        yield last


def _split(block: str) -> list[str]:
    lines = block.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines
