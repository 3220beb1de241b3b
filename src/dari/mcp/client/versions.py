"""What each era adds to a request: a progress token, the stateless envelope, HTTP headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from dari.core.header_params import Path, value_at
from dari.mcp.client.decode import decode_members
from dari.mcp.headers import NAMED_BY, encode_value, render
from dari.rpc.codec import decode_any, encode

PREFIX = "io.modelcontextprotocol/"
LOG_LEVEL = PREFIX + "logLevel"
CAPABILITIES = PREFIX + "clientCapabilities"
_MAX_CACHED = 1024


class HandshakeEnvelope:
    """The era of `initialize`. Requests go out as they are. An empty version: nothing is agreed yet."""

    is_stateless = False

    def __init__(self, version: str = "") -> None:
        self.version = version

    def wrap(self, params: bytes, token: int | None) -> bytes:
        """The params of a request, with the token that progress notifications will carry."""
        if token is None:
            return params
        return with_meta(params, {"progressToken": token})

    def headers(self, method: str, name: str) -> bytes:
        return b""


class StatelessEnvelope:
    """The era of `server/discover`: every request says who asks, what they can do, and in which revision."""

    is_stateless = True

    def __init__(self, version: str, capabilities: Mapping[str, Any], info: Mapping[str, str]) -> None:
        self.version = version
        self._meta: dict[str, Any] = {
            PREFIX + "protocolVersion": version,
            PREFIX + "clientCapabilities": capabilities,
            PREFIX + "clientInfo": info,
        }
        self._encoded = b'{"_meta":' + encode(self._meta)
        self._heads: dict[tuple[str, str], bytes] = {}

    def set_level(self, level: str) -> None:
        """Ask for log messages of this level and above, from now on."""
        self._meta[LOG_LEVEL] = level
        self._encoded = b'{"_meta":' + encode(self._meta)

    def wrap(self, params: bytes, token: int | None) -> bytes:
        if b'"_meta"' in params or params[1:2].isspace():
            return with_meta(
                params, self._meta if token is None else self._meta | {"progressToken": token}, CAPABILITIES
            )
        head = self._encoded if token is None else b'%b,"progressToken":%d}' % (self._encoded[:-1], token)
        return head + (b"," + params[1:] if len(params) > 2 else b"}")

    def headers(self, method: str, name: str) -> bytes:
        """What HTTP repeats of the body, so that a gateway can route without reading it."""
        head = self._heads.get((method, name))
        if head is None:
            head = b"mcp-protocol-version: %b\r\nmcp-method: %b\r\n" % (self.version.encode(), method.encode())
            if name:
                head += b"mcp-name: %b\r\n" % encode_value(name).encode()
            if len(self._heads) < _MAX_CACHED:
                self._heads[method, name] = head
        return head


Era = HandshakeEnvelope | StatelessEnvelope


def with_meta(params: bytes, ours: Mapping[str, Any], kept: str = "") -> bytes:
    """Params with members added to their `_meta`; ours win, but for the one that is `kept`."""
    members = decode_members(params) if params else {}
    theirs = decode_any(members["_meta"]) if "_meta" in members else {}
    merged = {**theirs, **ours} if isinstance(theirs, dict) else {**ours}
    if isinstance(theirs, dict) and kept in theirs:
        merged[kept] = theirs[kept]
    return encode({**members, "_meta": merged})


def name_in(method: str, params: bytes) -> str:
    """The tool, prompt or URI that a request is about, for its `Mcp-Name` header."""
    key = NAMED_BY.get(method)
    if key is None:
        return ""
    value = decode_any(decode_members(params).get(key, Raw(b"null")))
    return value if isinstance(value, str) else ""


def parameter_headers(mirrored: Mapping[str, Path], arguments: Any) -> bytes:
    """`Mcp-Param-*` for the arguments that a tool's schema wants to see in headers; what is absent has none."""
    lines = []
    for suffix, path in mirrored.items():
        rendered = render(value_at(arguments, path))
        if rendered is not None:
            lines.append(f"mcp-param-{suffix}: {encode_value(rendered)}\r\n")
    return "".join(lines).encode()
