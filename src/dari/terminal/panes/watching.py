"""Everybody who waits for something to be shown in one pane."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from dari.errors import Conflict, InvalidInput, TimedOut
from dari.terminal.engine.engine import Engine
from dari.terminal.panes.echoes import Echoes, Teller
from dari.terminal.panes.events import Exited, Fanout, PaneEvent
from dari.terminal.panes.waiting import QUIET_S, Found, Match, RecentOutput, ScreenWaiter, TextWaiter, make_matcher

MOST_SCREENS = 16


class Watched(Protocol):
    """What is asked of a pane."""

    id: str
    engine: Engine
    events: Fanout[PaneEvent]
    exit_code: int | None


class Watch:
    """Told of everything that is shown and typed; keeps the last of it for those who ask about a moment ago."""

    def __init__(self, is_edited: Callable[[], bool]) -> None:
        self._is_edited = is_edited
        self._recent = RecentOutput()
        self._echoes = Echoes()
        self._waiting: dict[object, Callable[[int, bytes], None]] = {}
        self._screens: OrderedDict[int, list[str]] = OrderedDict()

    def mark(self, position: int, engine: Engine) -> None:
        """Somebody may wait from here: what a full-screen program shows now is what it showed then."""
        if engine.is_alternate:
            self._screens[position] = _rows(engine)
            self._screens.move_to_end(position)
            if len(self._screens) > MOST_SCREENS:
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

    async def wait(self, pane: Watched, pattern: str, *, is_regex: bool, timeout_s: float, since: int | None) -> Found:
        """See `Pane.wait_for`."""
        engine = pane.engine
        matcher = make_matcher(pattern, is_regex)
        start = engine.consumed if since is None else since
        text = TextWaiter(matcher)
        screen = ScreenWaiter(matcher, self._rows_at(engine, since))
        told: asyncio.Future[Found] = asyncio.get_running_loop().create_future()

        def tell(found: Match, position: int) -> None:
            match, line, groups = found
            told.set_result(Found(True, match, line, position, groups))

        def check(at: int, data: bytes) -> None:
            if told.done():
                return
            try:
                if found := text.feed(data):
                    tell(found[0], at + found[1])
                elif engine.is_alternate and (seen := screen.look(_rows(engine))):
                    tell(seen, at + len(data))
            except InvalidInput as error:
                told.set_exception(error)

        def give_up(event: PaneEvent) -> None:
            if isinstance(event, Exited) and not told.done():
                told.set_exception(
                    Conflict(
                        f"the program of pane {pane.id} ended ({event.code}) before {pattern!r} came", "read its screen"
                    )
                )

        if since is not None:
            for at, data in self._recent.since(start):
                for place, piece in self._echoes.without(at, data):
                    check(place, piece)
        if not told.done() and pane.exit_code is not None:
            raise Conflict(f"the program of pane {pane.id} has ended ({pane.exit_code})", "read its screen")
        self._waiting[told] = check
        stop = pane.events.subscribe(give_up)
        try:
            async with asyncio.timeout(timeout_s):
                return await told
        except TimeoutError:
            raise TimedOut(
                f"{pattern!r} did not come in {timeout_s:g} s", "read the screen, or allow more time"
            ) from None
        finally:
            del self._waiting[told]
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
