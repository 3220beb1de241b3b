"""Calls in flight: each ends once, by result, failure, cancellation or time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from dari.core.pending import PendingResult
from dari.errors import DariError, Failed, TimedOut
from dari.mcp.client_requests import InputRequired
from dari.mcp.error_mapping import RpcError, error_data, error_result, maps_to_rpc_error, to_dari_error
from dari.rpc.codec import decode_members, encode, error_message, result_message
from dari.text.redact import redact_secrets

if TYPE_CHECKING:
    from dari.mcp.request import Request
    from dari.mcp.session import Session

CANCELLED = -32800
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
_COMPLETE = b'{"resultType":"complete",'
Render = Callable[[Any], bytes]


class InflightCall:
    """One running request. It is in `server.calls`, and in `session.running` where it can be cancelled by id.

    It runs in a task, unless it has begun already and only waits: then there is none.
    """

    __slots__ = ("_ended_by", "_has_expired", "_has_started", "_request", "_timeout_s", "task")

    def __init__(
        self, request: Request, work: Coroutine[Any, Any, Any] | PendingResult, render: Render, timeout_s: float | None
    ) -> None:
        self._request = request
        self._timeout_s = timeout_s
        self._ended_by = ""
        self._has_expired = False
        self._has_started = False
        channel = request.channel
        request.server.calls.add(self, timeout_s)
        if channel.session is not None:
            channel.session.running[request.request_id] = self
        channel.started(self)
        self.task: asyncio.Future[Any]
        """Done when the call is, but for its reply, which is sent before waiters wake up."""
        if isinstance(work, PendingResult):
            self._has_started = True
            self._wait(work, render)
        else:
            self.task = asyncio.get_running_loop().create_task(self._run(work, render))

    def cancel(self, reason: str) -> None:
        """End the call without a result."""
        self._ended_by = reason or "without a reason"
        # A task that is cancelled before its first step never runs, so it could not tidy up.
        if self._has_started:
            self.task.cancel()

    @property
    def session(self) -> Session | None:
        return self._request.channel.session

    def expire(self) -> None:
        """End the call because its time is over."""
        if not self._ended_by:
            self._has_expired = True
        self.cancel("time limit")

    async def _run(self, work: Coroutine[Any, Any, Any], render: Render) -> None:
        self._has_started = True
        request = self._request
        try:
            if self._ended_by:
                work.close()
                raise asyncio.CancelledError
            message, code = _render_value(request, await work, render), 0
        except asyncio.CancelledError:
            message, code = self._cancelled()
        except (Exception, SystemExit) as error:  # A library that exits must not take the server along.
            message, code = to_error_message(request, error)
        self._reply(message, code)

    def _wait(self, work: PendingResult, render: Render) -> None:
        self.task = work.future
        work.future.add_done_callback(lambda _: self._finish(work, render))
        if self._ended_by:
            work.future.cancel()

    def _finish(self, work: PendingResult, render: Render) -> None:
        request = self._request
        try:
            value = work.finish(work.future)
            if isinstance(value, PendingResult):
                self._wait(value, render)
                return
            message, code = self._cancelled() if self._ended_by else (_render_value(request, value, render), 0)
        except asyncio.CancelledError:
            message, code = self._cancelled()
        except Exception as error:
            message, code = to_error_message(request, error)
        self._reply(message, code)

    def _reply(self, message: bytes, code: int) -> None:
        request = self._request
        self._forget()
        if message:
            request.channel.reply(message, code)
        else:
            request.channel.abandon(
                error_message(request.request_id, CANCELLED, f"Request cancelled: {self._ended_by}")
            )

    def _cancelled(self) -> tuple[bytes, int]:
        if self._has_expired:
            error: DariError = TimedOut(
                f"the time limit of {self._timeout_s or 0:g} s passed", "try again, or ask for less at once"
            )
            return to_error_message(self._request, error)
        if not self._ended_by:
            return to_error_message(self._request, Failed("the tool cancelled itself", "try again"))
        if self._request.record is not None:
            self._request.record.raised(asyncio.CancelledError(self._ended_by))
        return b"", 0

    def _forget(self) -> None:
        request = self._request
        request.server.calls.discard(self, self._timeout_s)
        session = request.channel.session
        if session is not None and session.running.get(request.request_id) is self:
            del session.running[request.request_id]


class InflightCalls:
    """Every running call with its deadline: one timer per time limit, however many calls there are.

    Calls with the same limit end in the order they began, so the first of a queue is always due first.
    """

    def __init__(self) -> None:
        self._queues: dict[float | None, dict[InflightCall, float]] = {}
        self._has_timer: set[float] = set()

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def __iter__(self) -> Iterator[InflightCall]:
        return iter([call for queue in self._queues.values() for call in queue])

    def add(self, call: InflightCall, timeout_s: float | None) -> None:
        """None: nothing ends the call but itself and its caller."""
        queue = self._queues.get(timeout_s)
        if queue is None:
            queue = self._queues[timeout_s] = {}
        if timeout_s is None:
            queue[call] = 0.0
            return
        loop = asyncio.get_running_loop()
        queue[call] = loop.time() + timeout_s
        if timeout_s not in self._has_timer:
            self._has_timer.add(timeout_s)
            loop.call_later(timeout_s, self._check, timeout_s)

    def discard(self, call: InflightCall, timeout_s: float | None) -> None:
        self._queues[timeout_s].pop(call, None)

    def _check(self, timeout_s: float) -> None:
        loop = asyncio.get_running_loop()
        queue = self._queues[timeout_s]
        now_s = loop.time()
        for call in [call for call, due_s in queue.items() if due_s <= now_s + 0.001]:
            del queue[call]  # To the end of the queue: a call that takes long to stop must not hide the next one.
            queue[call] = now_s + timeout_s
            call.expire()
        if queue:
            loop.call_later(max(0.001, next(iter(queue.values())) - now_s), self._check, timeout_s)
        else:
            self._has_timer.discard(timeout_s)


def to_error_message(request: Request, error: BaseException) -> tuple[bytes, int]:
    """The reply for an exception, and its JSON-RPC error code (0 when the reply is a result)."""
    record_error(request, error)
    try:
        return _render_error(request, error)
    except Exception as untellable:  # e.g. a question that cannot be encoded
        return _render_error(request, untellable)


def record_error(request: Request, error: BaseException) -> None:
    """The end of a tool call that failed, for the audit log."""
    if request.record is None:
        return
    if isinstance(error, InputRequired):
        request.record.asked()
    else:
        request.record.raised(error)


def _render_value(request: Request, value: Any, render: Render) -> bytes:
    result = render(value)
    if request.record is not None:
        request.record.returned(value, len(result))
    return _render_result(request, result)


def _render_error(request: Request, error: BaseException) -> tuple[bytes, int]:
    if isinstance(error, InputRequired):
        return _render_result(request, _input_required(request, error)), 0
    if isinstance(error, RpcError):
        return error_message(
            request.request_id, error.code, redact_secrets(error.message), redact_secrets(error.data)
        ), error.code
    failure = to_dari_error(error, f"{request.method} failed")
    if request.method == "tools/call" and not maps_to_rpc_error(request.version):
        return _render_result(request, error_result(failure)), 0
    data = error_data(failure)
    data = {"name": data["name"], "hint": data["hint"]}
    return error_message(request.request_id, failure.code, failure.wire_message, data), failure.code


def _render_result(request: Request, result: bytes) -> bytes:
    if request.is_stateless:
        result = to_stateless_result(result)
    return result_message(request.request_id, result)


def to_stateless_result(result: bytes) -> bytes:
    """Every result of the stateless era says what kind it is."""
    if result.startswith(b'{"resultType"'):
        return result
    # Looking for the word is much cheaper than decoding, and it is not there unless another server wrote the result.
    if b'"resultType"' in result and "resultType" in decode_members(result):
        return result
    return join_members(_COMPLETE, result)


def to_handshake_result(result: bytes) -> bytes:
    """Another server's result without what only the stateless era knows."""
    if b'"resultType"' not in result:
        return result
    members = decode_members(result)
    if members.pop("resultType", None) is None:
        return result
    for name in ("ttlMs", "cacheScope"):
        members.pop(name, None)
    meta = members.get("_meta")
    if meta is not None and SERVER_INFO.encode() in bytes(meta):
        kept = {name: value for name, value in decode_members(meta).items() if name != SERVER_INFO}
        members["_meta"] = Raw(encode(kept))
        if not kept:
            del members["_meta"]
    return encode(members)


def join_members(head: bytes, result: bytes) -> bytes:
    """An encoded object with more members in front; `head` begins one and ends with a comma."""
    if result[1:2] == b'"':
        return head + result[1:]
    rest = result[1:].lstrip()
    return head[:-1] + rest if rest[:1] == b"}" else head + rest


def _input_required(request: Request, required: InputRequired) -> bytes:
    asked = {key: {"method": q.method, "params": q.params()} for key, q in required.questions.items()}
    body = {"resultType": "input_required", "inputRequests": asked, "requestState": request.sealed_state()}
    return encode(body)
