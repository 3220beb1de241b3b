"""The last look at what a tool gives to a model: in no text of any result or error is anything that hides or obeys.

Tools clean the output of programs themselves, with what was asked for in mind. Names, titles, directories, rows and
messages come from programs as well, in many places: they are all looked at here.
"""

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
from dari.errors import DariError
from dari.text.sanitize import escape_hidden

COLOURED = ("crux_get_formatted_output",)
_SGR = re.compile(r"(\x1b\[[\d;:]*m)")


def screened(tool: Tool) -> Tool:
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
        return value if value.isascii() and value.isprintable() else clean_text(value, is_coloured)
    if isinstance(value, ImageContent | AudioContent | RawResult):
        return value
    if isinstance(value, Struct):
        changed = {}
        for name in value.__struct_fields__:
            before = getattr(value, name)
            after = _cleaned(before, is_coloured)
            if after is not before:
                changed[name] = after
        return replace(value, **changed) if changed else value
    if isinstance(value, list | tuple):
        items = [_cleaned(each, is_coloured) for each in value]
        is_same = all(after is before for after, before in zip(items, value, strict=True))
        return value if is_same else type(value)(items)
    if isinstance(value, dict):
        pairs = {_cleaned(key, False): _cleaned(each, is_coloured) for key, each in value.items()}
        is_same = all(pairs.get(key) is each for key, each in value.items())
        return value if is_same else pairs
    return value
