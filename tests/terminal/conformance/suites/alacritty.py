"""alacritty, alacritty_terminal/tests/ref: a recording, a size, and the grid that has to come of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dari.terminal.engine.engine import make_engine
from tests.terminal.conformance.suites.suite import Case, EngineName, Suite, first_difference

_WIDE_TAIL = 0x40  # the second half of a wide character


def find(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.rglob("alacritty.recording"))


def run(folders: list[Path], engine: EngineName) -> Iterator[Case]:
    for folder in folders:
        size = json.loads((folder / "size.json").read_text())
        cols, rows = size["columns"], size["screen_lines"]
        grid = json.loads((folder / "grid.json").read_text())
        theirs = [_text(row) for row in _visible(grid, rows)]
        screen = make_engine(cols, rows, 10_000, prefer=engine)
        screen.feed((folder / "alacritty.recording").read_bytes())
        ours = [line.rstrip() for line in screen.text(0, rows).split("\n")]
        wrong = first_difference(ours, theirs)
        yield Case(folder.name, "failed" if wrong else "passed", wrong)


def _visible(grid: dict[str, Any], rows: int) -> list[Any]:
    """The ring holds the last row of the screen first, then those above it, then history."""
    raw = grid["raw"]
    ring, zero = raw["inner"], raw.get("zero", 0)
    return [ring[(zero + rows - 1 - number) % len(ring)] for number in range(rows)]


def _text(row: dict[str, Any]) -> str:
    parts = []
    for cell in row["inner"]:
        if _is_tail(cell["flags"]):
            continue
        extra = cell.get("extra") or {}
        joined = (extra.get("zerowidth") if isinstance(extra, dict) else None) or cell.get("zerowidth") or []
        # A tab is kept as one in the cell where it began.
        parts.append(("" if cell["c"] == "\t" else cell["c"]) or " ")
        parts += joined
    return "".join(parts).rstrip()


def _is_tail(flags: Any) -> bool:
    """Flags are a number in older files and words in newer ones."""
    if isinstance(flags, dict):
        flags = flags.get("bits", 0)
    if isinstance(flags, str):
        return "WIDE_CHAR_SPACER" in {word.strip() for word in flags.split("|")}
    return bool(flags & _WIDE_TAIL)


SUITE = Suite("alacritty", find, run)
