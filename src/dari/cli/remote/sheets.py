"""How commands that look after servers lay things out: tables, warnings, and colour where a screen takes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dari.cli.remote.terminal import Terminal
from dari.text.sanitize import escape_hidden

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
GAP = "  "


def plain(text: object) -> str:
    """One line that no terminal obeys; servers and files of other people are told this way."""
    return escape_hidden(str(text), one_line=True)


def table(rows: Iterable[Sequence[object]], indent: str = "") -> list[str]:
    """Columns as wide as their widest cell; the last one is left as it is."""
    cells = [[plain(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        (
            indent + GAP.join([*(cell.ljust(width) for cell, width in zip(row, widths[:-1], strict=False)), row[-1]])
        ).rstrip()
        for row in cells
    ]


def print_lines(terminal: Terminal, lines: Iterable[str]) -> None:
    terminal.out("".join(f"{line}\n" for line in lines))


def warn(terminal: Terminal, warnings: Iterable[str]) -> None:
    word = "\x1b[33mwarning:\x1b[0m" if terminal.colour and terminal.stderr_is_tty else "warning:"
    for warning in warnings:
        terminal.err(f"{word} {plain(warning)}\n")


def painted(text: str, style: str, terminal: Terminal) -> str:
    """For stdout: coloured where it is a screen that takes colours."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if takes_colour(terminal) and style else text


def takes_colour(terminal: Terminal) -> bool:
    return terminal.colour and terminal.stdout_is_tty
