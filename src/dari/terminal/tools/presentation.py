"""Output of panes as a model reads it: nothing hidden, no more than it asked for, a note where something lacks."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from dari.core.context import Context
from dari.core.schema import Schema
from dari.core.tool import Run, Tool
from dari.errors import InvalidInput
from dari.sanitising import for_terminal
from dari.terminal.policy.cleaning import Cleaned, clean_output

CHARS_PER_TOKEN = 4
MAX_TOKENS = 10_000
MOST_TOKENS = 100_000
_SGR = re.compile(r"(\x1b\[[\d;:]*m)")


def shown(text: str, max_tokens: int = MAX_TOKENS) -> Cleaned:
    """The text with what hides made visible, cut to about so many tokens; its start and its end stay."""
    return clean_output(text, for_terminal, _budget(max_tokens))


def shown_formatted(text: str, max_tokens: int = MAX_TOKENS) -> Cleaned:
    """The same for text whose colours are wanted: SGR sequences stay, everything else is made visible.

    The end counts: what is left out is the beginning, at a line end.
    """
    budget = _budget(max_tokens)
    left_out = 0
    if len(text) > budget:
        cut = text.find("\n", len(text) - budget) + 1
        left_out, text = cut, text[cut:]
    parts = _SGR.split(text)
    pieces = [part if at % 2 else for_terminal(part) for at, part in enumerate(parts)]
    return Cleaned("".join(pieces), left_out > 0, left_out)


def fitting_lines(text: str, max_tokens: int = MAX_TOKENS) -> tuple[str, int]:
    """As many whole lines from the start as fit, with what hides made visible, and how many they are.

    A line that does not fit alone is cut, so that a reader who asks line by line comes to an end.
    """
    budget = _budget(max_tokens)
    taken: list[str] = []
    size = 0
    for line in for_terminal(text).split("\n"):
        size += len(line) + 1
        if taken and size > budget:
            break
        taken.append(line if len(line) <= budget else f"{line[:budget]}[… {len(line) - budget} characters left out]")
    return "\n".join(taken), len(taken)


def _budget(max_tokens: int) -> int:
    if not 1 <= max_tokens <= MOST_TOKENS:
        raise InvalidInput(f"{max_tokens} is no number of tokens", f"give 1…{MOST_TOKENS}")
    return max_tokens * CHARS_PER_TOKEN


def presented(tool: Tool) -> Tool:
    """The tool with a smaller schema; null counts as left out, as some clients fill every member."""
    schema = _untitled(tool.input_schema)
    optional = set(schema["properties"]) - set(schema.get("required", ()))
    return replace(
        tool,
        input_schema={**schema, "properties": {name: _plain(each) for name, each in schema["properties"].items()}},
        output_schema=tool.output_schema and _untitled(tool.output_schema),
        run=_lenient(tool.run, optional),
    )


def _untitled(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_untitled(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made: Schema = {}
    for name, value in schema.items():
        if name in ("properties", "$defs"):
            made[name] = {key: _untitled(part) for key, part in value.items()}
        elif name not in ("title", "default"):
            made[name] = _untitled(value)
        elif name == "default":
            made[name] = value
    if "enum" in made and "type" not in made and all(isinstance(value, str) for value in made["enum"]):
        made = {"type": "string", **made}
    return made


def _plain(schema: Schema) -> Schema:
    """`X | None = None` as X."""
    branches = schema.get("anyOf", [])
    if {"type": "null"} not in branches or schema.get("default", 0) is not None:
        return schema
    others = [branch for branch in branches if branch != {"type": "null"}]
    rest = {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
    return {**others[0], **rest} if len(others) == 1 else {"anyOf": others, **rest}


def _lenient(run: Run, optional: set[str]) -> Run:
    import msgspec

    def lenient(arguments: bytes | msgspec.Raw, context: Context, /) -> Any:
        try:
            return run(arguments, context)
        except InvalidInput:
            try:
                given = msgspec.json.decode(arguments, type=dict[str, msgspec.Raw])
            except (msgspec.DecodeError, UnicodeDecodeError):
                raise InvalidInput("the arguments are no JSON object", "send an object") from None
            kept = {name: value for name, value in given.items() if name not in optional or bytes(value) != b"null"}
            if len(kept) == len(given):
                raise
        return run(msgspec.json.encode(kept), context)

    return lenient
