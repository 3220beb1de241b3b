"""The top level of a Markdown file, line by line: what most files are made of, ten times faster than a full parser.

It reads headings, fences, paragraphs, simple lists and tables. Where a line could mean something else, the stretch up
to the next place where every block is certainly closed is given to markdown-it. A test holds the two together: the
result is that of markdown-it on the whole file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from dari.knowledge.document import BlockKind


class Found(Struct):
    """Lines `start` to `end` without it, counted from 0. A heading has a level and its source, a list its items."""

    kind: BlockKind
    start: int
    end: int
    level: int = 0
    title: str = ""
    items: list[int] = []


SlowScan = Callable[[int, int], Iterator[Found]]

# A line that begins a paragraph, or goes on with one, and can be nothing else.
_PLAIN = re.compile(r"[^\W\d_]|[\"'(“‘「『]|\d+(?![\d.)])|\*\*[^\s*]|`[^`]")
_HEADING = re.compile(r"(#{1,6})(?=[ \t]|$)")
_FENCE = re.compile(r"(`{3,})[^`]*$|(~{3,})")
_ANY_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([ \t]*$)?")
_BULLET = re.compile(r"([-*+]) (?=[^\s])(?!\1)")
_NUMBER = re.compile(r"\d{1,9}([.)]) (?=\S)")
_DELIMITERS = re.compile(r"\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*$")
# Blocks of HTML that reach over blank lines.
_LONG_HTML = re.compile(r" {0,3}<(?:script|pre|style|textarea|!|\?)", re.IGNORECASE)


def scan(lines: Sequence[str], first: int, slow: SlowScan) -> Iterator[Found]:
    at, count = first, len(lines)
    while at < count:
        line = lines[at]
        found: Found | None = None
        if not line.strip(" \t"):
            at += 1
            continue
        if _PLAIN.match(line):
            found = _paragraph(lines, at)
        elif (mark := line[0]) == "#":
            if heading := _HEADING.match(line):
                found = Found("heading", at, at + 1, heading.end(), line[heading.end() :])
        elif mark == "|":
            found = _table(lines, at)
        elif fence := _FENCE.match(line):
            found = Found("code", at, _fence_end(lines, at, fence[1] or fence[2]))
        elif line.startswith("<!--"):
            found = Found("paragraph", at, next((n + 1 for n in range(at, count) if "-->" in lines[n]), count))
        elif mark in "-*+0123456789":
            found = _list(lines, at)
        if found is None:
            end = _closed(lines, at)
            yield from slow(at, end)
            at = end
        else:
            yield found
            at = found.end


def _paragraph(lines: Sequence[str], start: int) -> Found | None:
    for at in range(start + 1, len(lines)):
        line = lines[at]
        if _PLAIN.match(line):
            continue
        if not line.strip(" \t") or _interrupts(line) or _BULLET.match(line):
            return Found("paragraph", start, at)
        return None
    return Found("paragraph", start, len(lines))


def _interrupts(line: str) -> bool:
    return bool(_HEADING.match(line) or _FENCE.match(line))


def _fence_end(lines: Sequence[str], start: int, opened: str) -> int:
    for at in range(start + 1, len(lines)):
        close = _ANY_FENCE.match(lines[at]) if opened[0] in lines[at] else None
        if close and close[2] is not None and close[1][0] == opened[0] and len(close[1]) >= len(opened):
            return at + 1
    return len(lines)


def _table(lines: Sequence[str], start: int) -> Found | None:
    head = lines[start].rstrip(" \t")
    if start + 1 >= len(lines) or "\\" in head or not head.endswith("|") or len(head) < 2:
        return None
    if not _DELIMITERS.match(lines[start + 1]) or head.count("|") != lines[start + 1].count("|"):
        return None
    for at in range(start + 2, len(lines)):
        line = lines[at]
        if line.startswith("|"):
            continue
        return Found("table", start, at) if not line.strip(" \t") else None
    return Found("table", start, len(lines))


def _list(lines: Sequence[str], start: int) -> Found | None:
    """A list of items that begin at the margin with the same mark; what belongs to an item is indented below it."""
    pattern = _BULLET if (opened := _BULLET.match(lines[start])) else _NUMBER
    opened = opened or _NUMBER.match(lines[start])
    if opened is None:
        return None
    items, width, is_after_blank = [start], opened.end(), False
    end = start + 1
    for at in range(start + 1, len(lines)):
        line = lines[at]
        inner = line.lstrip(" \t")
        if not inner:
            is_after_blank = True
            continue
        if len(inner) < len(line):
            if len(line[: len(line) - len(inner)].expandtabs(4)) < width:
                return None
        elif (item := pattern.match(line)) and item[1] == opened[1]:
            items.append(at)
            width = item.end()
        elif _interrupts(line) or (is_after_blank and _PLAIN.match(line)):
            break
        else:
            return None
        end, is_after_blank = at + 1, False
    return Found("list", start, end, items=items)


def _closed(lines: Sequence[str], start: int) -> int:
    """The next line where no block can be open any more: after a blank line, something that starts at the margin.

    A fence that may be open, and HTML that reaches over blank lines, make it the end of the file.
    """
    fence, is_after_blank = "", False
    for at in range(start, len(lines)):
        line = lines[at]
        if not line.strip(" \t"):
            is_after_blank = True
            continue
        mark = _ANY_FENCE.match(line)
        if fence and mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and mark[2] is not None:
            fence = ""
        elif is_after_blank and at > start and (_PLAIN.match(line) or _interrupts(line)):
            return len(lines) if fence else at
        elif mark and not fence:
            fence = mark[1]
        elif _LONG_HTML.match(line):
            return len(lines)
        is_after_blank = False
    return len(lines)
