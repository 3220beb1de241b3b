"""Reading what servers send: typed, and forgiving where real servers are sloppy."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dari.errors import Failed
from dari.mcp.client.errors import RemoteError
from dari.rpc.codec import UNREADABLE, ErrorObject, decode_any, encode, single_line
from dari.struct_types import ready

T = TypeVar("T")
_OPAQUE = frozenset({"structuredContent", "inputSchema", "outputSchema", "_meta", "data"})


class Incoming(Struct):
    """One message of a server, its payload unread."""

    id: int | str | float | None | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: ErrorObject | None | UnsetType = UNSET


_decode_incoming = msgspec.json.Decoder(ready(Incoming)).decode
decode_members = msgspec.json.Decoder(dict[str, Raw]).decode


def decode_incoming(message: bytes) -> Incoming:
    return _decode_incoming(single_line(message))


def read(raw: bytes | Raw, wanted: type[T], what: str) -> T:
    """`raw` as the wanted type. A null where the schema has nothing counts as absent: many servers send them."""
    try:
        return msgspec.json.decode(raw, type=ready(wanted))
    except UNREADABLE:
        pass
    try:
        return msgspec.json.decode(encode(without_nulls(decode_any(raw))), type=ready(wanted), strict=False)
    except UNREADABLE as error:
        raise Failed(f"the server's {what} does not follow MCP: {error}", "report it to the server's author") from None


def read_error(error: Any) -> RemoteError:
    """The `error` member of a response, whatever its shape."""
    if isinstance(error, ErrorObject):
        return RemoteError(error.code, error.message, error.data)
    members = error if isinstance(error, dict) else {}
    code = members.get("code")
    return RemoteError(
        code if isinstance(code, int) else -32603,
        str(members.get("message") or error or "the server gave no reason"),
        members.get("data"),
    )


def without_nulls(value: Any) -> Any:
    """The same without members that are null, except inside data whose shape is the server's own."""
    if isinstance(value, dict):
        return {
            key: member if key in _OPAQUE else without_nulls(member)
            for key, member in value.items()
            if member is not None
        }
    return [without_nulls(member) for member in value] if isinstance(value, list) else value
