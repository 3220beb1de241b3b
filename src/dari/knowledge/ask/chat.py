"""Language models that write an answer: a server, or the client's own model by MCP sampling."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from dari.errors import DariError
from dari.knowledge.ask.prompt import ChatMessage, count_tokens
from dari.knowledge.config import LlmSettings
from dari.knowledge.errors import ConfigInvalid, ModelUnreachable
from dari.knowledge.model_server import ModelServer

MAX_EVENT_BYTES = 4096
"""Of a stream, for each token that was asked for: an event that carries one token is 200 to 400 bytes of JSON."""
_FURTHER_CHARS = 64 * 1024
Sampler = Callable[[Sequence[ChatMessage], int], str]
"""Asks the client's model: messages and a limit of tokens in, text out; raises DariError where the client refuses."""


class ChatModel(Protocol):
    """Writes text for messages, piece by piece."""

    @property
    def id(self) -> str: ...

    @property
    def provider(self) -> str: ...

    def stream(self, messages: Sequence[ChatMessage], max_tokens: int) -> Iterator[str]: ...


class ServerChat:
    """A model behind `/v1/chat/completions`: Ollama, llama.cpp, vLLM, LM Studio and the rest."""

    provider = "openai"

    def __init__(self, settings: LlmSettings) -> None:
        if not settings.model:
            raise ConfigInvalid("[llm] model must name the server's model, it is empty", "such as model = 'qwen2.5:7b'")
        self._settings = settings
        self._server = ModelServer(settings.endpoint, settings.api_key_env, settings.timeout_s)
        self.id = settings.model

    def stream(self, messages: Sequence[ChatMessage], max_tokens: int) -> Iterator[str]:
        body: dict[str, Any] = {
            "model": self.id,
            "messages": [{"role": one.role, "content": one.content} for one in messages],
            "max_tokens": max_tokens,
            "temperature": self._settings.temperature,
            "stream": True,
        }
        if self._settings.seed is not None:
            body["seed"] = self._settings.seed
        written = 0
        max_chars = 16 * max_tokens + _FURTHER_CHARS
        for event in self._server.stream("/chat/completions", body, MAX_EVENT_BYTES * max_tokens + 2**20):
            delta = _delta(event)
            written += len(delta)
            if written > max_chars:
                raise ModelUnreachable(
                    f"{self._settings.endpoint} wrote more than {max_chars} characters for {max_tokens} tokens",
                    "check that the server obeys max_tokens",
                )
            if delta:
                yield delta
        if not written:
            raise ModelUnreachable(
                f"{self._settings.endpoint} streamed no text for model {self.id!r}", "check that it is a chat model"
            )


class SamplingChat:
    """The client's own model. It answers at once, so the stream has one piece."""

    id = "client"
    provider = "sampling"

    def __init__(self, sample: Sampler) -> None:
        self._sample = sample

    def stream(self, messages: Sequence[ChatMessage], max_tokens: int) -> Iterator[str]:
        yield self._sample(messages, max_tokens)


def choose_chat(settings: LlmSettings, sampler: Sampler | None) -> ChatModel | None:
    """The model to ask: a configured server, else the client's model, else none."""
    if settings.provider == "none":
        return None
    if settings.provider in ("auto", "openai") and settings.endpoint:
        return ServerChat(settings)
    if settings.provider == "openai":
        raise ConfigInvalid("[llm] endpoint must be set for provider 'openai'", "such as http://127.0.0.1:11434/v1")
    if sampler is not None:
        return SamplingChat(sampler)
    return None


def complete(model: ChatModel, messages: Sequence[ChatMessage], max_tokens: int) -> str:
    """The whole text at once."""
    return "".join(model.stream(messages, max_tokens)).strip()


def try_complete(model: ChatModel, messages: Sequence[ChatMessage], max_tokens: int) -> str:
    """The text, or nothing where the model fails: for steps that have a plain way without it."""
    try:
        return complete(model, messages, max_tokens)
    except DariError:
        return ""


def prompt_tokens(messages: Sequence[ChatMessage]) -> int:
    return sum(count_tokens(one.content) + 4 for one in messages)


def _delta(event: Any) -> str:
    """The text of one event; a server's error inside the stream is an error."""
    if isinstance(event, dict) and event.get("error"):
        raise ModelUnreachable(f"the model's server stopped: {event['error']}", "look at the server's log")
    try:
        choice = event["choices"][0]
        content = (choice.get("delta") or {}).get("content") or choice.get("text") or ""
    except (KeyError, IndexError, TypeError, AttributeError):
        return ""
    return content if isinstance(content, str) else ""
