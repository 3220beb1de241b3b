"""The waits for output in one pane."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from dari.errors import Conflict, InvalidInput, TimedOut
from dari.terminal.engine.engine import Engine
from dari.terminal.panes.echo_filter import EchoFilter, Teller
from dari.terminal.panes.events import Exited, Fanout, PaneEvent
from dari.terminal.panes.output_text import to_stream
from dari.text.regex import GuardedRegex

MAX_PATTERN_CHARS = 1024
MAX_SEARCH_S = 0.25
MAX_RECENT_BYTES = 1 << 20
_JOINED_BYTES = 64 * 1024
_WINDOW_CHARS = 64 * 1024
QUIET_S = 0.1


@dataclass(frozen=True, slots=True)
class ExpectResult:
    """`line` is where the match is, `position` the output position just after it, to go on waiting from."""

    is_found: bool
    match: str
    line: str
    position: int
    groups: tuple[str | None, ...] = ()


class TextMatcher(Protocol):
    def search(self, text: str) -> tuple[int, int, tuple[str | None, ...]] | None: ...


class RecentOutput:
    """The last megabyte of what a pane printed, so that one can wait for what came since a moment ago.

    Pieces that follow each other are joined: a wait searches once for each that is kept, and a program may print a
    megabyte byte by byte.
    """

    def __init__(self) -> None:
        self._chunks: deque[tuple[int, bytearray]] = deque()
        self._size = 0

    def add(self, start: int, data: bytes) -> None:
        last_start, last = self._chunks[-1] if self._chunks else (0, bytearray())
        if self._chunks and last_start + len(last) == start and len(last) < _JOINED_BYTES:
            last += data
        else:
            self._chunks.append((start, bytearray(data)))
        self._size += len(data)
        while self._size - len(self._chunks[0][1]) > MAX_RECENT_BYTES:
            self._size -= len(self._chunks.popleft()[1])

    def since(self, position: int) -> list[tuple[int, bytes]]:
        """Pieces with their positions; there are gaps where a command line was typed."""
        kept = [(start, data) for start, data in self._chunks if start + len(data) > position]
        return [(max(start, position), bytes(data[max(0, position - start) :])) for start, data in kept]


Match = tuple[str, str, tuple[str | None, ...]]  # the match, its line, its groups


class TextWaiter:
    """Sees output piece by piece."""

    def __init__(self, matcher: TextMatcher) -> None:
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

    def __init__(self, matcher: TextMatcher, before: list[str]) -> None:
        self._matcher = matcher
        self._before = before

    def look(self, rows: list[str]) -> Match | None:
        changed = [row for number, row in enumerate(rows) if self._before[number : number + 1] != [row]]
        return _search(self._matcher, "\n".join(changed))


def _search(matcher: TextMatcher, text: str) -> Match | None:
    found = matcher.search(text)
    if found is None:
        return None
    start, end, groups = found
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", max(end, line_start))
    return text[start:end], text[line_start : line_end if line_end >= 0 else None], groups


def make_matcher(pattern: str, is_regex: bool) -> TextMatcher:
    if not pattern:
        raise InvalidInput("the pattern is empty", "give a pattern")
    if len(pattern) > MAX_PATTERN_CHARS:
        raise InvalidInput(f"a pattern of {len(pattern)} characters", f"give at most {MAX_PATTERN_CHARS}")
    return _Regex(pattern) if is_regex else _Plain(pattern)


class _Plain:
    def __init__(self, wanted: str) -> None:
        self._wanted = wanted.replace("\r\n", "\n")

    def search(self, text: str) -> tuple[int, int, tuple[str | None, ...]] | None:
        at = text.find(self._wanted)
        return None if at < 0 else (at, at + len(self._wanted), ())


class _Regex:
    def __init__(self, pattern: str) -> None:
        self._regex = GuardedRegex(pattern, multiline=True, search_s=MAX_SEARCH_S)

    def search(self, text: str) -> tuple[int, int, tuple[str | None, ...]] | None:
        found = self._regex.search(text)
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


MAX_SCREENS = 16


class ExpectingPane(Protocol):
    """What a wait looks for."""

    id: str
    engine: Engine
    events: Fanout[PaneEvent]
    exit_code: int | None


class OutputExpect:
    """Gets everything that is shown and typed; keeps the end of it for waits that look back."""

    def __init__(self, is_edited: Callable[[], bool]) -> None:
        self._is_edited = is_edited
        self._recent = RecentOutput()
        self._echoes = EchoFilter()
        self._waiting: dict[object, Callable[[int, bytes], None]] = {}
        self._screens: OrderedDict[int, list[str]] = OrderedDict()

    def mark(self, position: int, engine: Engine) -> None:
        """Somebody may wait from here: what a full-screen program shows now is what it showed then."""
        if engine.is_alternate:
            self._screens[position] = _rows(engine)
            self._screens.move_to_end(position)
            if len(self._screens) > MAX_SCREENS:
                self._screens.popitem(last=False)

    def shown(self, start: int, data: bytes) -> None:
        self._recent.add(start, data)
        echoes = self._echoes
        if echoes.is_idle:
            echoes.passed(data)
            self._tell(start, data)
            return
        for at, piece in echoes.sift(start, data, self._is_edited()):
            self._tell(at, piece)
        if echoes.is_holding:
            asyncio.get_running_loop().call_later(QUIET_S, self._release, start + len(data))

    def _tell(self, start: int, data: bytes) -> None:
        for check in list(self._waiting.values()):
            check(start, data)

    def _release(self, end: int) -> None:
        if self._echoes.held_end == end:
            for at, piece in self._echoes.release():
                self._tell(at, piece)

    def since(self, position: int) -> list[tuple[int, bytes]]:
        """Everything that was shown, echoes too."""
        return self._recent.since(position)

    def typed(self, position: int, data: bytes, teller: Teller) -> None:
        self._echoes.typed(position, data, teller)

    def prompted(self) -> None:
        self._echoes.prompted()

    async def wait(
        self, pane: ExpectingPane, pattern: str, *, is_regex: bool, timeout_s: float, since: int | None
    ) -> ExpectResult:
        """See `Pane.wait_for`."""
        engine = pane.engine
        matcher = make_matcher(pattern, is_regex)
        start = engine.consumed if since is None else since
        text = TextWaiter(matcher)
        screen = ScreenWaiter(matcher, self._rows_at(engine, since))
        outcome: asyncio.Future[ExpectResult] = asyncio.get_running_loop().create_future()

        def tell(found: Match, position: int) -> None:
            match, line, groups = found
            outcome.set_result(ExpectResult(True, match, line, position, groups))

        def check(at: int, data: bytes) -> None:
            if outcome.done():
                return
            try:
                if found := text.feed(data):
                    tell(found[0], at + found[1])
                elif engine.is_alternate and (seen := screen.look(_rows(engine))):
                    tell(seen, at + len(data))
            except Exception as error:  # this wait's alone: the pane goes on, and so do the waits of others
                outcome.set_exception(error)

        def give_up(event: PaneEvent) -> None:
            if isinstance(event, Exited) and not outcome.done():
                outcome.set_exception(
                    Conflict(
                        f"the program of pane {pane.id} ended ({event.code}) before {pattern!r} came", "read its screen"
                    )
                )

        if since is not None:
            for at, data in self._recent.since(start):
                for place, piece in self._echoes.without(at, data):
                    check(place, piece)
        if not outcome.done() and pane.exit_code is not None:
            raise Conflict(f"the program of pane {pane.id} has ended ({pane.exit_code})", "read its screen")
        self._waiting[outcome] = check
        stop = pane.events.subscribe(give_up)
        try:
            async with asyncio.timeout(timeout_s):
                return await outcome
        except TimeoutError:
            raise TimedOut(
                f"{pattern!r} did not come in {timeout_s:g} s", "read the screen, or allow more time"
            ) from None
        finally:
            del self._waiting[outcome]
            stop()

    def _rows_at(self, engine: Engine, since: int | None) -> list[str]:
        """What a full-screen program showed when the waiting began; nothing where that is not known."""
        if not engine.is_alternate:
            return []
        if since is None or since >= engine.consumed:
            return _rows(engine)
        return self._screens.get(since, [])


def _rows(engine: Engine) -> list[str]:
    return engine.text(0, engine.rows).split("\n")
