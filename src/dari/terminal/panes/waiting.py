"""Waiting for text: told by the output itself as it comes, never by looking again and again."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from dari.errors import InvalidInput
from dari.terminal.panes.output import to_stream

PATTERN_CHARS = 1024
SEARCH_S = 0.25
KEPT_BYTES = 1 << 20
_WINDOW_CHARS = 64 * 1024
QUIET_S = 0.1


@dataclass(frozen=True, slots=True)
class Found:
    """`line` is where the match is, `position` the output position just after it, to go on waiting from."""

    is_found: bool
    match: str
    line: str
    position: int
    groups: tuple[str | None, ...] = ()


class Matcher(Protocol):
    def search(self, text: str) -> tuple[int, int, tuple[str | None, ...]] | None: ...


class RecentOutput:
    """The last megabyte of what a pane printed, so that one can wait for what came since a moment ago."""

    def __init__(self) -> None:
        self._chunks: deque[tuple[int, bytes]] = deque()
        self._size = 0

    def add(self, start: int, data: bytes) -> None:
        self._chunks.append((start, data))
        self._size += len(data)
        while self._size - len(self._chunks[0][1]) > KEPT_BYTES:
            self._size -= len(self._chunks.popleft()[1])

    def since(self, position: int) -> list[tuple[int, bytes]]:
        """Pieces with their positions; there are gaps where a command line was typed."""
        kept = [(start, data) for start, data in self._chunks if start + len(data) > position]
        return [(max(start, position), data[max(0, position - start) :]) for start, data in kept]


Match = tuple[str, str, tuple[str | None, ...]]  # the match, its line, its groups


class TextWaiter:
    """Sees output piece by piece."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._rest = b""
        self._text = ""

    def feed(self, data: bytes) -> tuple[Match, int] | None:
        """The match as soon as there is one, and how much of `data` is needed for it."""
        found, rest, text = self._try(data)
        if found is None:
            self._rest, self._text = rest, text[-_WINDOW_CHARS:]
            return None
        enough, short = len(data), 0
        while enough - short > 1:
            middle = (enough + short) // 2
            earlier = self._try(data[:middle])[0]
            if earlier is None or earlier[0] != found[0]:
                short = middle
            else:
                enough = middle
        return found, enough

    def _try(self, data: bytes) -> tuple[Match | None, bytes, str]:
        data = self._rest + data
        cut = _unfinished(data)
        text = self._text + to_stream(data[:cut])
        return _search(self._matcher, text), data[cut:], text


class ScreenWaiter:
    """Looks at the rows of a full-screen program that are not what they were when the waiting began."""

    def __init__(self, matcher: Matcher, before: list[str]) -> None:
        self._matcher = matcher
        self._before = before

    def look(self, rows: list[str]) -> Match | None:
        changed = [row for number, row in enumerate(rows) if self._before[number : number + 1] != [row]]
        return _search(self._matcher, "\n".join(changed))


def _search(matcher: Matcher, text: str) -> Match | None:
    found = matcher.search(text)
    if found is None:
        return None
    start, end, groups = found
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", max(end, line_start))
    return text[start:end], text[line_start : line_end if line_end >= 0 else None], groups


def make_matcher(pattern: str, is_regex: bool) -> Matcher:
    if not pattern:
        raise InvalidInput("there is nothing to wait for", "give a pattern")
    if len(pattern) > PATTERN_CHARS:
        raise InvalidInput(f"a pattern of {len(pattern)} characters", f"give at most {PATTERN_CHARS}")
    return _Regex(pattern) if is_regex else _Plain(pattern)


class _Plain:
    def __init__(self, wanted: str) -> None:
        self._wanted = wanted.replace("\r\n", "\n")

    def search(self, text: str) -> tuple[int, int, tuple[str | None, ...]] | None:
        at = text.find(self._wanted)
        return None if at < 0 else (at, at + len(self._wanted), ())


class _Regex:
    """With a limit on time: a pattern can be such that its search would not end today."""

    def __init__(self, pattern: str) -> None:
        import regex

        try:
            self._pattern = regex.compile(pattern, regex.MULTILINE)
        except regex.error as error:
            raise InvalidInput(
                f"{pattern!r} is no regular expression: {error}", "escape it, or wait for text"
            ) from error

    def search(self, text: str) -> tuple[int, int, tuple[str | None, ...]] | None:
        try:
            found = self._pattern.search(text, timeout=SEARCH_S)
        except TimeoutError:
            raise InvalidInput(
                f"the search for {self._pattern.pattern!r} took more than {SEARCH_S} s",
                "use a pattern without repetition inside repetition",
            ) from None
        return None if found is None else (found.start(), found.end(), found.groups())


def _unfinished(data: bytes) -> int:
    """Where a sequence or character begins whose end has not come yet."""
    escape = data.rfind(b"\x1b")
    cut = len(data)
    if escape >= 0 and len(data) - escape < 4096:
        tail = data[escape:]
        if re.fullmatch(rb"\x1b(?:\[[0-?]*[ -/]*|[\]P_^X][^\x07\x1b]*|[ -/]*)?", tail):
            cut = escape
    for back in range(1, min(4, cut + 1)):
        byte = data[cut - back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            if back < needed:
                cut -= back
            break
        if byte < 0x80:
            break
    return cut
