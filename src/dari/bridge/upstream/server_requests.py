"""Requests of a server (elicitation, sampling, roots), routed to the client whose call it works on.

A server of the stateless era asks inside a result, so it is known whose call it is. One of the handshake era asks in
between, without naming a call: then everybody who uses the session at the time has to be one and the same client.
A call that waits for an answer already is not counted: its client may have gone for a coffee, and the others would
have to wait for it. When in doubt, no client is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import msgspec
from msgspec import Raw, Struct

from dari.bridge.upstream.caller import Caller
from dari.core.context import Root
from dari.errors import Unavailable

CURRENT_CALLER: ContextVar[Caller | None] = ContextVar("dari_bridge_caller", default=None)
"""Set in the task of a call before it is sent."""


ROOTS_TIMEOUT_S = 2.0


class _Roots(Struct):
    roots: list[Root] = []


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
        """The caller's reply. Raises Unavailable, which is sent to the server, when no client can be asked."""
        caller = self.sole()
        if caller is None:
            reason = "more than one client uses it" if self.callers else "no call is running"
            raise Unavailable(f"no client can answer {method}: {reason}", 'use "isolation": "per-client"')
        if caller.ask is None:
            raise Unavailable(f"the calling client cannot answer {method}", "call from a client that can answer")
        self._asked.append(caller)
        try:
            return await caller.ask(method, params)
        finally:
            self._asked.remove(caller)

    async def roots(self) -> list[str | Root]:
        """The folders that the caller has open; none while nobody calls; a change is announced to it."""
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
        told = msgspec.json.decode(answer) if isinstance(answer, Raw | bytes) else answer
        try:
            return list(msgspec.convert(told, _Roots).roots)
        except msgspec.ValidationError as error:
            raise Unavailable(
                f"the reply to roots/list is invalid: {error}", "report it to the client's author"
            ) from None

    def sole(self) -> Caller | None:
        """The caller, when there is no doubt; the latest of several calls of one client."""
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
