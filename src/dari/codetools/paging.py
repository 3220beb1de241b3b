"""Cursors of lists that are made anew for each page: where the next page begins, and of which question."""

from __future__ import annotations

import hashlib

from dari.errors import InvalidInput


def encode_cursor(offset: int, *question: object) -> str:
    return f"{offset}-{_digest(question)}"


def decode_cursor(cursor: str | None, *question: object) -> int:
    """Where the page begins: 0 without a cursor; InvalidInput for one of another question."""
    if not cursor:
        return 0
    number, _, digest = cursor.partition("-")
    if not number.isascii() or not number.isdecimal() or len(number) > 9 or digest != _digest(question):
        raise InvalidInput(
            f"cursor must be from a result of the same arguments, got {cursor[:60]!r}",
            "leave it out for the first page",
        )
    return int(number)


def _digest(question: tuple[object, ...]) -> str:
    return hashlib.sha256(repr(question).encode("utf-8", "surrogatepass")).hexdigest()[:8]
