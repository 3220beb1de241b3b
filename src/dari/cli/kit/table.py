"""How commands that look after servers lay things out: tables, warnings, and colour where a screen takes it."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from dari.cli.kit.console import Console
from dari.text.invisible import find_hidden
from dari.text.sanitize import escape_hidden

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
GAP = "  "


def one_line(text: object) -> str:
    """One line that no terminal obeys; servers and files of other people are told this way."""
    return escape_hidden(str(text), one_line=True)


def table(rows: Iterable[Sequence[object]], indent: str = "") -> list[str]:
    """Columns as wide as their widest cell; the last one is left as it is."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        (
            indent + GAP.join([*(cell.ljust(width) for cell, width in zip(row, widths[:-1], strict=False)), row[-1]])
        ).rstrip()
        for row in cells
    ]


def print_lines(terminal: Console, lines: Iterable[str]) -> None:
    terminal.out("".join(f"{line}\n" for line in lines))


def print_warnings(terminal: Console, warnings: Iterable[str]) -> None:
    word = "\x1b[33mwarning:\x1b[0m" if terminal.colour and terminal.stderr_is_tty else "warning:"
    for warning in warnings:
        terminal.err(f"{word} {one_line(warning)}\n")


def paint(text: str, style: str, terminal: Console) -> str:
    """For stdout: coloured where it is a screen that takes colours."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if takes_colour(terminal) and style else text


def takes_colour(terminal: Console) -> bool:
    return terminal.colour and terminal.stdout_is_tty


# Inside a JSON string control characters are escapes already; outside of one they are blanks.
_BLANKS = re.compile(r"[\x00-\x08\x0b-\x1f]")


def print_raw(terminal: Console, payload: bytes | Raw) -> None:
    """The payload exactly as it came, and a line end."""
    _print(terminal, bytes(payload))


def print_json(terminal: Console, payload: Any) -> None:
    """The payload over several lines. A `Raw` keeps its members, order and digits."""
    data = bytes(payload) if isinstance(payload, Raw) else msgspec.json.encode(payload)
    try:
        data = msgspec.json.format(data, indent=2)
    except msgspec.DecodeError:
        pass  # what the server sent is no JSON that we can lay out; it is still what it sent
    _print(terminal, data)


def format_json(value: Any) -> str:
    """A JSON value over several lines, harmless on a terminal."""
    return json_for_terminal(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def json_for_terminal(text: str) -> str:
    """JSON of the same value with nothing in it that a terminal obeys or does not show."""
    text = _BLANKS.sub(" ", text)
    pieces: list[str] = []
    done = 0
    for hidden in find_hidden(text):
        run = text[hidden.start : hidden.start + hidden.count]
        pieces += (text[done : hidden.start], "".join(map(_escaped, run)))
        done = hidden.start + hidden.count
    return "".join((*pieces, text[done:]))


def print_table(terminal: Console, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns as wide as their widest cell; the last one is cut at the edge of a screen, never in a pipe."""
    cells = [[escape_hidden(cell, one_line=True) for cell in row] for row in (head, *rows)]
    widths = [max(text_width(row[at]) for row in cells) for at in range(len(head))]
    for number, row in enumerate(cells):
        padded = [cell + " " * (width - text_width(cell)) for cell, width in zip(row, widths, strict=True)]
        line = "  ".join(padded).rstrip()
        if terminal.stdout_is_tty and terminal.columns > 20:
            line = truncate(line, terminal.columns)
        if number == 0 and terminal.colour and terminal.stdout_is_tty:
            line = f"\x1b[1m{line}\x1b[0m"
        terminal.out(f"{line}\n")


def text_width(text: str) -> int:
    """Columns on a screen: Korean, Chinese and Japanese characters and emoji take two, marks on a letter none."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def truncate(text: str, columns: int) -> str:
    """The text if it fits, else as much as does, with an ellipsis."""
    if text_width(text) <= columns:
        return text
    left = columns - 1
    for at, character in enumerate(text):
        left -= _width(character)
        if left < 0:
            return text[:at] + "…"
    return text


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def wrap_prose(text: str, columns: int, indent: str = "  ") -> list[str]:
    """Prose of a server, harmless, its own line ends kept."""
    lines: list[str] = []
    for line in escape_hidden(text).strip().splitlines():
        lines += textwrap.wrap(line, max(40, min(columns, 110)), initial_indent=indent, subsequent_indent=indent) or [
            ""
        ]
    return lines


def first_sentence(description: object) -> str:
    """What a tool says it does, in one line."""
    if not isinstance(description, str) or not description.strip():
        return ""
    first = description.strip().split("\n\n")[0].replace("\n", " ")
    end = first.find(". ")
    return " ".join((first[: end + 1] if end > 0 else first).split())


def format_size(size_bytes: int) -> str:
    if size_bytes < 1000:
        return f"{size_bytes} bytes"
    return f"{size_bytes / 1000:.1f} kB" if size_bytes < 1_000_000 else f"{size_bytes / 1_000_000:.1f} MB"


def _print(terminal: Console, data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    terminal.out((json_for_terminal(text) if terminal.stdout_is_tty else text) + "\n")


def _escaped(character: str) -> str:
    code = ord(character)
    if 0x20 <= code < 0x7F:
        return character  # a run can reach over the quotes and braces of the JSON itself
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
