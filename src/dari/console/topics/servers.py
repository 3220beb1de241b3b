"""Topics `servers` (cards, their changes, memory and processor time) and `server-log:NAME` (one server's log)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from dari.bridge.upstream.journal import LogLine
from dari.bridge.usage import UsageSample
from dari.console.server_cards import ServerCard, find_listed, find_running, list_cards

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends
    from dari.console.live import TopicOptions

TICK_S = 2.0
"""How often files are looked at and processes measured while a page follows."""
MIN_PAUSE_S = 0.1
LOG_TICK_S = 0.5
MAX_LOG_LINES = 400
_NOTHING = object()


class ServersEvent(Struct, frozen=True, omit_defaults=True):
    """A snapshot has every server in order; a change only those that are different, and the names of those gone."""

    kind: Literal["snapshot", "change", "usage"]
    servers: list[ServerCard] = []
    removed: list[str] = []
    problems: list[str] | None = None
    usage: dict[str, UsageSample] = {}
    history: dict[str, list[UsageSample]] = {}


class ServerLogEvent(Struct, frozen=True):
    lines: list[LogLine]


async def follow_servers(
    backends: ConsoleBackends, argument: str, options: TopicOptions
) -> AsyncIterator[ServersEvent]:
    bridge, view = backends.bridge, backends.view
    changed = asyncio.Event()
    unsubscribe = bridge.status_changes.subscribe(lambda name: changed.set())
    try:
        cards = {card.name: card for card in list_cards(bridge, view)}
        problems = [*view.problems]
        usage = bridge.usage.sample()
        history = {name: bridge.usage.history(name) for name in usage}
        yield ServersEvent("snapshot", list(cards.values()), problems=problems, usage=usage, history=history)
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await changed.wait()
            await asyncio.sleep(MIN_PAUSE_S)  # what belongs together comes together
            changed.clear()
            new = {card.name: card for card in list_cards(bridge, view)}
            gone = [name for name in cards if name not in new]
            other = [card for name, card in new.items() if cards.get(name) != card]
            now_problems = [*view.problems]
            if other or gone or now_problems != problems:
                yield ServersEvent("change", other, gone, now_problems if now_problems != problems else None)
            cards, problems = new, now_problems
            sampled = bridge.usage.sample()
            if sampled != usage:
                usage = sampled
                yield ServersEvent("usage", usage=usage)
    finally:
        unsubscribe()


async def follow_server_log(
    backends: ConsoleBackends, argument: str, options: TopicOptions
) -> AsyncIterator[ServerLogEvent]:
    """Its newest lines whenever there is a new one."""
    bridge, view = backends.bridge, backends.view
    seen: object = _NOTHING
    while True:
        upstream = find_running(bridge, find_listed(view, argument))
        revision = None if upstream is None else (id(upstream), upstream.journal.revision)
        if revision != seen:
            seen = revision
            yield ServerLogEvent([] if upstream is None else upstream.journal.lines(MAX_LOG_LINES))
        await asyncio.sleep(LOG_TICK_S)
