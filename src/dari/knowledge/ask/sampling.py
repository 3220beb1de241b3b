"""The client's own model, asked from a process that cannot reach the client.

kebabd ends `kebab.ask` with the question for the model; the hub asks the client and makes the same call again with the
reply. Each round searches anew and records nothing before the last, so a reply counts only for the words that it was
given: its key is a digest of them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from dari.errors import Unavailable
from dari.knowledge.ask.prompt import ChatMessage
from dari.knowledge.wire.objects import AnswerV1

# The fence around passages has a new nonce in each round; the passages are the same.
_NONCE = re.compile(r"passages-[0-9a-f]{8}\b")


class SamplingRequest(Struct, frozen=True):
    """What the client's model is to be asked."""

    key: str
    messages: tuple[ChatMessage, ...]
    max_tokens: int


class SamplingReply(Struct, frozen=True):
    """What the client's model wrote, or why it did not."""

    text: str = ""
    error: str = ""


class AskStep(Struct, frozen=True):
    """The end of one round: an answer, or a question for the client's model."""

    answer: AnswerV1 | None = None
    sample: SamplingRequest | None = None


class SamplingNeeded(Exception):
    """Ends a round. No DariError, so that nothing takes it for a model that failed."""

    def __init__(self, request: SamplingRequest) -> None:
        super().__init__("the client's model has to be asked")
        self.request = request


class ReplayedSampler:
    """Gives the replies of earlier rounds, and ends the round at the first question without one."""

    def __init__(self, replies: Mapping[str, SamplingReply]) -> None:
        self._replies = replies

    def __call__(self, messages: Sequence[ChatMessage], max_tokens: int) -> str:
        key = sample_key(messages, max_tokens)
        reply = self._replies.get(key)
        if reply is None:
            raise SamplingNeeded(SamplingRequest(key, tuple(messages), max_tokens))
        if reply.error:
            raise Unavailable(reply.error, "configure a server: [llm] endpoint")
        return reply.text


def sample_key(messages: Sequence[ChatMessage], max_tokens: int) -> str:
    """The same for the same words, in every round and process."""
    words = _NONCE.sub("passages", msgspec.json.encode((messages, max_tokens)).decode())
    return f"sample-{hashlib.sha256(words.encode()).hexdigest()[:24]}"
