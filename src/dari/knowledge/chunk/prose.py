"""Chunks of running text (`pdf-page-v1.2`, `text-paragraph-v1`): sentences packed to the target, with overlap.

No chunk crosses a page or a block.
"""

from __future__ import annotations

from collections.abc import Iterator

from dari.knowledge.chunk.policy import ChunkPolicy, token_count
from dari.knowledge.chunk.sections import Passage
from dari.knowledge.chunk.sentences import sentence_spans
from dari.knowledge.document import Block


def pack_sentences(ordinal: int, block: Block, policy: ChunkPolicy) -> Iterator[Passage]:
    """Parts of one block that is longer than the target; each is a stretch of its text, whole sentences if it can."""
    if token_count(block.text) <= policy.target_tokens:
        yield _passage(ordinal, block, 0, len(block.text), "", block.line_start)
        return
    bounds = _bounds(block.text)
    first = 0  # index of the sentence that the part begins with
    fresh = 0  # index of its first sentence that no earlier part has
    part = 0
    at, line = 0, block.line_start
    while fresh < len(bounds):
        last, size = fresh, _size(block.text, bounds, first, fresh)
        while last + 1 < len(bounds):
            more = _size(block.text, bounds, last + 1, last + 1)
            if size + more > policy.target_tokens:
                break
            last, size = last + 1, size + more
        if block.line_start:  # counted from the last part on: a log has thousands of them
            start = bounds[first][0]
            line += block.text.count("\n", at, start) - block.text.count("\n", start, at)
            at = start
        yield _passage(ordinal, block, bounds[first][0], bounds[last][1], f"#c{part}", line)
        part += 1
        fresh, first = last + 1, _overlap_start(block.text, bounds, last, policy)


def _bounds(text: str) -> list[tuple[int, int]]:
    """Sentences that leave nothing out: each reaches to the start of the next one."""
    starts = [start for start, _ in sentence_spans(text)] or [0]
    starts[0] = 0
    return list(zip(starts, [*starts[1:], len(text)], strict=True))


def _overlap_start(text: str, bounds: list[tuple[int, int]], last: int, policy: ChunkPolicy) -> int:
    """The first of the whole sentences before the next part that fit into the overlap."""
    first, size = last + 1, 0
    while first > 0:
        size += _size(text, bounds, first - 1, first - 1)
        if size > policy.overlap_tokens or first + 1 > last + 1 + 8:
            break
        first -= 1
    return first


def _size(text: str, bounds: list[tuple[int, int]], first: int, last: int) -> int:
    return token_count(text[bounds[first][0] : bounds[last][1]])


def _passage(ordinal: int, block: Block, start: int, end: int, suffix: str, line: int) -> Passage:
    kept = block.text[start:end].rstrip()
    return Passage(
        kept,
        line,
        line + kept.count("\n") if line else 0,
        block.page,
        block.heading_path,
        (ordinal,),
        block.symbol,
        suffix,
    )
