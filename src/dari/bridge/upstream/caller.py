"""The caller of an upstream, and requests of a server (elicitation, sampling, roots) routed to it.

A server of the stateless era asks inside a result, so its call is known. One of the handshake era asks in between
without naming a call: then all users of the session at that time must be the same client. A call that already waits
for an answer does not count, since its client may be away for long. In doubt, no client is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from dari.core.approvals import Approval
from dari.core.context import Level, LoggingMessage, Root
from dari.errors import Failed, TimedOut, Unavailable
from dari.mcp.client.pending import OnProgress
from dari.struct_types import ready

Patience = Literal["long", "short"]
"""How long a call waits for a person: until it is answered, or not at all, to be made again later."""
Ask = Callable[[str, Raw], Awaitable[Any]]


class Caller(Struct, frozen=True, eq=False):
    who: str
    """Principal or program, as the audit log and the questions to a person show it."""
    session: str = ""
    """What `per-client` isolation and approvals for a session go by."""
    patience: Patience = "long"
    for_model: bool = False
    """Results are cleaned of characters that a person would not see."""
    ask: Ask | None = None
    """Answers `elicitation/create`, `sampling/createMessage` and, where the profile says so, `roots/list`; None: nobody
    is there to be asked."""
    takes_questions: bool = False
    """A result of the stateless era that asks back (`input_required`) is handed on as it is, not answered by `ask`."""
    answered: bytes = b""
    """What such a caller brings with its next request: `"inputResponses":{…},"requestState":"…"`, members of an object.
    A server of the handshake era never sees it."""
    capabilities: Mapping[str, Any] | None = None
    """The client's declared capabilities, sent to a server of the stateless era. None: all of them."""
    on_progress: OnProgress | None = None
    on_waiting: Callable[[Approval], None] | None = None
    """The call waits for a person, and has done so for a while."""
    on_log: Callable[[LoggingMessage], None] | None = None
    """What the server logs while the call runs."""
    log_level: Level | None = None


SYSTEM_CALLER = Caller("dari")
"""Ourselves, when a list is fetched or a server is warmed up."""


CURRENT_CALLER: ContextVar[Caller | None] = ContextVar("dari_bridge_caller", default=None)
"""Set in the task of a call before it is sent."""


ROOTS_TIMEOUT_S = 2.0


class _Roots(Struct):
    roots: list[Root] = []


class Unanswered(Failed):
    """The client, or the person at it, gave no answer. The server is well: its circuit stays closed, and the call is
    not sent again."""


class ServerRequestRouter:
    """Who uses one session now."""

    __slots__ = ("callers", "_asked", "_rooted", "_wants_roots", "_roots_told")

    def __init__(self) -> None:
        self.callers: list[Caller] = []
        self._asked: list[Caller] = []
        self._rooted: str | None = None
        self._wants_roots = False
        self._roots_told = asyncio.Event()

    async def ask(self, method: str, params: Raw) -> Any:
        """The caller's reply. Raises Unanswered, which is sent to the server, when there is none."""
        caller = self.sole()
        if caller is None:
            reason = "more than one client uses it" if self.callers else "no call is running"
            raise Unanswered(f"no client can answer {method}: {reason}", 'use "isolation": "per-client"')
        if caller.ask is None:
            raise Unanswered(f"the calling client cannot answer {method}", "call from a client that can answer")
        self._asked.append(caller)
        try:
            return await caller.ask(method, params)
        except (TimedOut, Unavailable) as error:
            raise Unanswered(error.message, error.hint) from error
        finally:
            self._asked.remove(caller)

    async def roots(self) -> list[str | Root]:
        """The folders that the caller has open; none without a call; a change is announced to the server."""
        self._wants_roots = True
        if not self.callers and CURRENT_CALLER.get() is None:
            return []
        try:
            return await self._callers_roots()
        finally:
            self._roots_told.set()

    def has_other_roots(self, caller: Caller) -> bool:
        """Whether what the server knows, if it knows anything, are the folders of another client."""
        return self._rooted != caller.session and _has_roots(caller)

    async def show_roots(self, caller: Caller, tell_server: Callable[[], None]) -> None:
        """Let the server ask for the folders of a client before its first call. One that has never asked is not
        waited for."""
        self._rooted = caller.session
        self._roots_told.clear()
        tell_server()
        if self._wants_roots:
            with suppress(TimeoutError):
                async with asyncio.timeout(ROOTS_TIMEOUT_S):
                    await self._roots_told.wait()

    async def _callers_roots(self) -> list[str | Root]:
        answer = await self.ask("roots/list", Raw(b"{}"))
        decoded = msgspec.json.decode(answer) if isinstance(answer, Raw | bytes) else answer
        try:
            return list(msgspec.convert(decoded, ready(_Roots)).roots)
        except msgspec.ValidationError as error:
            raise Unavailable(
                f"the reply to roots/list is invalid: {error}", "report it to the client's author"
            ) from None

    def sole(self) -> Caller | None:
        """The caller, when it is certain; the latest of several calls of one client."""
        current = CURRENT_CALLER.get()
        if current is not None:
            return current
        callers = self.callers
        if self._asked and len(self._asked) < len(callers):
            callers = list(callers)
            for waiting in self._asked:
                if waiting in callers:
                    callers.remove(waiting)
        if not callers:
            return None
        last = callers[-1]
        if all(one is last or (one.session and one.session == last.session) for one in callers):
            return last
        return None


def _has_roots(caller: Caller) -> bool:
    return caller.ask is not None and (caller.capabilities is None or "roots" in caller.capabilities)
