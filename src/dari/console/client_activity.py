"""Which agents there are: those with a session now, and those that have called a tool since the hub was started.

Calls are counted from the audit log as it is written, so that every way in counts (HTTP, stdio, the stateless era) and
no call waits for the counting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from dari.core.context import MAX_CLIENT_NAME_CHARS

if TYPE_CHECKING:
    from dari.core.audit.log import AuditLog
    from dari.core.audit.record import AuditRecord
    from dari.mcp.server import Server

MAX_CLIENTS = 500
AGENTS = "mcp"
"""The principal of agents."""


class ClientState(Struct, frozen=True, kw_only=True):
    """One agent, as records name it."""

    who: str
    client: str = ""
    """The name of its token, which vouches for it."""
    name: str = ""
    """What it calls itself; nothing vouches for that."""
    sessions: int = 0
    calls: int = 0
    first_call_unix: float = 0.0
    """0: none since the hub was started."""
    last_call_unix: float = 0.0


def parse_who(who: str) -> ClientState:
    """`mcp@claude-code:Claude Code` in its parts."""
    holder, _, name = who.partition(":")
    return ClientState(who=who, client=holder.partition("@")[2], name=name)


class ClientActivity:
    """`servers` are those that agents talk to. `changed` is set when a call was counted."""

    def __init__(self, audit: Callable[[], AuditLog | None], servers: Callable[[], Iterable[Server]]) -> None:
        self._audit = audit
        self._servers = servers
        self._calls: dict[str, ClientState] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: Callable[[], None] = lambda: None
        self.changed = asyncio.Event()

    def start(self) -> None:
        """Count from here on."""
        self._loop = asyncio.get_running_loop()
        if (log := self._audit()) is not None:
            self._stop = log.subscribe(self._take)

    def stop(self) -> None:
        self._stop()

    def clients(self) -> list[ClientState]:
        """The one that called last comes first."""
        found = dict(self._calls)
        for server in self._servers():
            for session in server.sessions:
                if session.grant.principal != AGENTS or not session.version:
                    continue
                name = str(session.client_info.get("name", ""))[:MAX_CLIENT_NAME_CHARS]
                who = f"{session.grant.holder}:{name}" if name else session.grant.holder
                state = found.get(who) or parse_who(who)
                found[who] = replace(state, sessions=state.sessions + 1)
        return sorted(found.values(), key=lambda one: (-one.last_call_unix, one.who))[:MAX_CLIENTS]

    def _take(self, batch: Sequence[AuditRecord]) -> None:
        """Called by the thread that writes the log."""
        calls = [(each.who, each.at.timestamp()) for each in batch if each.kind == "call" and _is_agent(each.who)]
        if not calls or self._loop is None:
            return
        try:
            self._loop.call_soon_threadsafe(self._count, calls)
        except RuntimeError:
            pass  # the loop is closed: nobody looks any more

    def _count(self, calls: Sequence[tuple[str, float]]) -> None:
        for who, at in calls:
            state = self._calls.pop(who, None) or parse_who(who)  # to the end: the oldest is forgotten first
            self._calls[who] = replace(
                state, calls=state.calls + 1, first_call_unix=state.first_call_unix or at, last_call_unix=at
            )
        while len(self._calls) > MAX_CLIENTS:
            del self._calls[next(iter(self._calls))]
        self.changed.set()
        self.changed = asyncio.Event()


def _is_agent(who: str) -> bool:
    return who == AGENTS or who.startswith((f"{AGENTS}:", f"{AGENTS}@"))
