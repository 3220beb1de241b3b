"""A passage that is too long, cut on lines, and a line that is too long, cut at white space or between characters."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from dari.knowledge.chunk.policy import BYTES_PER_TOKEN, token_count


class Piece(Struct, frozen=True):
    """A part of a text; lines count from 0, from the text's first line."""

    text: str
    first_line: int
    last_line: int


def split_oversize(text: str, max_tokens: int) -> list[Piece]:
    """Pieces of at most `max_tokens`. Put together, with the line ends between them, they are the text again."""
    if token_count(text) <= max_tokens:
        return [Piece(text, 0, text.count("\n"))]
    pieces: list[Piece] = []
    begun: list[str] = []
    first, size = 0, 0
    for number, line in enumerate(text.split("\n")):
        length = _size(line) + 1
        if begun and size + length > max_tokens * BYTES_PER_TOKEN:
            pieces.append(Piece("\n".join(begun), first, number - 1))
            begun, size = [], 0
        if length > max_tokens * BYTES_PER_TOKEN:
            pieces += (Piece(part, number, number) for part in split_line(line, max_tokens))
            continue
        if not begun:
            first = number
        begun.append(line)
        size += length
    if begun:
        pieces.append(Piece("\n".join(begun), first, first + len(begun) - 1))
    return [piece for piece in pieces if piece.text.strip()]


def split_line(line: str, max_tokens: int) -> Iterator[str]:
    """Parts that make up the line again; cut after white space where there is some near the end of a part."""
    start, budget = 0, max(max_tokens * BYTES_PER_TOKEN, 4)  # one character is at most 4 bytes
    while start < len(line):
        end = min(len(line), start + budget)
        part = line[start:end]
        if _size(part) > budget:
            part = _cut_bytes(part, budget)
        end = start + len(part)
        if end < len(line):
            space = max(part.rfind(" ", len(part) * 3 // 4), part.rfind("\t", len(part) * 3 // 4))
            if space > 0:
                part = part[: space + 1]
        yield part
        start += len(part)


def _cut_bytes(text: str, size: int) -> str:
    """Its longest start of at most `size` bytes. Lone surrogates take three, as everywhere here."""
    return (
        text.encode("utf-8", "surrogatepass")[:size].decode("utf-8", "ignore")
        if not _has_surrogates(text)
        else text[: max(1, size // 4)]
    )


def _has_surrogates(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
