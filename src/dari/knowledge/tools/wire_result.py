"""How kebab's tools meet the wire: the text is the wire JSON, a failure is `isError` with `error.v1`, always.

`dari.mcp.error_mapping` turns a failure into the house's form, which in 2024-11-05 is a JSON-RPC error. Design 004
wants a result in every version, so failures are caught here, those of reading the arguments included. Two
things pass through: a question to the client, and protocol errors.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from dari.core.content import TextContent, ToolResult
from dari.core.context import Context
from dari.core.model_schema import simplify_tool
from dari.core.tool import INNER_LIMITS_ONLY, Tool
from dari.knowledge.errors import classify, is_bug
from dari.knowledge.wire.objects import SearchResponseV1
from dari.mcp.client_requests import InputRequired
from dari.mcp.error_mapping import RpcError
from dari.mcp.versions import has_structured_output
from dari.rpc.codec import encode
from dari.text.redact import redact_secrets

PART = "kebab"
_log = logging.getLogger("dari.kebab")


def to_wire_tool(tool: Tool) -> Tool:
    """The tool with its results and failures in the form of design 004."""
    limit_s, plain = tool.timeout_s, simplify_tool(tool)

    async def run(arguments: bytes | Raw, context: Context) -> ToolResult:
        try:
            async with asyncio.timeout(limit_s):
                value = plain.run(arguments, context)
                return wire_result(await value if tool.is_async else value, getattr(context, "version", ""))
        except (InputRequired, RpcError):
            raise
        except Exception as error:
            return error_result(error)

    return replace(plain, run=run, is_async=True, timeout_s=INNER_LIMITS_ONLY, part=PART)


def wire_result(value: Struct, version: str = "") -> ToolResult:
    """The object as text, and as structured content for versions that know it. A search's text is the bare array of
    its hits."""
    shown = redact_secrets(value)
    body = encode(shown)
    text = encode(shown.hits) if isinstance(shown, SearchResponseV1) else body
    if not has_structured_output(version):
        return ToolResult(content=[TextContent(text=text.decode())])
    return ToolResult(content=[TextContent(text=text.decode())], structured_content=Raw(body))


def error_result(error: Exception) -> ToolResult:
    """A failure as `error.v1`; what nobody expected is logged whole."""
    if is_bug(error):
        _log.error("kebab event=fatal", exc_info=error)
    return ToolResult(content=[TextContent(text=encode_wire(classify(error)))], is_error=True)


def encode_wire(value: Any) -> str:
    return msgspec.json.encode(value).decode()
