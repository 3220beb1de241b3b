"""Blocks of a text that has lines: their text is what stands on their lines, and nothing between them is lost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dari.knowledge.document import Block, BlockKind

_WORD = re.compile(r"\w")


def block_of(
    kind: BlockKind, lines: Sequence[str], start: int, end: int, path: tuple[str, ...] = (), symbol: str = ""
) -> Block:
    """Lines `start` to `end` without it, counted from 0."""
    return Block(kind, "\n".join(lines[start:end]), start + 1, end, 0, path, symbol)


def paragraphs(lines: Sequence[str], start: int, end: int) -> Iterable[tuple[int, int]]:
    """Runs of lines between blank ones: pairs of first line and the one after the last, counted from 0."""
    first = -1
    for number in range(start, end):
        if not lines[number] or lines[number].isspace():
            if first >= 0:
                yield first, number
                first = -1
        elif first < 0:
            first = number
    if first >= 0:
        yield first, end


def has_words(text: str) -> bool:
    return _WORD.search(text) is not None
