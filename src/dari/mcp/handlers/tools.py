"""`tools/list` and `tools/call`."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, Struct

from dari.core.content import Audio, Embedded, Image, Link, RawResult, Text, ToolResult
from dari.core.grant import InsufficientScope
from dari.mcp.failures import invalid_params
from dari.mcp.headers import PARAM_PREFIX, check_parameters
from dari.mcp.request import Request
from dari.rpc.codec import encode

_BLOCKS = (Text, Image, Audio, Embedded, Link)
_NO_ARGUMENTS = Raw(b"{}")


def list_tools(request: Request) -> bytes:
    return request.server.lists.page("tools", request.params.cursor, request.is_stateless)


def call_tool(request: Request) -> bytes | None:
    params = request.params
    name = params.name
    if name is UNSET:
        raise invalid_params("params.name is missing", "name the tool to call")
    tool = request.server.registry.tools.get(name)
    if tool is None:
        raise invalid_params(f"unknown tool {name[:100]!r}", "tools/list shows the tools there are")
    arguments = params.arguments
    headers = request.link.headers
    if (
        headers is not None
        and request.is_stateless
        and (tool.mirrored or any(h.startswith(PARAM_PREFIX) for h in headers))
    ):
        check_parameters(headers, tool, arguments)
    if tool.scope not in request.grant.scopes:
        raise InsufficientScope(tool.scope, request.grant)
    if params.request_state is not UNSET:
        request.recall()
    value = tool.run(_NO_ARGUMENTS if arguments is UNSET else arguments, request)
    if not tool.is_async:
        return render(value)
    request.server.spawn(request, value, render, tool.timeout_s)
    return None


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
    structured = encode(value)
    text = encode(structured.decode())
    if isinstance(value, Struct | dict):
        return b'{"content":[{"type":"text","text":%b}],"structuredContent":%b}' % (text, structured)
    return b'{"content":[{"type":"text","text":%b}]}' % text
