"""What a server asks while it serves: taken, answered by the callbacks, cancelled when it changes its mind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Raw, UnsetType

from dari.errors import DariError, Denied
from dari.mcp.client.callbacks import Callbacks
from dari.mcp.client.errors import RemoteError
from dari.rpc.codec import INTERNAL_ERROR, encode, error_message, result_message

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
        elif len(self._tasks) >= MAX_REQUESTS:
            self._send(error_message(question_id, INTERNAL_ERROR, "too many questions at once"))
        else:
            raw = params if isinstance(params, Raw) else Raw(b"{}")
            self._tasks[question_id] = asyncio.get_running_loop().create_task(self._reply(question_id, method, raw))

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
            self._tasks.pop(question_id, None)
            if clocks is not None:
                clocks.release()
        self._send(message)
