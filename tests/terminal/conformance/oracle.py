"""@xterm/headless in a node process: what it shows for a stream, in the words of our own engines."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dari.terminal.engine.engine import Engine, make_engine
from dari.terminal.engine.grid import PALETTE, Cell, Rgb, Row, joined_cells
from tests.terminal.conformance.streams import Stream

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = Path(__file__).with_name("oracle.mjs")
_ATTRIBUTES = ("bold", "dim", "italic", "underline", "inverse", "strike", "invisible")


class OracleMissing(Exception):
    """Node or the package is not installed; the message says how to get it."""


@dataclass(frozen=True, slots=True)
class Glyph:
    """A cell as far as two terminals can be expected to agree: a blank is its background alone."""

    text: str
    width: int
    bg: Rgb | None = None
    fg: Rgb | None = None
    attributes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Screen:
    rows: tuple[tuple[Glyph, ...], ...]
    cursor: tuple[int, int]
    is_alternate: bool
    whole: tuple[str, ...]
    """The lines from the oldest on, put together where they were wrapped, blanks at their ends left out."""
    fell: str = ""
    """The exception with which the terminal gave up, if it did."""

    @property
    def text(self) -> list[str]:
        return ["".join(glyph.text or (" " if glyph.width else "") for glyph in row).rstrip(" ") for row in self.rows]


class Oracle:
    """Asked through `show`; one process serves any number of batches."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def show(self, streams: Sequence[Stream]) -> list[Screen]:
        asked = [{"cols": stream.cols, "rows": stream.rows, "steps": stream.steps} for stream in streams]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise OracleMissing(f"the oracle ended with {self._process.wait(10)}: its stderr says why")
        return [_their_screen(told) for told in json.loads(answer)]


@contextmanager
def oracle() -> Iterator[Oracle]:
    packages = Path(os.environ.get("DARI_NPM_DIR") or ROOT / ".dev" / "npm")
    node = os.environ.get("DARI_NODE") or shutil.which("node")
    for name in ("headless", "addon-unicode11"):
        if node is None or not (packages / "node_modules" / "@xterm" / name).is_dir():
            raise OracleMissing(
                f"@xterm/{name} or node is not installed\nhint: ./dev conformance terminal fetches them"
            )
    process = subprocess.Popen(
        [str(node), str(SCRIPT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "DARI_NPM_DIR": str(packages)},
    )
    try:
        with process:
            yield Oracle(process)
            assert process.stdin is not None
            process.stdin.close()
            process.wait(20)
    finally:
        if process.poll() is None:
            process.kill()


def show_ours(stream: Stream, prefer: str = "ghostty") -> Screen:
    engine: Engine = make_engine(stream.cols, stream.rows, 1000, prefer=prefer)  # type: ignore[arg-type]
    for step in stream.steps:
        if isinstance(step, str):
            engine.feed(step.encode())
        else:
            engine.resize(*step)
    cursor = engine.cursor
    screen = Screen(
        tuple(tuple(_our_glyph(cell) for cell in row) for row in engine.grid()),
        (cursor.col, cursor.row),
        engine.is_alternate,
        _unwrapped(engine.grid(-engine.history).rows),
    )
    engine.close()
    return screen


def _unwrapped(rows: Sequence[Row]) -> tuple[str, ...]:
    lines = [""]
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        lines[-1] += "".join(cell.text or (" " if cell.width else "") for cell in joined_cells(row, after))
        if not row.wraps:
            lines.append("")
    return _trimmed(lines)


def _our_glyph(cell: Cell) -> Glyph:
    if cell.text.strip(" ") == "":
        return Glyph("", cell.width, cell.bg)
    return Glyph(
        cell.text, cell.width, cell.bg, cell.fg, frozenset(name for name in _ATTRIBUTES if getattr(cell, name))
    )


def _their_screen(told: dict[str, Any]) -> Screen:
    if "fell" in told:
        return Screen((), (0, 0), False, (), told["fell"])
    rows = tuple(tuple(_their_glyph(cell) for cell in row) for row in told["lines"])
    return Screen(rows, (told["cursor"][0], told["cursor"][1]), told["alternate"], _trimmed(told["whole"]))


def _trimmed(lines: Sequence[str]) -> tuple[str, ...]:
    found = [line.rstrip(" ") for line in lines]
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def _their_glyph(cell: Any) -> Glyph:
    text, width, fg, bg, bits = (cell, 1, None, None, 0) if isinstance(cell, str) else cell
    if text.strip(" ") == "":
        return Glyph("", width, _rgb(bg))
    attributes = frozenset(name for at, name in enumerate(_ATTRIBUTES) if bits >> at & 1)
    return Glyph(text, width, _rgb(bg), _rgb(fg), attributes)


def _rgb(color: int | str | None) -> Rgb | None:
    if color is None:
        return None
    if isinstance(color, int):
        return PALETTE[color]
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)
