"""vt100-rust, tests/data/fixtures: what a program printed step by step, and the screen after each step."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dari.terminal.engine.engine import Engine, make_engine
from tests.terminal.conformance.suites.suite import Case, EngineName, Suite

COLS, ROWS = 80, 24


def find(folder: Path) -> list[Path]:
    return sorted({path.parent for path in folder.rglob("1.typescript") if path.with_suffix(".json").is_file()})


def run(folders: list[Path], engine: EngineName) -> Iterator[Case]:
    for folder in folders:
        screen = make_engine(COLS, ROWS, 1000, prefer=engine)
        number = 1
        while (step := folder / f"{number}.typescript").is_file():
            screen.feed(step.read_bytes())
            wrong = _wrong(screen, json.loads(step.with_suffix(".json").read_text()))
            yield Case(f"{folder.name}/{number}", "failed" if wrong else "passed", wrong)
            number += 1


def _wrong(screen: Engine, expected: dict[str, Any]) -> str:
    """Text, widths and cursor; colours and modes are asked of us by other tests."""
    row, col = expected["cursor_position"]
    place = (min(col, COLS - 1), row)
    if (screen.cursor.col, screen.cursor.row) != place:
        return f"the cursor is at {screen.cursor.col},{screen.cursor.row}, expected {place[0]},{place[1]}"
    cells = expected["cells"]
    for number, line in enumerate(screen.grid()):
        for at, ours in enumerate(line):
            theirs = cells.get(f"{number},{at}", {})
            text = theirs.get("contents", "").strip(" ")
            width = 2 if theirs.get("is_wide") else 0 if theirs.get("is_wide_continuation") else 1
            if (ours.text.strip(" "), ours.width) != (text, width):
                return f"cell {at},{number} is {ours.text!r} ({ours.width}), expected {text!r} ({width})"
    return ""


SUITE = Suite("vt100-rust", find, run)
