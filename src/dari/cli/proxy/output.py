"""What a command prints: text for people, or one JSON value for scripts; the result on stdout, all else on stderr."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from typing import TextIO

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
# What came over the network must not move the cursor or rename the window of whoever reads it.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class Output:
    """`as_json` turns `show` into JSON; notes go to stderr either way."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self.is_coloured = takes_colour(sys.stdout)
        self._notes_coloured = takes_colour(sys.stderr)

    def show(self, payload: object, lines: Iterable[str]) -> None:
        """The result: the payload for a script, the lines for a person."""
        if self.as_json:
            self.json(payload)
        else:
            self.text(*lines)

    def json(self, payload: object) -> None:
        _write(sys.stdout, encoded(payload) + "\n")

    def text(self, *lines: str) -> None:
        for line in lines:
            _write(sys.stdout, line + "\n")

    def note(self, *lines: str) -> None:
        for line in lines:
            _write(sys.stderr, line + "\n")

    def warn(self, warnings: Iterable[str]) -> None:
        for warning in warnings:
            self.note(paint("warning:", "yellow", self._notes_coloured) + f" {printable(warning)}")

    def paint(self, text: str, style: str) -> str:
        return paint(text, style, self.is_coloured)

    @property
    def width(self) -> int | None:
        """Columns of the terminal; None when nobody looks, and nothing needs to be cut."""
        return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def takes_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, style: str, is_coloured: bool) -> str:
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if is_coloured and style else text


def encoded(payload: object) -> str:
    import msgspec

    return msgspec.json.encode(payload).decode()


def printable(text: str) -> str:
    """Without control characters, line breaks and tabs excepted."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def one_line(text: object) -> str:
    """Without any control character."""
    return printable(str(text)).replace("\n", "\\n").replace("\t", "\\t")


def table(rows: Iterable[tuple[str, ...]], gap: str = "  ") -> list[str]:
    """Columns as wide as their widest cell; the last one is left as it is."""
    cells = [tuple(map(one_line, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        gap.join([*(cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)), row[-1]]).rstrip()
        for row in cells
    ]


def pairs(values: Mapping[str, object]) -> list[str]:
    """`name  value` lines; what has no value is left out."""
    return table((name, shown(value)) for name, value in values.items() if value not in (None, ""))


def shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value)) or "none"
    return encoded(value) if isinstance(value, dict) else str(value)


def size(size_bytes: int | None) -> str:
    if size_bytes is None:
        return "-"
    value, units = float(size_bytes), ["B", "kB", "MB", "GB", "TB"]
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.0f} {units[0]}" if units[0] == "B" or value >= 99.5 else f"{value:.1f} {units[0]}"


def duration(ms: float | None) -> str:
    if ms is None:
        return "-"
    if ms < 1000:
        return f"{ms:.0f} ms"
    return f"{ms / 1000:.1f} s" if ms < 60_000 else f"{ms / 60_000:.1f} min"


def _write(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()
