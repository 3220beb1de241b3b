"""Topics `panes` (every pane, what runs in it and who types) and `pane:<id>` (one screen, then its changed rows)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from msgspec import Struct

from dari.console.live import TopicFeed, TopicOptions
from dari.daemon.stub import exposed_name
from dari.errors import Unavailable
from dari.terminal.api.approvals import SERVER
from dari.terminal.api.watch import PaneEntry, Roster, WatchApi
from dari.terminal.daemon import cruxd_client
from dari.terminal.paths import CruxPaths
from dari.terminal.take_over import name_agent
from dari.terminal.viewers.pane_screen import ScreenFrame

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends
    from dari.core.approvals import Approval, ApprovalEvent
    from dari.daemon.client import DaemonClient

ASK_S = 20.0
LOOK_S = 1.0
"""How often to look whether the terminal's daemon runs."""


class WaitingCall(Struct, frozen=True, kw_only=True):
    """A call for a pane that waits for a person."""

    id: str
    pane_id: str
    message: str
    client: str
    expires_unix: float


class PanesEvent(Struct, frozen=True, kw_only=True):
    is_running: bool
    """Whether the terminal's daemon runs; without it there are no panes."""
    panes: list[PaneEntry] = []
    focused: str = ""
    waiting: list[WaitingCall] = []


async def follow_panes(backends: ConsoleBackends, argument: str, options: TopicOptions) -> AsyncIterator[PanesEvent]:
    asked: TopicFeed[ApprovalEvent] = TopicFeed()
    stop = backends.approvals.queue.subscribe(asked.put)
    loop = asyncio.get_running_loop()
    last: PanesEvent | None = None
    roster: Roster | None = None
    # A connection of its own, kept: one for each question would cost more than the question.
    async with cruxd_client(CruxPaths(), "app", starts=False) as client:
        looking = loop.create_task(_look(client, 0))
        hearing = loop.create_task(asked.take())
        try:
            while True:
                await asyncio.wait({looking, hearing}, return_when=asyncio.FIRST_COMPLETED)
                if hearing.done():
                    hearing = loop.create_task(asked.take())
                if looking.done():
                    was_running = roster is not None
                    roster = looking.result()
                    pause = LOOK_S if roster is None and not was_running else 0.0
                    looking = loop.create_task(_look(client, roster.version if roster is not None else 0, pause))
                event = _event(roster, backends.approvals.pending())
                if event != last:
                    last = event
                    yield event
        finally:
            stop()
            for task in (looking, hearing):
                task.cancel()
            await asyncio.gather(looking, hearing, return_exceptions=True)


async def _look(client: DaemonClient, known: int, pause_s: float = 0.0) -> Roster | None:
    """None where no daemon answers."""
    await asyncio.sleep(pause_s)
    try:
        params = {"known": known, "timeout_s": ASK_S}
        return await client.call(exposed_name(WatchApi.roster), params, returns=Roster)
    except Unavailable:
        return None


def _event(roster: Roster | None, pending: list[Approval]) -> PanesEvent:
    if roster is None:
        return PanesEvent(is_running=False)
    waiting = [
        WaitingCall(
            id=each.id,
            pane_id=str(each.arguments.get("pane_id") or "").removeprefix("%") or roster.focused,
            message=each.message,
            client=name_agent(each.who).name,
            expires_unix=each.expires_unix,
        )
        for each in pending
        if each.server == SERVER and isinstance(each.arguments, dict)
    ]
    return PanesEvent(is_running=True, panes=roster.panes, focused=roster.focused, waiting=waiting)


async def follow_pane(backends: ConsoleBackends, argument: str, options: TopicOptions) -> AsyncIterator[ScreenFrame]:
    """Ends with an event whose `is_over` is set when the pane is gone, and with an error when the daemon is."""
    version = 0
    async with cruxd_client(CruxPaths(), "app", starts=False) as client:
        while True:
            asked = {"pane_id": argument, "known": version, "timeout_s": ASK_S}
            frame = await client.call(exposed_name(WatchApi.watch), asked, returns=ScreenFrame)
            if frame.version != version or frame.is_over:
                version = frame.version
                yield frame
            if frame.is_over:
                return
