"""The caller of `ask`: its own model by sampling, and its progress.

`kebab mcp` answers in a thread of its own process (`CallerModel`), the hub through kebabd (`ask_in_rounds`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dari.core.context import Context
from dari.errors import DariError, Failed, Unavailable
from dari.knowledge.ask.sampling import SamplingReply, sample_key

if TYPE_CHECKING:
    from dari.knowledge.api import KnowledgeApi
    from dari.knowledge.ask.asker import AskEvents
    from dari.knowledge.ask.chat import Sampler
    from dari.knowledge.ask.prompt import ChatMessage
    from dari.knowledge.search.request import SearchResult
    from dari.knowledge.wire.objects import AnswerV1

SAMPLE_LIMIT_S = 300.0
MAX_SAMPLES = 16
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
        from dari.knowledge.ask.asker import AskEvents

        return AskEvents(self._retrieved, self._wrote) if self._context.wants_progress else None

    def _sample(self, messages: Sequence[ChatMessage], max_tokens: int) -> str:
        asked = asyncio.run_coroutine_threadsafe(_sample(self._context, messages, max_tokens), self._loop)
        try:
            return asked.result(SAMPLE_LIMIT_S)
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


async def ask_in_rounds(api: KnowledgeApi, query: str, session_id: str | None, context: Context) -> AnswerV1:
    """An answer from another process, which ends a round with what the client's model is to be asked."""
    replies: dict[str, SamplingReply] | None = {} if "sampling" in context.capabilities else None
    while True:
        step = await api.ask(query, session_id, replies)
        if step.answer is not None:
            return step.answer
        asked = step.sample
        if asked is None or replies is None or len(replies) >= MAX_SAMPLES:
            raise Failed(f"kebabd asked the client's model more than {MAX_SAMPLES} times", "ask a simpler question")
        context.report(2.0 * len(replies) + 1, message="the client's model is asked")
        try:
            replies[asked.key] = SamplingReply(await _sample(context, asked.messages, asked.max_tokens))
        except DariError as error:
            replies[asked.key] = SamplingReply(error=error.message)
        context.report(2.0 * len(replies), message="the client's model has answered")


async def _sample(context: Context, messages: Sequence[ChatMessage], max_tokens: int) -> str:
    """What the client's model writes. In the stateless era this ends the call until the client has answered; the key
    keeps an answer from being taken for another question when the index has changed between."""
    said = [
        {"role": one.role, "content": {"type": "text", "text": one.content}} for one in messages if one.role != "system"
    ]
    system = "\n\n".join(one.content for one in messages if one.role == "system")
    extra: dict[str, Any] = {"systemPrompt": system} if system else {}
    key = sample_key(messages, max_tokens)
    return _text_of(await context.sample(said, max_tokens, key=key, **extra))


def _text_of(result: dict[str, Any]) -> str:
    content = result.get("content")
    blocks = content if isinstance(content, list) else [content]
    found = [block.get("text", "") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    if not any(found):
        raise Unavailable("the client's model answered without text", "configure a server: [llm] endpoint")
    return "".join(found)
