"""HTTP headers of the stateless era: encoded by the client, compared with the body by the server."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from dari.core.header_params import value_at
from dari.mcp.error_mapping import RpcError
from dari.mcp.versions import HEADER_MISMATCH
from dari.rpc.codec import UNREADABLE, Params, decode_any

if TYPE_CHECKING:
    from dari.core.tool import Tool

VERSION = b"mcp-protocol-version"
METHOD = b"mcp-method"
NAME = b"mcp-name"
PARAM_PREFIX = b"mcp-param-"
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

_WRAPPED = re.compile(r"=\?base64\?(.*)\?=")
_PLAIN = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?|")
_DECIMAL = re.compile(r"-?[0-9]{1,4000}(\.0+)?")  # int() takes no more than 4300 digits


def encode_value(value: str) -> str:
    """The value as a header can carry it: as it is, or base64 between `=?base64?` and `?=`."""
    if _PLAIN.fullmatch(value) and not _WRAPPED.fullmatch(value):
        return value
    return f"=?base64?{b64encode(value.encode()).decode()}?="


def decode_value(raw: bytes) -> str | None:
    """The inverse; None when the header is malformed, so that it equals nothing."""
    try:
        text = raw.decode("ascii")
        wrapped = _WRAPPED.fullmatch(text)
        if wrapped is None:
            return text
        decoded = b64decode(wrapped[1], validate=True)
        return decoded.decode() if b64encode(decoded).decode() == wrapped[1] else None
    except (UnicodeDecodeError, binascii.Error):
        return None


def render(value: Any) -> str | None:
    """An argument as a header shows it; None for what has no header form."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def check_envelope(headers: Mapping[bytes, bytes], version: str, method: str, params: Params) -> None:
    """Version, method and name must say in the headers what they say in the body."""
    if headers.get(VERSION) != version.encode():
        raise _mismatch("MCP-Protocol-Version", "the protocol version in _meta")
    if headers.get(METHOD) != method.encode():
        raise _mismatch("Mcp-Method", "the method")
    key = NAMED_BY.get(method)
    if key is not None:
        value = getattr(params, key)
        header = headers.get(NAME)
        if value is not UNSET and (header is None or (header != value.encode() and decode_value(header) != value)):
            raise _mismatch("Mcp-Name", f"params.{key}")


def check_parameters(headers: Mapping[bytes, bytes], tool: Tool, arguments: Any) -> None:
    """Every argument declared with `x-mcp-header` must stand in its header too, and the other way round."""
    try:
        given = decode_any(arguments) if arguments is not UNSET else {}
    except UNREADABLE:
        return  # The tool's own type says what is wrong with them.
    if not isinstance(given, dict):
        return
    for suffix, path in tool.mirrored.items():
        header = headers.get(PARAM_PREFIX + suffix.lower().encode())
        value = value_at(given, path)
        rendered = render(value)
        if rendered is None and header is None:
            continue
        decoded = decode_value(header) if header is not None else None
        if rendered is None or decoded is None or not _equal(value, rendered, decoded):
            raise _mismatch(f"Mcp-Param-{suffix}", f"argument '{'.'.join(path)}'")


def _equal(value: Any, rendered: str, decoded: str) -> bool:
    if decoded == rendered:
        return True
    is_whole = isinstance(value, int | float) and not isinstance(value, bool) and value == int(value)
    return is_whole and _DECIMAL.fullmatch(decoded) is not None and int(decoded.partition(".")[0]) == int(value)


def _mismatch(header: str, what: str) -> RpcError:
    return RpcError(HEADER_MISMATCH, f"header {header} does not match {what} in the body")
