"""Questions to the client: signed state between rounds, capability checks, answers validated."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from dari.core.context import ClientRequest, Elicit, Elicited, ElicitUrl, Relayed
from dari.errors import Failed, InvalidInput
from dari.mcp.error_mapping import RpcError, invalid_params
from dari.mcp.versions import MISSING_CAPABILITY
from dari.rpc.codec import encode
from dari.struct_types import ready

STATE_TTL_S = 3600
_AGAIN = "start the call again without it"


class InputRequired(Exception):
    """Ends a stateless call: the client has to answer these questions and call again."""

    def __init__(self, questions: Mapping[str, ClientRequest]) -> None:
        super().__init__("input required")
        self.questions = questions


class ClientAnsweredError(Failed):
    """The client answered a question with a JSON-RPC error: the person said no, or it cannot."""

    def __init__(self, method: str, remote_code: int, remote_message: str, data: Any = None) -> None:
        super().__init__(f"the client answered {method} with: {remote_message}", "the person or client refused")
        self.remote_code = remote_code
        self.remote_message = remote_message
        self.data = data


class RequestState(Struct, rename={"answers": "a", "state": "s", "expires_s": "e", "binding": "b"}):
    """What a call carries from round to round inside `requestState`."""

    answers: dict[str, Any] = {}
    state: dict[str, Any] = {}
    expires_s: int = 0
    binding: str = ""


class StateSigner:
    """Signs `requestState` so that a client can carry it but not change it or use it elsewhere."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(32)

    def seal(self, remembered: RequestState, *bound_to: str) -> str:
        remembered.expires_s = int(time.time()) + STATE_TTL_S
        remembered.binding = _digest(bound_to)
        payload = _b64(encode(remembered))
        return f"{payload}.{self._mac(payload)}"

    def open(self, text: str, *bound_to: str) -> RequestState:
        """Raises a fault unless we made it, for this principal and call, and it has not expired."""
        payload, _, mac = text.partition(".")
        if not hmac.compare_digest(mac.encode(), self._mac(payload).encode()):
            raise invalid_params("requestState failed its integrity check", _AGAIN)
        remembered = msgspec.json.decode(_unb64(payload), type=ready(RequestState))
        if remembered.binding != _digest(bound_to):
            raise invalid_params("requestState belongs to another call or principal", _AGAIN)
        if remembered.expires_s < time.time():
            raise invalid_params("requestState has expired", _AGAIN)
        return remembered

    def _mac(self, payload: str) -> str:
        return _b64(hmac.digest(self._key, payload.encode(), "sha256"))


def require_capabilities(questions: Mapping[str, ClientRequest], capabilities: Mapping[str, Any]) -> None:
    """Refuse to ask what the client did not declare."""
    missing: dict[str, Any] = {}
    for question in questions.values():
        declared, part = capabilities.get(question.capability), _part_needed(question)
        if declared is None or (part and not (isinstance(declared, dict) and part in declared)):
            missing[question.capability] = {part: {}} if part else {}
    if missing:
        names = ", ".join(sorted(missing))
        raise RpcError(
            MISSING_CAPABILITY,
            f"this call needs client capabilities that were not declared: {names}",
            {"requiredCapabilities": missing},
        )


def _part_needed(question: ClientRequest) -> str:
    """What of a capability a question needs beyond the capability itself."""
    if isinstance(question, ElicitUrl):
        return "url"
    if not isinstance(question, Relayed):
        return ""
    if question.capability == "elicitation" and question.body.get("mode") == "url":
        return "url"
    return "tools" if question.capability == "sampling" and question.body.get("tools") else ""


def read_answer(key: str, question: ClientRequest, answer: Any) -> Any:
    """The client's answer, checked against the question."""
    if not isinstance(answer, dict):
        raise InvalidInput(f"the answer to '{key}' is not an object", f"send the result of {question.method}")
    if not isinstance(question, (Elicit, ElicitUrl)):
        return answer
    try:
        elicited = msgspec.convert(answer, ready(Elicited))
    except msgspec.ValidationError as error:
        raise InvalidInput(f"the answer to '{key}': {error}", "action is accept, decline or cancel") from None
    if isinstance(question, Elicit) and elicited.action == "accept":
        _check_form(key, question.schema, elicited.content)
    return elicited


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
}


def _check_form(key: str, schema: dict[str, Any], content: dict[str, Any] | None) -> None:
    """Elicitation schemas are flat objects of primitives, so a full validator is not needed."""
    properties: dict[str, Any] = schema.get("properties", {})
    given = content or {}
    for name in schema.get("required", []):
        if name not in given:
            raise InvalidInput(f"the answer to '{key}' lacks '{name}'", "fill every required field")
    for name, value in given.items():
        field = properties.get(name, {})
        wanted = _TYPES.get(field.get("type", ""), (object,))
        is_bool_for_number = isinstance(value, bool) and bool not in wanted and object not in wanted
        if not isinstance(value, wanted) or is_bool_for_number:
            raise InvalidInput(f"the answer to '{key}' has {name}={value!r}", f"expected {field['type']}")
        choices = _choices(field.get("items", {}) if isinstance(value, list) else field)
        if choices and any(one not in choices for one in (value if isinstance(value, list) else [value])):
            raise InvalidInput(f"the answer to '{key}' has {name}={value!r}", f"choose from {choices}")


def _choices(field: dict[str, Any]) -> list[Any]:
    """The values a field offers, plain or with titles; none where any value goes."""
    titled = field.get("oneOf") or field.get("anyOf") or []
    return field.get("enum") or [one["const"] for one in titled if "const" in one]


def _digest(parts: tuple[str, ...]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _b64(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _unb64(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
