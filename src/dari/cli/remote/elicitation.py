"""A server's questions to the person: a form asked field by field, a page to visit, a model that we do not have."""

from __future__ import annotations

import json
from typing import Any

from msgspec import Raw

from dari.cli.remote.arguments import read_value
from dari.cli.remote.context import CommandContext
from dari.cli.remote.input_schema import ObjectSchema, Schema, SchemaArgument, choices_of, items_of, type_text, types_of
from dari.errors import Denied, InvalidInput
from dari.mcp.client.callbacks import Elicitation
from dari.mcp.client.decode import read
from dari.mcp.client.errors import RemoteError
from dari.rpc.codec import METHOD_NOT_FOUND
from dari.text.sanitize import escape_hidden

_TRIES = 3
_DECLINED = {"action": "decline"}
_NOTHING = object()


class AnswerDeclined(Exception):
    """The person gave no answer to a field that must have one."""


async def answer_server_request(method: str, params: Raw, context: CommandContext, server: str) -> Any:
    """The result of `elicitation/create`; sampling is refused, because a shell has no model."""
    if method == "elicitation/create":
        return await _elicit(read(params, Elicitation, "elicitation/create request"), context, server)
    if method == "roots/list":
        return {"roots": [{"uri": context.view.around.cwd.as_uri()}]}
    if method == "sampling/createMessage":
        context.warn(
            f"server '{server}' asked for a language model; a shell has none, so it was declined",
            "call the tool through an agent that offers sampling (dari up, dari mcp)",
        )
        raise Denied("the person at the shell has no model to sample from", "connect an agent that offers sampling")
    raise RemoteError(METHOD_NOT_FOUND, f"a shell does not answer {method}", {"method": method})


async def _elicit(asked: Elicitation, context: CommandContext, server: str) -> dict[str, Any]:
    message = escape_hidden(asked.message)
    if not context.console.stdin_is_tty:
        context.warn(f"server '{server}' asked: {message} – declined, because nobody is at a terminal", "run it in one")
        return _DECLINED
    context.note(f"Server '{server}' asks: {message}")
    if asked.mode == "url":
        context.note(f"  Open this page yourself if you trust it: {asked.url}")
        is_yes = await ask_yes_no(context, "  Have you opened it, and go on?")
        return {"action": "accept"} if is_yes else _DECLINED
    shape = ObjectSchema(asked.requested_schema)
    content: dict[str, Any] = {}
    try:
        for field in shape.arguments:
            value = await _field(field, shape.root, context)
            if value is not _NOTHING:
                content[field.name] = value
        if not shape.arguments and not await ask_yes_no(context, "  Accept?"):
            return _DECLINED
    except AnswerDeclined:
        context.note("  declined")
        return _DECLINED
    return {"action": "accept", "content": content}


async def ask_yes_no(context: CommandContext, question: str) -> bool:
    """A yes that was typed; anything else is no."""
    return (await context.console.ask(f"{question} [y/N] ")).strip().lower() in ("y", "yes")


async def _field(field: SchemaArgument, root: Schema, context: CommandContext) -> Any:
    """The value that was typed, `_NOTHING` for an optional field left empty. Declined when one is needed."""
    default = field.schema.get("default", _NOTHING)
    for _ in range(_TRIES):
        line = await context.console.ask(_prompt(field, root, default))
        if not line.strip():
            if default is not _NOTHING:
                return default
            if field.is_required:
                raise AnswerDeclined
            return _NOTHING
        try:
            return _typed(line, field, root)
        except InvalidInput as error:
            context.note(f"  {error.message}; {error.hint}")
    raise AnswerDeclined


def _typed(line: str, field: SchemaArgument, root: Schema) -> Any:
    types = types_of(field.schema, root)
    if "array" in types and not line.lstrip().startswith("["):
        items = items_of(field.schema, root)
        return [_one(part.strip(), items, root, field.name) for part in line.split(",") if part.strip()]
    if types == {"boolean"} and line.strip().lower() in ("y", "n"):
        return line.strip().lower() == "y"
    return _one(line if types == {"string"} else line.strip(), field.schema, root, field.name)


def _one(text: str, schema: Schema, root: Schema, name: str) -> Any:
    choices = choices_of(schema, root)
    if choices and text.isdecimal() and text not in map(str, choices) and 1 <= int(text) <= len(choices):
        return choices[int(text) - 1]
    return read_value(text, schema, root, name)


def _prompt(field: SchemaArgument, root: Schema, default: Any) -> str:
    title = field.schema.get("title")
    name = f"{title} ({field.name})" if isinstance(title, str) and title != field.name else field.name
    said = f" – {field.description}" if field.description else ""
    kind = type_text(field.schema, root) + (", separated by commas" if "array" in types_of(field.schema, root) else "")
    if default is not _NOTHING:
        ending = f"default {json.dumps(default, ensure_ascii=False)}"
    else:
        ending = "required; empty declines" if field.is_required else "empty leaves it out"
    return escape_hidden(f"  {name}{said} [{kind}; {ending}]: ", one_line=True)
