"""`prompts/*` and `completion/complete`."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dari.core.content import PromptMessage, RawResult
from dari.core.prompt import Prompt
from dari.core.resource import Completer, RelayCompletion, ResourceTemplate
from dari.core.scopes import require_scope
from dari.core.tool import DEFAULT_TIMEOUT_S, INNER_LIMITS_ONLY
from dari.errors import InvalidInput
from dari.mcp.error_mapping import invalid_params
from dari.mcp.inflight import InflightCall
from dari.mcp.list_cache import list_page, wait_for_list
from dari.mcp.request import Request
from dari.rpc.codec import encode
from dari.struct_types import ready

MAX_VALUES = 100


class CompletionReference(Struct):
    """What is being completed: a prompt by name or a template by URI."""

    type: str
    name: str | UnsetType = UNSET
    uri: str | UnsetType = UNSET


class CompletionArgument(Struct):
    name: str
    value: str


class CompletionContext(Struct):
    arguments: dict[str, str] = {}


def list_prompts(request: Request) -> bytes | None:
    return list_page(request, "prompts")


def get_prompt(request: Request) -> None:
    name = request.params.name
    if name is not UNSET and name not in request.server.registry.prompts:
        waiting = wait_for_list(request, "prompts")
        if waiting is not None:
            InflightCall(request, _get_prompt_later(request, waiting), lambda result: result, INNER_LIMITS_ONLY)
            return
    prompt, given = _find_prompt(request)
    timeout_s = DEFAULT_TIMEOUT_S if prompt.shown is None else INNER_LIMITS_ONLY
    InflightCall(request, prompt.render(request, given), lambda messages: _render(prompt, messages), timeout_s)


async def _get_prompt_later(request: Request, waiting: Coroutine[Any, Any, None]) -> bytes:
    await waiting
    prompt, given = _find_prompt(request)
    return _render(prompt, await prompt.render(request, given))


def _find_prompt(request: Request) -> tuple[Prompt, dict[str, str]]:
    prompt = _prompt(request, request.params.name)
    require_scope(prompt.scope, request.grant)
    if request.params.request_state is not UNSET:
        request.recall()
    given = _read(request.params.arguments, dict[str, str], "arguments", {})
    try:
        prompt.check(given)
    except InvalidInput as error:
        raise invalid_params(error.message, error.hint) from None
    return prompt, given


def _render(prompt: Prompt, messages: list[PromptMessage] | RawResult) -> bytes:
    if isinstance(messages, RawResult):
        return bytes(messages.body)
    body: dict[str, Any] = {"messages": messages}
    if prompt.description:
        body["description"] = prompt.description
    return encode(body)


def complete(request: Request) -> bytes | None:
    reference = _read(request.params.ref, CompletionReference, "ref")
    argument = _read(request.params.argument, CompletionArgument, "argument")
    known = _read(request.params.context, CompletionContext, "context", CompletionContext())
    relay = _relay(request, reference)
    if relay is not None:
        asked = {"argument": request.params.argument}
        if request.params.context is not UNSET:
            asked["context"] = request.params.context
        InflightCall(request, relay(request, asked), lambda result: bytes(result.body), INNER_LIMITS_ONLY)
        return None
    completer = _completer(request, reference, argument.name)
    if completer is None:
        return _completion([])
    work = completer(argument.value, known.arguments)
    InflightCall(request, work, _completion, DEFAULT_TIMEOUT_S)
    return None


def _completion(values: list[str]) -> bytes:
    shown = values[:MAX_VALUES]
    return encode({"completion": {"values": shown, "total": len(values), "hasMore": len(values) > len(shown)}})


def _relay(request: Request, reference: CompletionReference) -> RelayCompletion | None:
    if reference.type == "ref/prompt":
        return _prompt(request, reference.name).relay_completion
    return _template(request, reference).relay_completion if reference.type == "ref/resource" else None


def _completer(request: Request, reference: CompletionReference, argument: str) -> Completer | None:
    if reference.type == "ref/prompt":
        prompt = _prompt(request, reference.name)
        require_scope(prompt.scope, request.grant)
        return next((a.complete for a in prompt.arguments if a.name == argument), None)
    if reference.type == "ref/resource":
        template = _template(request, reference)
        require_scope(template.scope, request.grant)
        return template.completers.get(argument)
    raise invalid_params(f"ref.type is {reference.type[:40]!r}", "use ref/prompt or ref/resource")


def _template(request: Request, reference: CompletionReference) -> ResourceTemplate:
    uri = "" if reference.uri is UNSET else reference.uri
    template = request.server.registry.templates.get(uri)
    if template is None:
        raise invalid_params(f"unknown resource template {uri[:100]!r}", "resources/templates/list shows them")
    return template


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
        return msgspec.json.decode(raw, type=ready(kind))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid_params(f"params.{name}: {error}") from None
