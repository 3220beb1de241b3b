"""`prompts/*` and `completion/complete`."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dari.core.content import PromptMessage
from dari.core.grant import require
from dari.core.prompt import Prompt
from dari.core.resource import Completer
from dari.core.tool import DEFAULT_TIMEOUT_S
from dari.errors import InvalidInput
from dari.mcp.calls import Call
from dari.mcp.failures import invalid_params
from dari.mcp.request import Request
from dari.rpc.codec import encode

MOST_VALUES = 100


class Reference(Struct):
    """What is being completed: a prompt by name or a template by URI."""

    type: str
    name: str | UnsetType = UNSET
    uri: str | UnsetType = UNSET


class Argument(Struct):
    name: str
    value: str


class Known(Struct):
    arguments: dict[str, str] = {}


def list_prompts(request: Request) -> bytes:
    return request.server.lists.page("prompts", request.params.cursor, request.is_stateless)


def get_prompt(request: Request) -> None:
    prompt = _prompt(request, request.params.name)
    require(prompt.scope, request.grant)
    given = _read(request.params.arguments, dict[str, str], "arguments", {})
    try:
        prompt.check(given)
    except InvalidInput as error:
        raise invalid_params(error.message, error.hint) from None

    def render(messages: list[PromptMessage]) -> bytes:
        body: dict[str, Any] = {"messages": messages}
        if prompt.description:
            body["description"] = prompt.description
        return encode(body)

    Call(request, prompt.render(request, given), render, DEFAULT_TIMEOUT_S)


def complete(request: Request) -> bytes | None:
    reference = _read(request.params.ref, Reference, "ref")
    argument = _read(request.params.argument, Argument, "argument")
    known = _read(request.params.context, Known, "context", Known())
    completer = _completer(request, reference, argument.name)
    if completer is None:
        return _completion([])
    work = completer(argument.value, known.arguments)
    Call(request, work, _completion, DEFAULT_TIMEOUT_S)
    return None


def _completion(values: list[str]) -> bytes:
    shown = values[:MOST_VALUES]
    return encode({"completion": {"values": shown, "total": len(values), "hasMore": len(values) > len(shown)}})


def _completer(request: Request, reference: Reference, argument: str) -> Completer | None:
    if reference.type == "ref/prompt":
        prompt = _prompt(request, reference.name)
        require(prompt.scope, request.grant)
        return next((a.complete for a in prompt.arguments if a.name == argument), None)
    if reference.type == "ref/resource":
        uri = "" if reference.uri is UNSET else reference.uri
        template = request.server.registry.templates.get(uri)
        if template is None:
            raise invalid_params(f"unknown resource template {uri[:100]!r}", "resources/templates/list shows them")
        require(template.scope, request.grant)
        return template.completers.get(argument)
    raise invalid_params(f"ref.type is {reference.type[:40]!r}", "use ref/prompt or ref/resource")


def _prompt(request: Request, name: str | UnsetType) -> Prompt:
    if name is UNSET:
        raise invalid_params("the prompt's name is missing", "prompts/list shows the names")
    prompt = request.server.registry.prompts.get(name)
    if prompt is None:
        raise invalid_params(f"unknown prompt {name[:100]!r}", "prompts/list shows the prompts there are")
    return prompt


def _read(raw: Raw | UnsetType, kind: Any, name: str, default: Any = UNSET) -> Any:
    if raw is UNSET or bytes(raw).strip() == b"null":
        if default is UNSET:
            raise invalid_params(f"params.{name} is missing")
        return default
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid_params(f"params.{name}: {error}") from None
