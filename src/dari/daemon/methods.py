"""A method of a daemon: its name, the scope it needs, and the function behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar, overload

import msgspec

from dari.daemon.errors import DaemonError, ErrorCode
from dari.rpc.codec import UNREADABLE
from dari.struct_types import ready

P = TypeVar("P")


def params_reader(params: type[P]) -> Callable[[bytes], P]:
    """A strict reader: no conversions, a null only where the type says so, extra keys ignored."""
    decode = msgspec.json.Decoder(ready(params)).decode

    def read(text: bytes) -> P:
        try:
            return decode(text)
        except UNREADABLE as error:
            raise DaemonError(ErrorCode.INVALID_PARAMS, str(error)) from error

    return read


class Method:
    """The handler takes the params as a dict, or as the msgspec type given in `params`.

    A call runs to its end even when its caller leaves, unless `ends_with_caller` says that it is
    only waiting on the caller's behalf: then it is cancelled when the caller hangs up. `needs_person`: only for callers
    outside of what agents drive (`dari.daemon.person`).
    """

    __slots__ = ("_handler", "_read", "ends_with_caller", "name", "needs_person", "scope")

    @overload
    def __init__(
        self,
        name: str,
        scope: str,
        handler: Callable[[dict[str, object]], Awaitable[object]],
        *,
        ends_with_caller: bool = False,
        needs_person: bool = False,
    ) -> None: ...

    @overload
    def __init__(
        self,
        name: str,
        scope: str,
        handler: Callable[[P], Awaitable[object]],
        params: type[P],
        *,
        ends_with_caller: bool = False,
        needs_person: bool = False,
    ) -> None: ...

    def __init__(
        self,
        name: str,
        scope: str,
        handler: Callable[[Any], Awaitable[object]],
        params: type[Any] = dict,
        *,
        ends_with_caller: bool = False,
        needs_person: bool = False,
    ) -> None:
        self.name = name
        self.scope = scope
        self.ends_with_caller = ends_with_caller
        self.needs_person = needs_person
        self._handler = handler
        self._read = params_reader(params)

    async def call(self, params: bytes) -> object:
        """Read the params and run the handler."""
        return await self._handler(self._read(params))


def method_table(methods: Iterable[Method]) -> Mapping[str, Method]:
    """Methods by name; two of one name are a programming error."""
    table: dict[str, Method] = {}
    for method in methods:
        if method.name in table:
            raise ValueError(f"two methods are named {method.name}")
        table[method.name] = method
    return table
