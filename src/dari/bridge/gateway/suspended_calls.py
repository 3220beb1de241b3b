"""Calls of clients of the stateless era, which can only be asked with a result, and answer with the next request.

A server of the same era asks that way too: its questions are handed on under its own keys, and what it wants to see
again travels inside our signed `requestState`. A server of the handshake era asks in the middle of a call: that call
goes on here between the two requests, for a limited time, and is taken up again by an id in the same place.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import UNSET, Raw

from dari.bridge.gateway.caller_context import CallerContext, to_relayed
from dari.bridge.upstream.caller import Caller
from dari.core.context import Context, Relayed
from dari.errors import Unavailable
from dari.mcp.client.input_required import read_input_required
from dari.mcp.client.results import InputRequiredResult as Required
from dari.mcp.client_requests import InputRequired, require_capabilities
from dari.mcp.error_mapping import RpcError, invalid_params
from dari.rpc.codec import decode_any, decode_members, encode

MAX_CALLS = 256
TTL_S = 600.0
_ID, _ROUND, _REMOTE = "parked", "round", "remote"

Work = Callable[[Caller], Awaitable[Raw]]


class SuspendedCall(CallerContext):
    """One call, with what it was asked and what it still has to ask."""

    __slots__ = ("asked", "expiry", "id", "is_full", "session_key", "task", "_answers", "_count", "_fresh", "_turn")

    def __init__(self, context: Context, work: Work, is_full: Callable[[], bool]) -> None:
        super().__init__(context)
        self.id = secrets.token_hex(12)
        self.session_key = context.session_key
        self.is_full = is_full
        self.asked: dict[str, Relayed] = {}
        self.expiry: asyncio.TimerHandle | None = None
        self._fresh: dict[str, Relayed] = {}
        self._answers: dict[str, asyncio.Future[Any]] = {}
        self._count = 0
        self._turn = asyncio.Event()
        self.task: asyncio.Task[Raw] = asyncio.ensure_future(self._run(work, _read_answers(context)))
        # It may fail while no caller waits for it.
        self.task.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def ask(self, method: str, params: Raw) -> Any:
        """Called by the server's side: wait until a request brings the answer."""
        question = to_relayed(method, params)
        if self.context is not None:
            self.check_capability(question, self.context)
        if self.is_full():
            raise Unavailable("too many calls wait for answers already", "answer them first")
        self._count += 1
        key = f"{method.partition('/')[0]}-{self._count}"
        answer = self._answers[key] = asyncio.get_running_loop().create_future()
        self._fresh[key] = question
        self._turn.set()
        try:
            return await answer
        finally:
            # The server may change its mind, or the call may end.
            for open_questions in (self._answers, self._fresh, self.asked):
                open_questions.pop(key, None)

    def answer(self, answers: dict[str, Any]) -> None:
        for key, value in answers.items():
            waiting = self._answers.get(key)
            if waiting is not None and not waiting.done():
                waiting.set_result(Raw(encode(value)))

    async def turn(self) -> bool:
        """Wait until the call is over, or asks something new; whether it is over."""
        while not self._fresh and not self.task.done():
            self._turn.clear()
            await self._turn.wait()
        self.asked |= self._fresh
        self._fresh.clear()
        return self.task.done()

    async def _run(self, work: Work, answered: bytes) -> Raw:
        try:
            return await work(self.caller(takes_questions=True, answered=answered))
        finally:
            self._turn.set()


class SuspendedCalls:
    """At most 256 calls for at most ten minutes each."""

    def __init__(self, most_calls: int = MAX_CALLS, ttl_s: float = TTL_S) -> None:
        self._most_calls = most_calls
        self._ttl_s = ttl_s
        self._parked: dict[str, SuspendedCall] = {}

    def __len__(self) -> int:
        return len(self._parked)

    async def run(self, context: Context, work: Work) -> Raw:
        """Begin the call, or go on with it where the last request left it. Ends with `InputRequired` to ask."""
        call = self._taken(context) or SuspendedCall(context, work, lambda: len(self._parked) >= self._most_calls)
        call.context = context
        try:
            if call.asked:
                await self._answer(call, context)
            while not await call.turn():
                await self._answer(call, context)
            result = call.task.result()
            required = read_input_required(result)
            if required is not None:
                raise _to_input_required(required, context)
            if call.unasked is not None and is_error(result):
                raise call.unasked
            return result
        except (InputRequired, RpcError):
            if not call.task.done():
                self._park(call)
            raise
        except BaseException:
            await _wait_for_end(call.task)
            raise

    def end_sessions(self, has_ended: Callable[[str], bool]) -> None:
        """End the calls whose clients are gone."""
        for call in [each for each in self._parked.values() if has_ended(each.session_key)]:
            if call.expiry is not None:
                call.expiry.cancel()
            self._expire(call)

    async def close(self) -> None:
        calls, self._parked = list(self._parked.values()), {}
        for call in calls:
            if call.expiry is not None:
                call.expiry.cancel()
            await _wait_for_end(call.task)

    async def _answer(self, call: SuspendedCall, context: Context) -> None:
        context.state[_ID] = call.id
        context.state[_ROUND] = context.state.get(_ROUND, 0) + 1  # a state is good for one round
        asked = dict(call.asked)
        answers = await context.ask(asked)
        context.forget_answers(*asked)
        call.asked.clear()
        call.answer(answers)

    def _taken(self, context: Context) -> SuspendedCall | None:
        parked_id = context.state.get(_ID)
        if parked_id is None:
            return None
        call = self._parked.pop(parked_id, None)
        if call is None:
            raise invalid_params("the call that asked does not wait any more", "start it again without requestState")
        if call.expiry is not None:
            call.expiry.cancel()
        return call

    def _park(self, call: SuspendedCall) -> None:
        call.context = None
        self._parked[call.id] = call
        call.expiry = asyncio.get_running_loop().call_later(self._ttl_s, self._expire, call)

    def _expire(self, call: SuspendedCall) -> None:
        if self._parked.pop(call.id, None) is not None:
            call.task.cancel()


def is_error(result: Raw) -> bool:
    """Whether a tool's result tells a failure."""
    body = bytes(result)
    return b'"isError"' in body and decode_any(decode_members(body).get("isError", Raw(b"false"))) is True


def _read_answers(context: Context) -> bytes:
    """What the client brings for a server that asked with a result: members of an object, without its braces."""
    members: dict[str, Any] = {}
    if context.given_answers:
        members["inputResponses"] = dict(context.given_answers)
    if (state := context.state.pop(_REMOTE, None)) is not None:
        members["requestState"] = state
    return encode(members)[1:-1] if members else b""


def _to_input_required(required: Required, context: Context) -> InputRequired:
    """Questions of a server of the stateless era, under its own keys."""
    if required.request_state is not UNSET:
        context.state[_REMOTE] = required.request_state
    asked = {} if required.input_requests is UNSET else required.input_requests
    questions = {key: to_relayed(one.method, one.params) for key, one in asked.items()}
    require_capabilities(questions, context.capabilities)
    return InputRequired(questions)


async def _wait_for_end(task: asyncio.Task[Raw]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
