"""Chunks of code: one per unit; where a language has no units, paragraphs packed to the target, and windows of lines
over paragraphs that never end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from dari.knowledge.chunk.policy import ChunkPolicy, token_count
from dari.knowledge.chunk.sections import Passage
from dari.knowledge.document import Block

WINDOW_LINES = 80
WINDOW_OVERLAP_LINES = 20


def pack_code(blocks: Sequence[Block], policy: ChunkPolicy) -> Iterator[Passage]:
    begun: list[tuple[int, Block]] = []
    size = 0
    for ordinal, block in enumerate(blocks):
        tokens = token_count(block.text)
        is_long = block.kind != "unit" and block.line_end - block.line_start >= WINDOW_LINES
        if begun and (block.kind == "unit" or is_long or size + tokens > policy.target_tokens):
            yield _paragraphs(begun)
            begun, size = [], 0
        if block.kind == "unit":
            yield _whole(ordinal, block)
        elif is_long:
            yield from _windows(ordinal, block)
        else:
            begun.append((ordinal, block))
            size += tokens
    if begun:
        yield _paragraphs(begun)


def _whole(ordinal: int, block: Block) -> Passage:
    return Passage(
        block.text, block.line_start, block.line_end, block.page, block.heading_path, (ordinal,), block.symbol
    )


def _paragraphs(begun: Sequence[tuple[int, Block]]) -> Passage:
    first, last = begun[0][1], begun[-1][1]
    text = first.text
    for (_, before), (_, block) in pairwise(begun):
        text += "\n" * max(1, block.line_start - before.line_end) + block.text
    return Passage(
        text,
        first.line_start,
        last.line_end,
        first.page,
        first.heading_path,
        tuple(ordinal for ordinal, _ in begun),
        first.symbol,
    )


def _windows(ordinal: int, block: Block) -> Iterator[Passage]:
    lines = block.text.split("\n")
    step = WINDOW_LINES - WINDOW_OVERLAP_LINES
    for start in range(0, max(1, len(lines) - WINDOW_OVERLAP_LINES), step):
        part = lines[start : start + WINDOW_LINES]
        first = block.line_start + start
        yield Passage(
            "\n".join(part),
            first,
            first + len(part) - 1,
            block.page,
            block.heading_path,
            (ordinal,),
            block.symbol,
            f"#L{first}",
        )
