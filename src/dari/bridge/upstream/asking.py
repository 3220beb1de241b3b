"""Questions of a server, brought to the one whose call it works on.

A server of the stateless era asks inside a result, so it is known whose call it is. One of the handshake era asks in
between, without naming a call: then everybody who uses the session at the time has to be one and the same client.
A call that waits for an answer already is not counted: its client may have gone for a coffee, and the others would
have to wait for it. When in doubt nobody is asked.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import msgspec
from msgspec import Raw, Struct

from dari.bridge.upstream.caller import Caller
from dari.core.context import Root
from dari.errors import Unavailable

CURRENT: ContextVar[Caller | None] = ContextVar("dari_bridge_caller", default=None)
"""Set in the task of a call before it is sent."""


class _Roots(Struct):
    roots: list[Root] = []


class Asking:
    """Who uses one session now."""

    __slots__ = ("callers", "_asked")

    def __init__(self) -> None:
        self.callers: list[Caller] = []
        self._asked: list[Caller] = []

    async def ask(self, method: str, params: Raw) -> Any:
        """The answer of the caller. Raises Unavailable, which the server is told, when there is nobody to ask."""
        caller = self.sole()
        if caller is None:
            reason = "more than one client uses it" if self.callers else "no call is running"
            raise Unavailable(f"nobody can be asked for {method}: {reason}", 'use "isolation": "per-client"')
        if caller.ask is None:
            raise Unavailable(f"nobody can be asked for {method}", "call from a client that can answer")
        self._asked.append(caller)
        try:
            return await caller.ask(method, params)
        finally:
            self._asked.remove(caller)

    async def roots(self) -> list[str | Root]:
        """The folders that the caller has open."""
        answer = await self.ask("roots/list", Raw(b"{}"))
        told = msgspec.json.decode(answer) if isinstance(answer, Raw | bytes) else answer
        try:
            return list(msgspec.convert(told, _Roots).roots)
        except msgspec.ValidationError as error:
            raise Unavailable(
                f"the answer to roots/list is none: {error}", "report it to the client's author"
            ) from None

    def sole(self) -> Caller | None:
        """The caller, when there is no doubt; the latest of several calls of one client."""
        current = CURRENT.get()
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
