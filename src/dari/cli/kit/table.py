"""Layout for people: columns that line up by screen cells, prose that wraps, sizes and times in a few characters."""

from __future__ import annotations

from dari.cli.kit.console import print_lines

TYPE_CHECKING = False  # `import typing` costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dari.cli.kit.console import Console

GAP = "  "


def one_line(text: object) -> str:
    """The text on one line, with nothing in it that a terminal obeys: for what servers and files of others say."""
    from dari.text.sanitize import escape_hidden

    return escape_hidden(str(text), one_line=True)


def format_table(rows: Iterable[Sequence[object]], indent: str = "") -> list[str]:
    """Columns as wide as their widest cell; the last one is left as it is."""
    from dari.text.width import text_width

    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(text_width, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        padded = [cell + " " * (width - text_width(cell)) for cell, width in zip(row[:-1], widths, strict=False)]
        lines.append((indent + GAP.join([*padded, row[-1]])).rstrip())
    return lines


def format_pairs(values: Mapping[str, object]) -> list[str]:
    """`name  value` lines; what has no value is left out."""
    return format_table((name, format_value(value)) for name, value in values.items() if value not in (None, ""))


def format_value(value: object) -> str:
    """A setting as a person writes it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        return ", ".join(map(format_value, value)) or "none"
    if isinstance(value, dict):
        from dari.cli.kit.console import encode_json

        return encode_json(value)
    return str(value)


def print_table(console: Console, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table under a bold heading; lines are cut at the edge of a screen, never in a pipe."""
    lines = format_table([head, *rows])
    if console.stdout_is_tty and console.columns > 20:
        from dari.text.width import truncate

        lines = [truncate(line, console.columns) for line in lines]
    if console.colour and console.stdout_is_tty:
        lines[0] = f"\x1b[1m{lines[0]}\x1b[0m"
    print_lines(console, lines)


def wrap_prose(text: str, columns: int, indent: str = "  ") -> list[str]:
    """Prose of a server, harmless, its own line ends kept."""
    import textwrap

    from dari.text.sanitize import escape_hidden

    width = max(40, min(columns, 110))
    lines: list[str] = []
    for line in escape_hidden(text).strip().splitlines():
        lines += textwrap.wrap(line, width, initial_indent=indent, subsequent_indent=indent) or [""]
    return lines


def first_sentence(description: object) -> str:
    """What a tool says it does, in one line."""
    if not isinstance(description, str) or not description.strip():
        return ""
    first = description.strip().split("\n\n")[0].replace("\n", " ")
    end = first.find(". ")
    return " ".join((first[: end + 1] if end > 0 else first).split())


def format_size(size_bytes: int | None, *, byte: str = "B") -> str:
    """Three digits and a unit; `byte` is what the smallest one is called."""
    if size_bytes is None:
        return "-"
    if size_bytes < 1000:
        return f"{size_bytes} {byte}"
    value, units = float(size_bytes), ["B", "kB", "MB", "GB", "TB"]
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.0f} {units[0]}" if value >= 99.5 else f"{value:.1f} {units[0]}"


def format_duration(ms: float | None) -> str:
    if ms is None:
        return "-"
    if ms < 1000:
        return f"{ms:.0f} ms"
    return f"{ms / 1000:.1f} s" if ms < 60_000 else f"{ms / 60_000:.1f} min"
