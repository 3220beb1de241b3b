"""The width of text in columns of a terminal. The only place that knows about wide and combining characters."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

_ZERO = frozenset({"Mn", "Me", "Cf", "Cc"})


@lru_cache(maxsize=4096)
def char_width(char: str) -> int:
    """Cells that one character takes: 2 for wide and full-width ones, 0 for combining and invisible ones."""
    if " " <= char < "\x7f":
        return 1
    if unicodedata.category(char) in _ZERO:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def text_width(text: str) -> int:
    """Columns that the text takes: Korean, Chinese, Japanese and emoji take two, marks on a letter none."""
    return len(text) if text.isascii() else sum(map(char_width, text))


def take_columns(text: str, columns: int) -> str:
    """The longest start of the text that is at most so many columns wide."""
    left = columns
    for at, char in enumerate(text):
        left -= char_width(char)
        if left < 0:
            return text[:at]
    return text


def truncate(text: str, columns: int) -> str:
    """The text if it fits, else as much of it as does, and an ellipsis."""
    return text if text_width(text) <= columns else take_columns(text, columns - 1) + "…"


def split_cells(text: str) -> list[str]:
    """One entry per cell; a wide character is followed by an empty entry, combining ones join the one before."""
    if text.isascii():
        return list(text)
    found: list[str] = []
    for char in text:
        width = char_width(char)
        if width == 0 and found:
            found[-2 if found[-1] == "" and len(found) > 1 else -1] += char
        elif width:
            found.append(char)
            if width == 2:
                found.append("")
    return found


def slice_cells(row: list[str], start: int, end: int | None) -> str:
    """The text in the cells from `start` up to `end`, without the blanks around it."""
    return "".join(row[start:end]).strip()
