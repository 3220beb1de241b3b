"""A tool of ours, called by a person at a shell: no server in between, the same result as over MCP."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from dari.core.audit.calls import CallRecord
from dari.core.context import Context
from dari.core.tool import Tool
from dari.errors import DariError, InvalidInput, TimedOut
from dari.mcp.error_mapping import error_result, to_dari_error
from dari.mcp.handlers.tools import render, render_structured

if TYPE_CHECKING:
    from dari.core.audit.writer import RecordWriter


async def call_tool(
    tool: Tool, arguments: bytes, context: Context, log: RecordWriter | None, timeout_s: float | None = None
) -> bytes:
    """A `CallToolResult`; a failure of the tool is one too. InvalidInput when the arguments are wrong."""
    limit_s = tool.timeout_s if timeout_s is None else timeout_s
    record = None if log is None else CallRecord(log, context, tool.name, arguments)
    if record is not None:
        record.names(tool, arguments)
    try:
        return await _call(tool, arguments, context, limit_s, record)
    except BaseException as error:
        if record is not None:
            record.raised(error)
        raise


async def _call(
    tool: Tool, arguments: bytes, context: Context, limit_s: float | None, record: CallRecord | None
) -> bytes:
    try:
        value = tool.run(arguments, context)
        if tool.is_async:
            async with asyncio.timeout(limit_s):
                value = await value
    except InvalidInput:
        raise
    except TimeoutError as error:
        raise TimedOut(f"'{tool.name}' was not done in {limit_s:g} s", "allow more: --timeout MS") from error
    except (DariError, Exception) as error:
        failure = to_dari_error(error, f"{tool.name} failed")
        if record is not None:
            record.raised(failure)
        return error_result(failure)
    result = (render if tool.output_schema is None else render_structured)(value)
    if record is not None:
        record.returned(value, len(result))
    return result
