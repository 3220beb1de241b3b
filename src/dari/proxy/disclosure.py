"""The gate of the proxy: what its service gives out has its secrets hidden, whatever method was asked and by whom.

Recorded traffic, rules and settings live behind the service. Each of its exposed methods is wrapped here, results and
errors alike, before anything can call it; only methods of the scope `admin` give out what was recorded, to a person.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar

import msgspec

from dari.daemon.stub import iter_exposed
from dari.errors import DariError
from dari.text.redact import redact_error, redact_secrets

ADMIN = "admin"
S = TypeVar("S")
_INLINE_BYTES = 8 * 1024
"""More than this is searched in a thread: 100 requests take 20 ms, in which the proxy has others to serve."""


def gated(service: S) -> S:
    """The same service, sharing its state, with every exposed method behind the gate."""
    cls = type(service)
    wrapped: dict[str, Any] = {
        name: _gated(function) for name, function, mark in iter_exposed(cls) if mark.scope != ADMIN
    }
    twin: S = object.__new__(type(cls.__name__, (cls,), wrapped))
    twin.__dict__ = service.__dict__  # one state: a change through either is a change
    return twin


def _gated(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(function)
    async def shown(*positional: Any, **named: Any) -> Any:
        try:
            value = await function(*positional, **named)
        except DariError as error:
            raise redact_error(error) from error.__cause__
        if len(msgspec.json.encode(value)) <= _INLINE_BYTES:
            return redact_secrets(value)
        return await asyncio.to_thread(redact_secrets, value)

    return shown
