"""Blocks of `key: value` and `key=value`, with nesting by indentation."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dari.terminal.output_parsers.result import Document, OutputText, Parsed, ranges, share

_COLON = re.compile(r"(\s*+)([\w\"'(\[/.@$%+*#-][^:=]{0,59}?)\s*+:(?:\s++(.*+))?$")
_EQUALS = re.compile(r"(\s*+)([\w\"'.@-][\w.\-/@\[\]\"' ]{0,59}?)\s*+=\s*+(.*+)$")
_ASSIGNED = re.compile(r"(\s*+)([A-Za-z_][\w.\-]{0,59})=(.*+)$")
_STATUS = re.compile(r"HTTP/[\d.]+ \d{3}\b")
_LEVELS = frozenset(
    ("error", "warning", "warn", "fatal", "info", "debug", "note", "hint", "remote", "e", "w", "critical")
)
_TIME = re.compile(r"\d{1,2}(?::\d\d){1,2}")


@dataclass(slots=True)
class _Pair:
    index: int
    indent: int
    key: str
    value: str


def read_pairs(text: OutputText) -> Parsed | None:
    """The pairs as one object; a key that comes again gets a list of values."""
    best: tuple[float, list[_Pair], set[int]] | None = None
    for pattern in (_COLON, _EQUALS, _ASSIGNED):
        pairs, used, strange = _collect(text.lines, pattern)
        filled = len(used) + strange
        if len(pairs) < 2 or len(pairs) < 0.6 * filled:
            continue
        trust = 0.75 * share(used, text.lines) * _plausible(pairs)
        if best is None or trust > best[0]:
            best = (trust, pairs, used)
    if best is None:
        return None
    trust, pairs, used = best
    return Parsed(type="key_value", confidence=trust, value=_nested(pairs), lines=ranges(used))


def _collect(lines: list[str], pattern: re.Pattern[str]) -> tuple[list[_Pair], set[int], int]:
    pairs: list[_Pair] = []
    used: set[int] = set()
    strange = 0
    for index, line in enumerate(lines):
        if not line:
            continue
        match = pattern.match(line)
        if match and not _TIME.match(line.strip()):
            pairs.append(_Pair(index, len(match[1]), match[2].strip(), (match[3] or "").strip()))
            used.add(index)
        elif _STATUS.match(line) and not pairs:
            pairs.append(_Pair(index, 0, "status", line.strip()))
            used.add(index)
        elif pairs and len(line) - len(line.lstrip()) > pairs[-1].indent and index - 1 in used:
            pairs[-1].value = f"{pairs[-1].value}\n{line.strip()}".strip()
            used.add(index)
        else:
            strange += 1
    return pairs, used, strange


def _plausible(pairs: list[_Pair]) -> float:
    """Keys are short names that differ; a log or prose with colons has long or few ones."""
    keys = [pair.key for pair in pairs]
    if len(set(keys)) < 2:
        return 0.0
    logged = sum(key.lower().split()[0] in _LEVELS for key in keys) / len(keys)
    short = sum(len(key.split()) <= 4 and len(key) <= 40 for key in keys) / len(keys)
    different = len(set(keys)) / len(keys)
    if len(pairs) < 3 and any(len(pair.value) > 40 or len(pair.key.split()) > 2 for pair in pairs):
        short *= 0.7  # two sentences with a colon in each
    return min(1.0, (1 - logged) * (short**2) * (0.2 + 0.9 * different))


def _nested(pairs: list[_Pair]) -> dict[str, Document]:
    """A key without a value holds the deeper pairs that follow it."""
    root: dict[str, Document] = {}
    open_keys: list[tuple[int, dict[str, Document]]] = [(-1, root)]
    for here, following in zip(pairs, [*pairs[1:], None], strict=True):
        while open_keys[-1][0] >= here.indent:
            open_keys.pop()
        target = open_keys[-1][1]
        value: Document = here.value
        # Deeper than 30 levels is no output of a tool, and would not go through a recursive encoder.
        if not here.value and following and following.indent > here.indent and len(open_keys) < 30:
            value = {}
            open_keys.append((here.indent, value))
        if here.key not in target:
            target[here.key] = value
        elif isinstance(target[here.key], list):
            target[here.key].append(value)
        else:
            target[here.key] = [target[here.key], value]
    return root
