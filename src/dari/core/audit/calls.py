"""One record for one tool call of any part: made when the call begins, ended once, with its outcome."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from dari.core.audit.record import PendingRecord
from dari.core.content import ToolResult
from dari.errors import DariError, Denied, NeedsApproval, TimedOut

if TYPE_CHECKING:
    from dari.core.audit.record import Outcome
    from dari.core.audit.writer import RecordWriter
    from dari.core.context import Context
    from dari.core.tool import Tool

MAX_NAME_CHARS = 200
MAX_ERROR_CHARS = 500
_NO_DETAIL: dict[str, Any] = {}


class CallRecord:
    """The record of a call that runs. The first of `returned`, `raised` and `asked` ends it."""

    __slots__ = ("_arguments", "_context", "_log", "_part", "_started", "_tool")

    def __init__(self, log: RecordWriter, context: Context, tool: str, arguments: bytes | Raw) -> None:
        self._log: RecordWriter | None = log
        # Until the end only: it refers to this record, and what refers to itself waits for the garbage collector.
        self._context: Context | None = context
        self._tool = tool
        self._arguments = arguments
        self._part = ""
        self._started = perf_counter()

    def names(self, tool: Tool, arguments: bytes | Raw) -> None:
        """The tool that is meant: `call_tool` runs another one."""
        self._tool, self._arguments, self._part = tool.name, arguments, tool.part

    def returned(self, value: Any, result_bytes: int) -> None:
        is_error = isinstance(value, ToolResult) and value.is_error is True
        self._end("tool_error" if is_error else "ok", result_bytes=result_bytes)

    def raised(self, error: BaseException) -> None:
        code = error.name if isinstance(error, DariError) else getattr(error, "code", None) or type(error).__name__
        said = error.message if isinstance(error, DariError) else str(error)
        self._end(outcome_of(error), error=said[:MAX_ERROR_CHARS], detail={"code": code})

    def asked(self) -> None:
        """The call ended with a question to its caller; with the answer comes another call."""
        self._end("held", detail={"code": "input_required"})

    def _end(
        self, outcome: Outcome, *, result_bytes: int = 0, error: str = "", detail: dict[str, Any] | None = None
    ) -> None:
        log, context = self._log, self._context
        if log is None or context is None:
            return
        self._log = self._context = None
        given = self._arguments
        log.add(  # not `call`: to pass it all once more is a tenth of what a record costs
            PendingRecord(
                at=log.now(),
                part=self._part,
                server=self._part,
                tool=self._tool[:MAX_NAME_CHARS],
                outcome=outcome,
                who=context.who,
                session=context.session_key,
                ms=int((perf_counter() - self._started) * 1e6) / 1000,
                result_bytes=result_bytes,
                arguments=given.copy() if type(given) is Raw else Raw(given),  # a view would keep its whole message
                error=error,
                detail=detail or _NO_DETAIL,
            )
        )


def outcome_of(error: BaseException) -> Outcome:
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    if isinstance(error, NeedsApproval):
        return "held"
    if isinstance(error, Denied):
        return "denied"
    return "timed_out" if isinstance(error, TimedOut) else "error"
