"""A service seen from both ends: its exposed methods as a daemon's methods, and a stand-in that calls them from afar.

The signature is the contract. Arguments travel by name; one that is None does not travel at all, because a null
on this wire is a type error. The stand-in is an instance of the service's own class as far as a type checker cares.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Awaitable, Callable, Container, Iterator
from typing import Any, TypeVar, Union, cast

import msgspec

from dari.daemon.client import FOREVER_S, DaemonClient
from dari.daemon.methods import Method, params_reader

_MARK = "__dari_exposed__"
S = TypeVar("S")
F = TypeVar("F", bound=Callable[..., Awaitable[Any]])


class Exposed(msgspec.Struct, frozen=True):
    """How a method of a service is called over the wire."""

    name: str
    scope: str
    ends_with_caller: bool = False
    is_slow: bool = False
    needs_person: bool = False


def expose(
    name: str, scope: str, *, ends_with_caller: bool = False, is_slow: bool = False, needs_person: bool = False
) -> Callable[[F], F]:
    """Offer an async method of a service under this name to callers of this scope.

    `ends_with_caller`: it only waits on the caller's behalf, so it has a connection of its own and ends with it.
    `is_slow`: it works for as long as the work takes. Callers of both kinds wait while the connection lives, or for the
    method's own `timeout_s`, which travels with the call, and a margin.
    `needs_person`: refused to callers in a pane, in a server that we run, or below an agent's host.
    """

    def mark(function: F) -> F:
        setattr(function, _MARK, Exposed(name, scope, ends_with_caller, is_slow, needs_person))
        return function

    return mark


def exposed_name(function: Callable[..., object]) -> str:
    """The name under which an exposed method is called."""
    mark: Exposed = getattr(function, _MARK)
    return mark.name


def exposed_methods(service: object, without: Container[str] = ()) -> list[Method]:
    """What a daemon serves of this service."""
    return [
        _ExposedMethod(mark, getattr(service, name), function)
        for name, function, mark in iter_exposed(type(service))
        if mark.name not in without
    ]


def make_stub(service: type[S], client: DaemonClient) -> S:
    """An object with the exposed methods of the service, each a call to the daemon behind the client."""
    stand_in: object = type(f"Remote{service.__name__}", (), {})()
    for name, function, mark in iter_exposed(service):
        setattr(stand_in, name, _caller(client, function, mark))
    return cast(S, stand_in)


class _ExposedMethod(Method):
    """Reads its signature when it is first called: for sixty methods that is 15 ms which a start does not need."""

    __slots__ = ("_function", "_method")

    def __init__(self, mark: Exposed, method: Callable[..., Awaitable[object]], function: Callable[..., Any]) -> None:
        super().__init__(
            mark.name,
            mark.scope,
            self._spread,
            ends_with_caller=mark.ends_with_caller,
            needs_person=mark.needs_person,
        )
        self._method = method
        self._function: Callable[..., Any] | None = function

    async def call(self, params: bytes) -> object:
        if self._function is not None:
            self._read = params_reader(_params_of(self._function, self.name))
            self._function = None
        return await super().call(params)

    async def _spread(self, params: Any) -> object:
        given = {
            name: value for name in params.__struct_fields__ if (value := getattr(params, name)) is not msgspec.UNSET
        }
        return await self._method(**given)


def iter_exposed(service: type) -> Iterator[tuple[str, Callable[..., Any], Exposed]]:
    """The exposed methods of a service: name, function, and how it is called over the wire."""
    for name, function in inspect.getmembers(service, inspect.isfunction):
        if (mark := getattr(function, _MARK, None)) is not None:
            yield name, function, mark


def _params_of(function: Callable[..., Any], name: str) -> type[msgspec.Struct]:
    hints = typing.get_type_hints(function)
    fields: list[Any] = []
    for parameter in _parameters(function):
        hint = hints[parameter.name]
        if parameter.default is inspect.Parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, Union[_not_none(hint), msgspec.UnsetType], msgspec.UNSET))  # noqa: UP007
    return msgspec.defstruct(name.replace(".", "_"), fields, kw_only=True)


def _not_none(hint: Any) -> Any:
    """`X | None` as `X`: an argument that may be None is one that may be left out."""
    if typing.get_origin(hint) in (Union, types.UnionType):
        return Union[tuple(part for part in typing.get_args(hint) if part is not type(None))]  # noqa: UP007
    return hint


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())[1:]


def _caller(client: DaemonClient, function: Callable[..., Any], mark: Exposed) -> Callable[..., Awaitable[Any]]:
    signature = inspect.Signature(_parameters(function))
    limit = signature.parameters.get("timeout_s")
    returns: list[Any] = []

    async def call(*positional: object, **named: object) -> Any:
        if not returns:  # resolving the hints of a service costs more than connecting to it; most are never called
            returns.append(typing.get_type_hints(function)["return"])
        bound = signature.bind(*positional, **named).arguments
        params = {name: value for name, value in bound.items() if value is not None}
        if limit is not None and "timeout_s" not in params and limit.default is not None:
            params["timeout_s"] = limit.default
        # What may be slow has a connection of its own: nothing should queue behind it.
        alone = mark.ends_with_caller or mark.is_slow or limit is not None
        timeout_s = FOREVER_S if alone and "timeout_s" not in params else None
        return await client.call(mark.name, params, timeout_s, returns=returns[0], alone=alone)

    call.__name__ = function.__name__
    return call
