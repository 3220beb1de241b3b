"""Output of panes as a model reads it: nothing hidden, no more than it asked for, a note where something lacks."""

from __future__ import annotations

import re
from inspect import isawaitable
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dari.core.content import AudioContent, ImageContent, RawResult
from dari.core.context import Context
from dari.core.tool import Tool
from dari.errors import DariError, InvalidInput
from dari.text.sanitize import ShortenedText, escape_and_shorten, escape_hidden

CHARS_PER_TOKEN = 4
DEFAULT_TOKENS = 10_000
MAX_TOKENS = 100_000
_SGR = re.compile(r"(\x1b\[[\d;:]*m)")


def limit_output(text: str, max_tokens: int = DEFAULT_TOKENS) -> ShortenedText:
    """The text with what hides made visible, cut to about so many tokens; its start and its end stay."""
    return escape_and_shorten(text, _budget(max_tokens))


def limit_formatted(text: str, max_tokens: int = DEFAULT_TOKENS) -> ShortenedText:
    """The same for text whose colours are wanted: SGR sequences stay, everything else is made visible.

    The end counts: what is left out is the beginning, at a line end.
    """
    budget = _budget(max_tokens)
    left_out = 0
    if len(text) > budget:
        cut = text.find("\n", len(text) - budget) + 1
        left_out, text = cut, text[cut:]
    parts = _SGR.split(text)
    pieces = [part if at % 2 else escape_hidden(part) for at, part in enumerate(parts)]
    return ShortenedText("".join(pieces), left_out > 0, left_out)


def limit_lines(text: str, max_tokens: int = DEFAULT_TOKENS) -> tuple[str, int]:
    """As many whole lines from the start as fit, with what hides made visible, and how many they are.

    A line that does not fit alone is cut, so that a reader who asks line by line comes to an end.
    """
    budget = _budget(max_tokens)
    taken: list[str] = []
    size = 0
    for line in escape_hidden(text).split("\n"):
        size += len(line) + 1
        if taken and size > budget:
            break
        taken.append(line if len(line) <= budget else f"{line[:budget]}[… {len(line) - budget} characters left out]")
    return "\n".join(taken), len(taken)


def _budget(max_tokens: int) -> int:
    if not 1 <= max_tokens <= MAX_TOKENS:
        raise InvalidInput(f"max_tokens must be between 1 and {MAX_TOKENS}, got {max_tokens}", "ask for less")
    return max_tokens * CHARS_PER_TOKEN


COLOURED = ("crux_get_formatted_output",)
_WITHOUT_TEXT = (int, float, type(None), ImageContent, AudioContent, RawResult)


def sanitize_results(tool: Tool) -> Tool:
    """The tool with clean results; colours stay where they are what was asked for."""
    run = tool.run
    is_coloured = tool.name in COLOURED

    async def clean(arguments: bytes | msgspec.Raw, context: Context, /) -> Any:
        try:
            found = run(arguments, context)
            return _cleaned(await found if isawaitable(found) else found, is_coloured)
        except DariError as error:
            error.message, error.hint = escape_hidden(error.message), escape_hidden(error.hint)
            raise

    return replace(tool, run=clean, is_async=True)


def clean_text(text: str, is_coloured: bool = False) -> str:
    """With what hides made visible; SGR sequences stay when colours are wanted."""
    if not is_coloured:
        return escape_hidden(text)
    return "".join(part if at % 2 else escape_hidden(part) for at, part in enumerate(_SGR.split(text)))


def _cleaned(value: Any, is_coloured: bool) -> Any:
    """The value itself when there is nothing to clean."""
    if isinstance(value, str):
        return clean_text(value, is_coloured)
    if isinstance(value, _WITHOUT_TEXT):
        return value
    if isinstance(value, Struct):
        changed = {}
        for name in value.__struct_fields__:
            before = getattr(value, name)
            if isinstance(before, _WITHOUT_TEXT):
                continue
            after = _cleaned(before, is_coloured)
            if after is not before:
                changed[name] = after
        return replace(value, **changed) if changed else value
    if isinstance(value, (list, tuple)):
        items = [_cleaned(each, is_coloured) for each in value]
        is_same = all(after is before for after, before in zip(items, value, strict=True))
        return value if is_same else type(value)(items)
    if isinstance(value, dict):
        pairs = {_cleaned(key, False): _cleaned(each, is_coloured) for key, each in value.items()}
        is_same = all(pairs.get(key) is each for key, each in value.items())
        return value if is_same else pairs
    return value
