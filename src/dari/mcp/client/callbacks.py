"""Callbacks that answer a server: the same ones in both eras."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from dari.core.context import Elicited, Root
from dari.errors import InvalidInput
from dari.mcp.client.decode import read
from dari.mcp.client.errors import RemoteError
from dari.rpc.codec import INVALID_PARAMS, METHOD_NOT_FOUND


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
    """The server asks the person to fill in a form, or (`mode` is `url`) to visit a page."""

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
        return msgspec.convert(answer, Elicited)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"on_elicit returned {answer!r}: {error}", "return an Elicited") from None
