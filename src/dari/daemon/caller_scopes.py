"""The caller whose call is being served: its principal, its scopes and its process."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from dari.daemon.errors import NotAPerson, ScopeRequired
from dari.daemon.person import find_agent

T = TypeVar("T")


class CallerIdentity(Struct, frozen=True):
    """`pid` is None where the kernel does not tell it; `started` tells the process from a later one of that pid."""

    principal: str
    scopes: frozenset[str]
    pid: int | None
    started: str | None = None
    is_vouched_for: bool = False
    """Whether who took the call in has seen to it that a person makes it: the console, whose page a person logged in
    to, in a browser that no agent started."""
    acts_for: str = ""
    """The client whose call it passes on, as it says: `mcp@claude-code:Claude Code`."""


class Assigned(Generic[T]):
    """`with` it: the variable has this value inside."""

    __slots__ = ("_token", "_value", "_variable")

    def __init__(self, variable: ContextVar[T], value: T) -> None:
        self._variable, self._value = variable, value

    def __enter__(self) -> None:
        self._token = self._variable.set(self._value)

    def __exit__(self, *_: object) -> None:
        self._variable.reset(self._token)


_CALLER: ContextVar[CallerIdentity | None] = ContextVar("dari_caller", default=None)


@contextmanager
def serve_caller(caller: CallerIdentity) -> Iterator[None]:
    """What runs inside is done for this caller, with no more scopes than an outer caller has."""
    outer = _CALLER.get()
    token = _CALLER.set(caller if outer is None else replace(caller, scopes=caller.scopes & outer.scopes))
    try:
        yield
    finally:
        _CALLER.reset(token)


@contextmanager
def limit_scopes(scopes: Iterable[str]) -> Iterator[None]:
    """What runs inside is done with these scopes, and no more than an outer caller has."""
    caller = _CALLER.get() or CallerIdentity("", frozenset(), None)
    with serve_caller(replace(caller, scopes=frozenset(scopes))):
        yield


def serve_own_process(scopes: Iterable[str]) -> AbstractContextManager[None]:
    """Calls inside are made for the user of this process: a command that works without a daemon."""
    return serve_caller(CallerIdentity("cli", frozenset(scopes), os.getpid()))


_CLIENT: ContextVar[str] = ContextVar("dari_client_of_call", default="")


def pass_on_call_of(client: str) -> Assigned[str]:
    """Calls to daemons inside are made for this client; a daemon names it to the person who has to agree."""
    return Assigned(_CLIENT, client)


def client_of_call() -> str:
    """Whose call is being passed on; empty where nobody said."""
    return _CLIENT.get()


def current_caller() -> CallerIdentity | None:
    """None in a call from our own process, outside any session."""
    return _CALLER.get()


def caller_has(scope: str) -> bool:
    """Whether the caller holds the scope; a call from our own process, outside any session, holds all."""
    caller = _CALLER.get()
    return caller is None or scope in caller.scopes


def require_scope(scope: str, hint: str) -> None:
    """Refuse the call unless its caller holds the scope; `hint` says what needs it, and who may do it."""
    if not caller_has(scope):
        raise ScopeRequired("insufficient scope", f"this call needs scope '{scope}': {hint}")


def is_person() -> bool:
    """Whether the call comes from a person's terminal, as `require_person` wants it."""
    caller = _CALLER.get()
    return caller is not None and "admin" in caller.scopes and not _find_agent(caller)


def require_person(what: str) -> None:
    """Refuse the call unless it comes from a person's terminal: `admin` scope, and outside of what agents drive.

    Without a caller it is refused: our own process may be a daemon. A command without a daemon names itself as the
    caller (`serve_own_process`).
    """
    caller = _CALLER.get()
    if caller is None:
        raise NotAPerson(f"{what} is for a person, and the call has no caller", "use a terminal of your own")
    require_scope("admin", f"{what} is for a person")
    if reason := _find_agent(caller):
        where = "outside of any pane, and opened before the agent was started or by a new login"
        raise NotAPerson(f"{what} is for a person, and {reason}", f"use a terminal of your own: {where}")


def _find_agent(caller: CallerIdentity) -> str:
    return "" if caller.is_vouched_for else find_agent(caller.pid, caller.started)
