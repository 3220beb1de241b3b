"""`tools/list` and `tools/call`."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from msgspec import UNSET, Raw, Struct

from dari.core.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    RawResult,
    ResourceLink,
    TextContent,
    ToolResult,
)
from dari.core.scopes import InsufficientScope
from dari.core.tool import INNER_LIMITS_ONLY, Tool, within_limit
from dari.errors import InvalidInput
from dari.mcp.error_mapping import RpcError, invalid_params
from dari.mcp.headers import check_parameters
from dari.mcp.inflight import InflightCall
from dari.mcp.list_cache import list_page, wait_for_list
from dari.mcp.request import Request
from dari.rpc.codec import encode

_BLOCKS = (TextContent, ImageContent, AudioContent, EmbeddedResource, ResourceLink)
_NO_ARGUMENTS = Raw(b"{}")


def list_tools(request: Request) -> bytes | None:
    return list_page(request, "tools")


def call_tool(request: Request) -> bytes | None:
    name = request.params.name
    if name is UNSET:
        raise invalid_params("params.name is missing", "name the tool to call")
    open_log = request.server.registry.call_log
    if open_log is not None and (log := open_log()) is not None:
        request.record = log.begin(request, name, request.params.arguments or _NO_ARGUMENTS)
    tool = request.server.registry.tools.get(name)
    if tool is None:
        waiting = wait_for_list(request, "tools")
        if waiting is None:
            tool = request.server.registry.find_tool(name)
    if tool is None:
        if waiting is None:
            raise _unknown(name)
        InflightCall(request, _call_later(request, name, waiting), _unchanged, INNER_LIMITS_ONLY)
        return None
    value = _start(request, tool)
    renderer = render if tool.output_schema is None else render_structured
    if not tool.is_async:
        return _ended(request, value, renderer(value))
    InflightCall(request, value, renderer, tool.timeout_s)
    return None


async def _call_later(request: Request, name: str, waiting: Coroutine[Any, Any, None]) -> bytes:
    await waiting
    tool = request.server.registry.find_tool(name)
    if tool is None:
        raise _unknown(name)
    value = _start(request, tool)
    if tool.is_async:
        value = await within_limit(tool, value)
    return _ended(request, value, render(value) if tool.output_schema is None else render_structured(value))


def _ended(request: Request, value: Any, result: bytes) -> bytes:
    if request.record is not None:
        request.record.returned(value, len(result))
    return result


def _start(request: Request, tool: Tool) -> Any:
    """What the tool returns; an awaitable of it when the tool is async."""
    params = request.params
    arguments = params.arguments or _NO_ARGUMENTS
    record = request.record
    if record is not None:
        record.names(tool, arguments)
    if tool.mirrored and request.is_stateless and request.channel.headers is not None:
        check_parameters(request.channel.headers, tool, arguments)
    if tool.scope not in request.grant.scopes:
        raise InsufficientScope(tool.scope, request.grant)
    if params.request_state is not UNSET:
        request.recall()
    if tool.server or not tool.is_recorded:
        request.record = None  # the bridge records calls of other servers
    try:
        return tool.run(arguments, request)
    except InvalidInput:
        # Null counts as absent: a client that fills every member means the same.
        if bytes(arguments).strip() != b"null":
            raise
        return tool.run(_NO_ARGUMENTS, request)


def _unknown(name: str) -> RpcError:
    return invalid_params(f"unknown tool {name[:100]!r}", "tools/list shows the tools there are")


def _unchanged(result: bytes) -> bytes:
    return result


def render(value: Any) -> bytes:
    """A tool's return value as a `CallToolResult`."""
    if isinstance(value, str):
        return b'{"content":[{"type":"text","text":%b}]}' % encode(value)
    if isinstance(value, ToolResult):
        return encode(value)
    if isinstance(value, RawResult):
        return bytes(value.body)
    if isinstance(value, _BLOCKS):
        return b'{"content":[%b]}' % encode(value)
    if isinstance(value, list) and all(isinstance(block, _BLOCKS) for block in value):
        return b'{"content":%b}' % encode(value)
    if isinstance(value, (Struct, dict)):
        return render_structured(value)
    return b'{"content":[{"type":"text","text":%b}]}' % encode(encode(value).decode())


def render_structured(value: Any) -> bytes:
    """The value as `structuredContent`, and as text for clients that read only text."""
    if isinstance(value, ToolResult):
        return encode(value)
    if isinstance(value, RawResult):
        return bytes(value.body)
    structured = encode(value)
    return b'{"content":[{"type":"text","text":%b}],"structuredContent":%b}' % (
        encode(structured.decode()),
        structured,
    )
