"""The scopes of the caller whose call is being served, for methods whose need depends on their arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from dari.daemon.errors import ScopeRequired

_SCOPES: ContextVar[frozenset[str] | None] = ContextVar("dari_caller_scopes", default=None)


@contextmanager
def limit_scopes(scopes: Iterable[str]) -> Iterator[None]:
    """What runs inside is done for a caller with these scopes, and no more than an outer caller has."""
    outer, given = _SCOPES.get(), frozenset(scopes)
    token = _SCOPES.set(given if outer is None else given & outer)
    try:
        yield
    finally:
        _SCOPES.reset(token)


def caller_has(scope: str) -> bool:
    """Whether the caller holds the scope; a call from our own process, outside any session, holds all."""
    scopes = _SCOPES.get()
    return scopes is None or scope in scopes


def require_scope(scope: str, hint: str) -> None:
    """Refuse the call unless its caller holds the scope; `hint` says what needs it, and who may do it."""
    if not caller_has(scope):
        raise ScopeRequired("insufficient scope", f"this call needs scope '{scope}': {hint}")
