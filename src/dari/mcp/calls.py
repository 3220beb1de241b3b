"""Calls in flight: run in a task, end once, by result, failure, cancellation or time limit."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from dari.errors import TimedOut
from dari.mcp.asking import InputRequired
from dari.mcp.failures import Fault, as_failure, failure_data, failure_result, is_rpc_error
from dari.rpc.codec import encode, error_message, result_message

if TYPE_CHECKING:
    from dari.mcp.request import Request
    from dari.mcp.server import Server

CANCELLED = -32800
_COMPLETE = b'{"resultType":"complete",'
Render = Callable[[Any], bytes]


class Call:
    """One running request. It is in `server.calls`, and in `session.running` where it can be cancelled by id."""

    __slots__ = ("_ended_by", "_request", "_server", "task", "_timer")

    def __init__(
        self, server: Server, request: Request, work: Awaitable[Any], render: Render, timeout_s: float
    ) -> None:
        self._server = server
        self._request = request
        self._ended_by = ""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(timeout_s, self._expire, timeout_s)
        server.calls.add(self)
        session = request.link.session
        if session is not None:
            session.running[request.request_id] = self
        request.link.started(self)
        self.task = _start(loop, self._run(work, render))

    def cancel(self, reason: str) -> None:
        """End the call without a result."""
        self._ended_by = reason
        self.task.cancel()

    def _expire(self, timeout_s: float) -> None:
        self._ended_by = f"time limit of {timeout_s:g} s"
        self.task.cancel()

    async def _run(self, work: Awaitable[Any], render: Render) -> None:
        request = self._request
        try:
            message, code = _success(request, render(await work)), 0
        except asyncio.CancelledError:
            message, code = self._cancelled()
        except Exception as error:
            message, code = failure_message(request, error)
        self._forget()
        if message:
            request.link.reply(message, code)
        else:
            request.link.abandon(error_message(request.request_id, CANCELLED, f"Request cancelled: {self._ended_by}"))

    def _cancelled(self) -> tuple[bytes, int]:
        if self._ended_by.startswith("time limit"):
            error = TimedOut(f"the {self._ended_by} passed", "try again, or ask for less at once")
            return failure_message(self._request, error)
        return b"", 0

    def _forget(self) -> None:
        self._timer.cancel()
        self._server.calls.discard(self)
        session = self._request.link.session
        if session is not None and session.running.get(self._request.request_id) is self:
            del session.running[self._request.request_id]


def failure_message(request: Request, error: BaseException) -> tuple[bytes, int]:
    """The reply for an exception, and its JSON-RPC error code (0 when the reply is a result)."""
    if isinstance(error, InputRequired):
        return _success(request, _input_required(request, error)), 0
    if isinstance(error, Fault):
        return error_message(request.request_id, error.code, error.message, error.data), error.code
    failure = as_failure(error, f"{request.method} failed")
    if request.method == "tools/call" and not is_rpc_error(request.version):
        return _success(request, failure_result(failure)), 0
    data = failure_data(failure)
    data = {"name": data["name"], "hint": data["hint"]}
    return error_message(request.request_id, failure.code, failure.wire_message, data), failure.code


def _success(request: Request, result: bytes) -> bytes:
    if request.is_stateless:
        result = stateless_result(result)
    return result_message(request.request_id, result)


def stateless_result(result: bytes) -> bytes:
    """Every result of the stateless era says what kind it is."""
    if result.startswith(b'{"resultType"'):
        return result
    return _COMPLETE[:-1] + b"}" if result == b"{}" else _COMPLETE + result[1:]


def _input_required(request: Request, required: InputRequired) -> bytes:
    asked = {key: {"method": q.method, "params": q.params()} for key, q in required.questions.items()}
    body = {"resultType": "input_required", "inputRequests": asked, "requestState": request.sealed_state()}
    return encode(body)


if sys.version_info >= (3, 12):

    def _start(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.Task(work, loop=loop, eager_start=True)

else:

    def _start(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return loop.create_task(work)
