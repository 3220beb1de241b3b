"""Chunks of sections (`md-heading-v2` and its kin): headings and pages are hard boundaries, code, tables and images
stand alone, paragraphs and lists are packed to the target with a little overlap."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from dari.knowledge.chunk.policy import BYTES_PER_TOKEN, ChunkPolicy, token_count
from dari.knowledge.document import Block

_ALONE = frozenset(("code", "table", "image"))
# Where an overlap may begin: after a line end, or after the end of a sentence.
_BOUNDARY = re.compile(r"\n|(?<=[.!?。！？])\s+")


class Passage(Struct, frozen=True):
    """Text that becomes one chunk, or more when it is too long."""

    text: str
    line_start: int
    line_end: int
    page: int
    heading_path: tuple[str, ...]
    blocks: tuple[int, ...]
    symbol: str = ""
    suffix: str = ""
    region: tuple[int, int, int, int] = (0, 0, 0, 0)


class _Part(Struct, frozen=True):
    """A block, or the end of one that is repeated for overlap."""

    text: str
    line_start: int
    line_end: int
    ordinal: int
    is_heading: bool = False


def pack_sections(blocks: Sequence[Block], policy: ChunkPolicy, *, has_exact_lines: bool = True) -> Iterator[Passage]:
    """Passages in reading order. Outside of overlaps every block is in exactly one of them.

    With exact lines, the n-th line of a passage is the n-th line of the file from where it begins.
    """
    packer = _Packer(policy, has_exact_lines)
    for ordinal, block in enumerate(blocks):
        yield from packer.add(ordinal, block)
    yield from packer.flush()


class _Packer:
    def __init__(self, policy: ChunkPolicy, has_exact_lines: bool) -> None:
        self._policy = policy
        self._has_exact_lines = has_exact_lines
        self._parts: list[_Part] = []
        self._tokens = 0
        self._path: tuple[str, ...] = ()
        self._page = 0
        self._has_body = False
        self._is_overlap_only = False

    def add(self, ordinal: int, block: Block) -> Iterator[Passage]:
        if block.page != self._page or block.heading_path != self._path or block.kind == "heading":
            if not self._leads_to(block):
                yield from self.flush()
            self._page, self._path = block.page, block.heading_path
        size = token_count(block.text)
        part = _Part(block.text, block.line_start, block.line_end, ordinal, block.kind == "heading")
        if block.kind == "heading":
            self._append(part, size)
        elif block.kind in _ALONE:
            if self._has_body:
                yield from self.flush()
            self._append(part, size, is_body=True)
            yield from self.flush()
        else:
            if self._has_body and self._tokens + size > self._policy.target_tokens:
                overlap = self._overlap()
                yield from self.flush()
                if overlap is not None and token_count(overlap.text) + size <= self._policy.target_tokens:
                    self._append(overlap, token_count(overlap.text))
                    self._is_overlap_only = True
            self._append(part, size, is_body=True)

    def flush(self) -> Iterator[Passage]:
        parts, self._parts, self._tokens = self._parts, [], 0
        is_empty = not parts or self._is_overlap_only
        self._has_body = self._is_overlap_only = False
        if is_empty:
            return
        yield Passage(
            _join(parts, self._has_exact_lines),
            parts[0].line_start,
            parts[-1].line_end,
            self._page,
            self._path,
            tuple(part.ordinal for part in parts),
        )

    def _append(self, part: _Part, tokens: int, *, is_body: bool = False) -> None:
        self._parts.append(part)
        self._tokens += tokens
        if is_body:
            self._has_body, self._is_overlap_only = True, False

    def _leads_to(self, block: Block) -> bool:
        """Headings with nothing between them stand together at the head of what comes: `# Guide`, `## Install`."""
        return (
            bool(self._parts)
            and not self._has_body
            and not self._is_overlap_only
            and block.page == self._page
            and block.heading_path[: len(self._path)] == self._path
            and (block.kind != "heading" or len(block.heading_path) > len(self._path))
        )

    def _overlap(self) -> _Part | None:
        """The end of the last part, from a line or a sentence on."""
        last = self._parts[-1]
        budget = self._policy.overlap_tokens * BYTES_PER_TOKEN
        if not budget or last.is_heading:
            return None
        window = last.text[-budget:]
        if not window.isascii():
            window = window.encode("utf-8", "surrogatepass")[-budget:].decode("utf-8", "ignore")
        if len(window) == len(last.text):
            return last
        found = _BOUNDARY.search(window)
        text = window[found.end() :] if found else ""
        if not text.strip():
            return None
        line = last.line_end - text.count("\n") if last.line_end and self._has_exact_lines else last.line_start
        return _Part(text, line, last.line_end, last.ordinal)


def _join(parts: Sequence[_Part], has_exact_lines: bool) -> str:
    """With as many line ends between two blocks as the file has, where lines are exact."""
    if len(parts) == 1:
        return parts[0].text
    pieces = [parts[0].text]
    for before, part in pairwise(parts):
        gap = part.line_start - before.line_end if has_exact_lines and part.line_start and before.line_end else 2
        pieces += ("\n" * max(1, gap), part.text)
    return "".join(pieces)
