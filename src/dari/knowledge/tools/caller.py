"""The caller of `ask`, from the thread that answers: its own model by sampling, and its progress."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dari.core.context import Context
from dari.errors import Unavailable
from dari.knowledge.ask.asker import AskEvents

if TYPE_CHECKING:
    from dari.knowledge.ask.chat import Sampler
    from dari.knowledge.ask.prompt import Message
    from dari.knowledge.search.request import SearchResult

SAMPLE_LIMIT_S = 300.0
_STEPS = 3.0
_RETRIEVED, _WRITING = 1.0, 2.0


class CallerModel:
    """Made on the loop, used in a thread."""

    def __init__(self, context: Context, loop: asyncio.AbstractEventLoop) -> None:
        self._context = context
        self._loop = loop
        self._characters = 0

    def sampler(self) -> Sampler | None:
        """None where the client has no model to ask."""
        return self._sample if "sampling" in self._context.capabilities else None

    def events(self) -> AskEvents | None:
        return AskEvents(self._retrieved, self._wrote) if self._context.wants_progress else None

    def _sample(self, messages: Sequence[Message], max_tokens: int) -> str:
        said = [
            {"role": one.role, "content": {"type": "text", "text": one.content}}
            for one in messages
            if one.role != "system"
        ]
        system = "\n\n".join(one.content for one in messages if one.role == "system")
        extra: dict[str, Any] = {"systemPrompt": system} if system else {}
        asked = asyncio.run_coroutine_threadsafe(self._context.sample(said, max_tokens, **extra), self._loop)
        try:
            return _text_of(asked.result(SAMPLE_LIMIT_S))
        except TimeoutError:
            asked.cancel()
            raise Unavailable(
                f"the client's model did not answer within {SAMPLE_LIMIT_S:g} s", "configure a server: [llm] endpoint"
            ) from None

    def _retrieved(self, result: SearchResult) -> None:
        self._report(_RETRIEVED, f"{len(result.hits)} passages")

    def _wrote(self, text: str) -> None:
        self._characters += len(text)
        self._report(_WRITING + self._characters / (self._characters + 1000.0), f"{self._characters} characters")

    def _report(self, progress: float, message: str) -> None:
        self._loop.call_soon_threadsafe(self._context.report, progress, _STEPS, message)


def _text_of(result: dict[str, Any]) -> str:
    content = result.get("content")
    blocks = content if isinstance(content, list) else [content]
    found = [block.get("text", "") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    if not any(found):
        raise Unavailable("the client's model answered without text", "configure a server: [llm] endpoint")
    return "".join(found)
