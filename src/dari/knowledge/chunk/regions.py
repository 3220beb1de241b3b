"""Chunks of pictures (`ocr-page-v1`): paragraphs packed to the target, with the box around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dari.knowledge.chunk.policy import ChunkPolicy, token_count
from dari.knowledge.chunk.sections import Passage
from dari.knowledge.document import Block


def pack_regions(blocks: Sequence[Block], policy: ChunkPolicy) -> Iterator[Passage]:
    begun: list[int] = []
    size = 0
    for ordinal, block in enumerate(blocks):
        tokens = token_count(block.text)
        if begun and size + tokens > policy.target_tokens:
            yield _passage(blocks, begun)
            begun, size = [], 0
        begun.append(ordinal)
        size += tokens
    if begun:
        yield _passage(blocks, begun)


def _passage(blocks: Sequence[Block], ordinals: Sequence[int]) -> Passage:
    own = [blocks[ordinal] for ordinal in ordinals]
    left, top = min(block.region[0] for block in own), min(block.region[1] for block in own)
    right = max(block.region[0] + block.region[2] for block in own)
    bottom = max(block.region[1] + block.region[3] for block in own)
    text = "\n\n".join(block.text for block in own)
    return Passage(text, 0, 0, 0, (), tuple(ordinals), region=(left, top, right - left, bottom - top))
