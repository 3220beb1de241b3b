"""Everybody who waits for something to be shown in one pane."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from dari.errors import Conflict, InvalidInput, TimedOut
from dari.terminal.engine.engine import Engine
from dari.terminal.panes.events import Exited, Fanout, PaneEvent
from dari.terminal.panes.waiting import (
    QUIET_S,
    Echoes,
    Found,
    Match,
    RecentOutput,
    ScreenWaiter,
    TextWaiter,
    make_matcher,
)


class Watched(Protocol):
    """What is asked of a pane."""

    id: str
    engine: Engine
    events: Fanout[PaneEvent]
    exit_code: int | None


class Watch:
    """Told of everything that is shown and typed; keeps the last of it for those who ask about a moment ago."""

    def __init__(self) -> None:
        self._recent = RecentOutput()
        self._echoes = Echoes()
        self._waiting: dict[object, Callable[[int, bytes], None]] = {}

    def shown(self, start: int, data: bytes) -> None:
        self._recent.add(start, data)
        for check in list(self._waiting.values()):
            check(start, data)

    def since(self, position: int) -> list[tuple[int, bytes]]:
        return self._recent.since(position)

    def typed(self, position: int, data: bytes) -> None:
        self._echoes.add(position, data)

    async def wait(self, pane: Watched, pattern: str, *, is_regex: bool, timeout_s: float, since: int | None) -> Found:
        """See `Pane.wait_for`."""
        engine = pane.engine
        matcher = make_matcher(pattern, is_regex)
        start = engine.consumed if since is None else since
        text = TextWaiter(matcher, self._echoes.awaited(start, self._recent))
        screen = ScreenWaiter(matcher, _rows(engine) if engine.is_alternate else [])
        loop = asyncio.get_running_loop()
        told: asyncio.Future[Found] = loop.create_future()

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
                elif text.is_hiding:
                    loop.call_later(QUIET_S, look_again, engine.consumed)
            except InvalidInput as error:
                told.set_exception(error)

        def look_again(at: int) -> None:
            if not told.done() and at == engine.consumed and (seen := text.look_again()):
                tell(seen, at)

        def give_up(event: PaneEvent) -> None:
            if isinstance(event, Exited) and not told.done():
                told.set_exception(
                    Conflict(
                        f"the program of pane {pane.id} ended ({event.code}) before {pattern!r} came", "read its screen"
                    )
                )

        if since is not None:
            for at, data in self._recent.since(start):
                check(at, data)
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


def _rows(engine: Engine) -> list[str]:
    return engine.text(0, engine.rows).split("\n")
