"""JSON, alone or inside other output, and JSON lines."""

from __future__ import annotations

import json
import re

from dari.terminal.reading.result import Document, Parsed, Text, ranges

_MAX_DEPTH = 100
_MAX_STARTS = 64
"""Places where a document may begin that are tried; each costs one reading of the text at most."""
_MAX_ITEMS = 100_000

_MARK = re.compile(r"[\[{\n]")
_REST = re.compile(r"[ \t\r]*+\n")


class _TooDeep(ValueError):
    pass


def read_json(text: Text) -> Parsed | None:
    """The documents of the text: one is a `json` value, several are `json_lines` items."""
    raw = text.raw
    decoder = json.JSONDecoder()
    found: list[Document] = []
    used: set[int] = set()
    notes: list[str] = []
    position, line, tries, skipped = 0, 0, 0, 0
    while position < len(raw) and tries < _MAX_STARTS and len(found) < _MAX_ITEMS:
        start = _MARK.search(raw, position)
        if start is None or start[0] == "\n":
            end = start.start() if start else len(raw)
            skipped += bool(raw[position:end].strip())
            line, position = line + 1, end + 1
            continue
        try:
            value, end = decoder.raw_decode(raw, start.start())
            value = _tellable(value, 0)
        except (ValueError, RecursionError) as problem:
            if isinstance(problem, _TooDeep | RecursionError):
                notes.append(f"a document at line {line + 1} is nested deeper than {_MAX_DEPTH} levels")
            end = raw.find("\n", position)
            line, position = line + 1, (len(raw) if end == -1 else end) + 1
            tries += 1
            skipped += 1
            continue
        height = raw.count("\n", start.start(), end)
        used.update(range(line, line + height + 1))
        if raw[position : start.start()].strip() and len(notes) < 20:
            notes.append(f"line {line + 1} has text before the document")
        found.append(value)
        line += height
        rest = _REST.match(raw, end)
        position, line = (rest.end(), line + 1) if rest else (end, line)
    skipped += bool(raw[position:].strip())
    found_containers = [value for value in found if isinstance(value, dict | list) and value]
    if not found or (not found_containers and skipped):
        return None
    coverage = len(used) / (len(used) + skipped)
    if skipped:
        notes.append(f"{skipped} other lines were left out")
    trust = 0.99 if not skipped else 0.55 + 0.4 * coverage
    if len(found) == 1:
        if not isinstance(found[0], dict) and skipped and len(used) == 1:
            trust = 0.3  # `[info] …` and `[1/4]` open a line far more often than an array does
        return Parsed(type="json", confidence=trust, value=found[0], notes=notes, lines=ranges(used))
    if not all(isinstance(value, dict) for value in found):
        trust *= 0.5 if skipped else 0.9
        items = [value if isinstance(value, dict) else {"value": value} for value in found]
    else:
        items = found
    return Parsed(type="json_lines", confidence=trust, items=items, notes=notes[:20], lines=ranges(used))


def _tellable(value: Document, depth: int) -> Document:
    """The value as any wire carries it: numbers beyond 64 bits and lone surrogates become text that shows them."""
    if depth > _MAX_DEPTH:
        raise _TooDeep
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_tellable(key, depth): _tellable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_tellable(item, depth + 1) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        return str(value)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return value
