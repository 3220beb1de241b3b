"""Requests of a server to its client: answered by callbacks, the same in both eras, cancelled when it withdraws."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from dari.core.context import Elicited, Root
from dari.errors import DariError, Denied, InvalidInput
from dari.mcp.client.decode import read
from dari.mcp.client.errors import RemoteError
from dari.rpc.codec import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    encode,
    error_message,
    result_message,
)
from dari.struct_types import ready


def fill_in(schema: Mapping[str, Any], content: Mapping[str, Any] | None) -> dict[str, Any]:
    """The content with defaults for what it lacks."""
    filled = dict(content or {})
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for name, part in properties.items():
            if name not in filled and isinstance(part, dict) and part.get("default") is not None:
                filled[name] = part["default"]
    return filled


_NOTHING = Raw(b"{}")


class Elicitation(Struct, rename="camel", frozen=True, kw_only=True):
    """The server asks the person to fill in a form, or (`mode` is `url`) to open a page."""

    message: str
    mode: str = "form"
    requested_schema: dict[str, Any] = {}
    url: str = ""
    elicitation_id: str = ""
    raw: Raw = field(default=_NOTHING, name="(raw)")
    """The params as they came."""


class Sampling(Struct, rename="camel", frozen=True, kw_only=True):
    """The server asks the client's model."""

    messages: list[dict[str, Any]] = []
    max_tokens: int = 0
    system_prompt: str = ""
    raw: Raw = field(default=_NOTHING, name="(raw)")
    """The params as they came: model preferences, tools and all."""


class Sampled(Struct, rename="camel", frozen=True):
    """What the model said."""

    model: str
    content: Any
    role: str = "assistant"
    stop_reason: str | UnsetType = UNSET


OnElicit = Callable[[Elicitation], Awaitable[Elicited | Mapping[str, Any] | Raw]]
OnSample = Callable[[Sampling], Awaitable[Sampled | Mapping[str, Any] | Raw]]
OnRoots = Callable[[], Awaitable[Sequence[Root | str]]]


class Callbacks:
    """Knows what was given, and so what to declare. A `Raw` that a callback returns is sent as it is."""

    def __init__(
        self,
        *,
        on_sample: OnSample | None = None,
        on_elicit: OnElicit | None = None,
        on_roots: OnRoots | None = None,
        capabilities: Mapping[str, Any] | None = None,
    ) -> None:
        self._on_sample = on_sample
        self._on_elicit = on_elicit
        self._on_roots = on_roots
        declared: dict[str, Any] = {}
        if on_sample is not None:
            declared["sampling"] = {}
        if on_elicit is not None:
            declared["elicitation"] = {"form": {}, "url": {}}
        if on_roots is not None:
            declared["roots"] = {"listChanged": True}
        self.can_be_asked = bool(declared)
        self.capabilities: dict[str, Any] = {**declared, **(capabilities or {})}

    async def answer(self, method: str, params: Raw) -> Any:
        """The result of one question, ready to encode. RemoteError when there is no callback for it."""
        if method == "elicitation/create" and self._on_elicit is not None:
            return await self._elicit(self._on_elicit, params)
        if method == "sampling/createMessage" and self._on_sample is not None:
            asked = msgspec.structs.replace(_read(params, Sampling, method), raw=params)
            return await self._on_sample(asked)
        if method == "roots/list" and self._on_roots is not None:
            roots = await self._on_roots()
            return {"roots": [Root(uri=root) if isinstance(root, str) else root for root in roots]}
        raise RemoteError(METHOD_NOT_FOUND, f"this client does not answer {method}", {"method": method})

    async def _elicit(self, on_elicit: OnElicit, params: Raw) -> Any:
        asked = msgspec.structs.replace(_read(params, Elicitation, "elicitation/create"), raw=params)
        answer = await on_elicit(asked)
        if isinstance(answer, Raw):
            return answer
        if isinstance(answer, Mapping):
            answer = _to_elicited(answer)
        if answer.action != "accept" or asked.mode != "form":
            return {"action": answer.action}
        return {"action": "accept", "content": fill_in(asked.requested_schema, answer.content)}


def _read(params: Raw, wanted: Any, method: str) -> Any:
    try:
        return read(params, wanted, f"{method} request")
    except Exception as error:
        raise RemoteError(INVALID_PARAMS, str(error)) from None


def _to_elicited(answer: Mapping[str, Any]) -> Elicited:
    try:
        return msgspec.convert(answer, ready(Elicited))
    except msgspec.ValidationError as error:
        raise InvalidInput(f"on_elicit returned {answer!r}: {error}", "return an Elicited") from None


MAX_REQUESTS = 64
# The code of MCP's own example for a person who says no to sampling.
_REFUSED_BY_PERSON = -1


# A person or a model answers these, and takes longer than a call has time.
_SLOW = ("elicitation/create", "sampling/createMessage")


class Clocks(Protocol):
    """The time limits of the requests that run."""

    def hold(self) -> None: ...
    def release(self) -> None: ...


class ServerRequests:
    """Answers each question in a task of its own, at most 64 at once; one more is refused."""

    def __init__(self, answers: Callbacks, send: Callable[[bytes], None]) -> None:
        self.answers = answers
        self.clocks: Clocks | None = None
        """Stopped while a person or a model is asked."""
        self._send = send
        self._tasks: dict[Any, asyncio.Task[None]] = {}

    def take(self, question_id: Any, method: str, params: Raw | UnsetType) -> None:
        if method == "ping":
            self._send(result_message(question_id, b"{}"))
        elif question_id in self._tasks:
            self._send(error_message(question_id, INVALID_REQUEST, "a question with this id is open"))
        elif len(self._tasks) >= MAX_REQUESTS:
            self._send(error_message(question_id, INTERNAL_ERROR, "too many questions at once"))
        else:
            raw = params if isinstance(params, Raw) else Raw(b"{}")
            task = asyncio.get_running_loop().create_task(self._reply(question_id, method, raw))
            self._tasks[question_id] = task
            # Here, not in the task: one that is cancelled before its first step runs nothing of itself.
            task.add_done_callback(lambda _: self._forget(question_id, task))

    def cancel(self, question_id: Any) -> bool:
        """False when this question is not open."""
        task = self._tasks.get(question_id) if isinstance(question_id, int | str) else None
        return task is not None and task.cancel()

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _reply(self, question_id: Any, method: str, params: Raw) -> None:
        clocks = self.clocks if method in _SLOW else None
        if clocks is not None:
            clocks.hold()
        try:
            message = result_message(question_id, encode(await self.answers.answer(method, params)))
        except RemoteError as error:
            message = error_message(question_id, error.remote_code, error.message, error.data)
        except DariError as error:
            code = _REFUSED_BY_PERSON if isinstance(error, Denied) else INTERNAL_ERROR
            message = error_message(question_id, code, error.message)
        except Exception as error:
            message = error_message(question_id, INTERNAL_ERROR, f"{type(error).__name__}: {error}")
        finally:
            if clocks is not None:
                clocks.release()
        self._tasks.pop(question_id, None)  # the server may use the id again as soon as it has the answer
        self._send(message)

    def _forget(self, question_id: Any, task: asyncio.Task[None]) -> None:
        if self._tasks.get(question_id) is task:
            del self._tasks[question_id]
