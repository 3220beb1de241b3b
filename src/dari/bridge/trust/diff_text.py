"""What changed in an item, field by field, for a person who decides: unified style, safe on any terminal."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator

import msgspec

from dari.bridge.trust.pin_store import HeldItem
from dari.text.invisible import find_hidden
from dari.text.sanitize import escape_hidden

WIDTH = 100
MAX_LINES = 400
"""Compared of one field: the comparison is quadratic, and a person reads no more than that at once."""
_COLOURS = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m", "!": "\x1b[1;33m"}


def diff(before: bytes | None, after: bytes, *, colour: bool = False) -> list[str]:
    """Lines for each field that differs; the whole of a new item. `before` and `after` are contents of `Pins`."""
    old = msgspec.json.decode(before) if before else {}
    new = msgspec.json.decode(after)
    lines: list[str] = []
    for field in sorted({*old, *new}, key=lambda name: (_ORDER.get(name, len(_ORDER)), name)):
        if old.get(field, ...) != new.get(field, ...):
            lines += _field(
                field, _lines(old[field]) if field in old else [], _lines(new[field]) if field in new else []
            )
            lines += _warnings(field, new.get(field))
    return [_coloured(line) for line in lines] if colour else lines


def heading(held: HeldItem) -> str:
    """One line that says what is held and why."""
    name = f"{held.kind} {held.server}/{held.name}" if held.name else f"{held.kind} of {held.server}"
    was = f", perhaps the former {held.was!r}" if held.was else ""
    rejected = f", rejected by {held.rejected_by}" if held.rejected_by else ""
    return escape_hidden(
        f"{name}: {held.reason}{was}{rejected} ({held.before[:12] or 'new'} -> {held.digest[:12]})", one_line=True
    )


_ORDER = {name: at for at, name in enumerate(("name", "title", "text", "description", "inputSchema", "outputSchema"))}


def _field(field: str, old: list[str], new: list[str]) -> list[str]:
    import difflib  # the hub starts without it

    shown = escape_hidden(field, one_line=True)
    start = next((at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), None)
    start = max(0, (min(len(old), len(new)) if start is None else start) - 2)
    left, right = old[start : start + MAX_LINES], new[start : start + MAX_LINES]
    lines = list(difflib.unified_diff(left, right, f"{shown} (approved)", f"{shown} (now)", lineterm="", n=2))
    if more := max(len(old), len(new)) - start - MAX_LINES:
        lines += [f"! {more} more lines of {shown} are not compared here; read them before you agree"] * (more > 0)
    return [line.rstrip() for line in lines]


def _lines(value: object) -> list[str]:
    """Text is wrapped, so that a changed word in one long line stands out; anything else is indented JSON."""
    if not isinstance(value, str):
        return escape_hidden(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)).split("\n")
    lines: list[str] = []
    for line in escape_hidden(value).split("\n"):
        if len(line) <= WIDTH:
            lines.append(line)
            continue
        lines += textwrap.wrap(line, WIDTH, replace_whitespace=False, drop_whitespace=False, break_long_words=True) or [
            ""
        ]
    return lines


def _warnings(field: str, value: object) -> Iterator[str]:
    for text in _texts(value):
        for hidden in find_hidden(text):
            yield escape_hidden(f"! {field} hides {hidden}", one_line=True)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield str(key)
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _coloured(line: str) -> str:
    colour = _COLOURS.get(line[:1])
    return f"{colour}{line}\x1b[0m" if colour else line
