"""`initialize`, `server/discover`, `ping`, `logging/setLevel` and the client's notifications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw, UnsetType

from dari.core.context import LEVELS
from dari.mcp.error_mapping import invalid_params
from dari.mcp.inflight import SERVER_INFO
from dari.mcp.list_cache import CACHEABLE
from dari.mcp.request import Request
from dari.mcp.versions import negotiate
from dari.rpc.codec import UNREADABLE, Params, decode_any, encode

if TYPE_CHECKING:
    from dari.mcp.reply_channel import ReplyChannel
    from dari.mcp.server import Server


def initialize(request: Request) -> bytes:
    params, server = request.params, request.server
    if server.strict and params.protocol_version not in server.versions:
        raise server.unsupported_version()
    if params.protocol_version is UNSET:
        raise invalid_params("params.protocolVersion is missing", f"known: {', '.join(server.versions)}")
    session = request.session
    assert session is not None
    session.version = request.version = negotiate(params.protocol_version)
    session.client_info = _object(params.client_info)
    session.capabilities = _object(params.capabilities)
    server.unwatch_all(session)
    body: dict[str, Any] = {
        "protocolVersion": session.version,
        "capabilities": capabilities(server, stateless=False),
        "serverInfo": server.info,
    }
    if instructions := _instructions(server):
        body["instructions"] = instructions
    return encode(body)


def discover(request: Request) -> bytes:
    server = request.server
    body: dict[str, Any] = {
        "supportedVersions": [*server.versions, *server.stateless_versions],
        "capabilities": capabilities(server, stateless=True),
        "_meta": {SERVER_INFO: server.info},
    }
    if instructions := _instructions(server):
        body["instructions"] = instructions
    return CACHEABLE + encode(body)[1:]


def _instructions(server: Server) -> str:
    return "\n\n".join(part for part in (server.instructions, server.registry.guidance) if part)


def capabilities(server: Server, *, stateless: bool) -> dict[str, Any]:
    """What this server can do now. Tools are always announced: they may be added later."""
    if server.capabilities is not None:
        return dict(server.capabilities)
    registry = server.registry
    shown: dict[str, Any] = {"tools": {"listChanged": True}, "logging": {}}
    may_grow = registry.may_grow
    if may_grow or registry.resources or registry.templates:
        shown["resources"] = {"subscribe": True, "listChanged": True}
    if may_grow or registry.prompts:
        shown["prompts"] = {"listChanged": True}
    if may_grow or registry.prompts or registry.templates:
        shown["completions"] = {}
    return shown


def ping(request: Request) -> bytes:
    return b"{}"


def set_level(request: Request) -> bytes:
    level = request.params.level
    known = next((known for known in LEVELS if known == level), None)
    if known is None:
        shown = "missing" if level is UNSET else repr(level[:40])
        raise invalid_params(f"level is {shown}", f"known: {', '.join(LEVELS)}")
    assert request.session is not None
    request.session.log_level = known
    request.session.has_asked_for_logs = True
    return b"{}"


def receive_notification(server: Server, channel: ReplyChannel, method: str, params: Params) -> None:
    """A notification from the client; unknown ones are ignored, as JSON-RPC asks."""
    if method == "notifications/cancelled" and channel.session is not None and params.request_id is not UNSET:
        call = channel.session.running.get(params.request_id)
        if call is not None:
            call.cancel(params.reason if isinstance(params.reason, str) else "by the client")
    elif method == "notifications/roots/list_changed" and channel.session is not None:
        channel.session.forget_roots()
    elif method == "exit" and server.on_exit is not None:
        server.on_exit()


def _object(raw: Raw | UnsetType) -> dict[str, Any]:
    if raw is UNSET:
        return {}
    try:
        value = decode_any(raw)
    except UNREADABLE as error:
        raise invalid_params(str(error)) from None
    return value if isinstance(value, dict) else {}
