"""Rounds of questions in the stateless era: a result that asks back is answered, and the request repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from dari.errors import Failed, Unavailable
from dari.mcp.client.callbacks import Callbacks
from dari.mcp.client.errors import RemoteError
from dari.mcp.client.results import InputRequest, InputRequiredResult
from dari.rpc.codec import METHOD_NOT_FOUND, UNREADABLE, encode
from dari.struct_types import ready

MAX_ROUNDS = 10
_FIRST_PAUSE_S = 0.05
_MAX_PAUSE_S = 0.25
_decode = msgspec.json.Decoder(ready(InputRequiredResult)).decode


def is_input_required(result: Raw) -> bool:
    """Whether a result may be a question. Looking for the word is much cheaper than decoding a large result."""
    return b'"input_required"' in bytes(result)


async def answer_input_requests(
    result: Raw, answers: Callbacks, params: bytes, repeat: Callable[[bytes], Awaitable[Raw]]
) -> Raw:
    """The final result. `repeat` sends the request once more with the params it is given."""
    pause_s = _FIRST_PAUSE_S
    for _ in range(MAX_ROUNDS):
        required = read_input_required(result)
        if required is None:
            return result
        added: dict[str, Any] = {}
        if required.input_requests is not UNSET and required.input_requests:
            added["inputResponses"] = await _answer_all(required.input_requests, answers)
            pause_s = _FIRST_PAUSE_S
        else:
            # The server only wants to be asked again: it is busy with something.
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _MAX_PAUSE_S)
        if required.request_state is not UNSET:
            added["requestState"] = required.request_state
        result = await repeat(with_members(params, added))
    if read_input_required(result) is None:
        return result
    raise Failed(f"the server asked back more than {MAX_ROUNDS} times", "call it with more complete arguments")


def read_input_required(result: Raw) -> InputRequiredResult | None:
    """What a result asks for; None when it is final."""
    if not is_input_required(result):
        return None
    try:
        required = _decode(result)
    except UNREADABLE as error:
        raise Failed(f"the server sent an input request that MCP does not define: {error}") from None
    return required if required.result_type == "input_required" else None


async def _answer_all(questions: dict[str, InputRequest], answers: Callbacks) -> dict[str, Any]:
    tasks: dict[str, asyncio.Task[Any]] = {}
    try:
        async with asyncio.TaskGroup() as group:
            for key, question in questions.items():
                tasks[key] = group.create_task(_answer(question, answers))
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return {key: task.result() for key, task in tasks.items()}


async def _answer(question: InputRequest, answers: Callbacks) -> Any:
    try:
        return await answers.answer(question.method, question.params)
    except RemoteError as error:
        if error.remote_code != METHOD_NOT_FOUND:
            raise
        raise Unavailable(
            f"the server asks for {question.method}, and this client has no callback for it",
            "give the client a callback for it",
        ) from None


def with_members(params: bytes, added: dict[str, Any]) -> bytes:
    """Encoded params with more members at their end."""
    if not added:
        return params
    members = encode(added)
    return members if len(params) <= 2 else params[:-1] + b"," + members[1:]
