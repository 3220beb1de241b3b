"""A screen as cells: what screenshots, diffs and exports look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Rgb = tuple[int, int, int]
Underline = Literal["", "single", "double", "curly", "dotted", "dashed"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One column of a row. A blank has no text; the second column of a wide character has no text and width 0.

    `fg` and `bg` are None for the terminal's own colours; `inverse` is not applied to them.
    """

    text: str = ""
    width: int = 1
    fg: Rgb | None = None
    bg: Rgb | None = None
    bold: bool = False
    italic: bool = False
    underline: Underline = ""
    inverse: bool = False
    strike: bool = False
    dim: bool = False
    blink: bool = False
    invisible: bool = False
    overline: bool = False
    underline_color: Rgb | None = None
    link: str = ""
    fg_index: int | None = field(default=None, compare=False)
    bg_index: int | None = field(default=None, compare=False)
    """Which of the 256 colours of the terminal `fg` and `bg` are, as long as no program has changed that one."""


BLANK = Cell()
TAIL = Cell(width=0)


@dataclass(frozen=True, slots=True)
class Row:
    cells: tuple[Cell, ...]
    wraps: bool = False
    """The line goes on in the next row."""

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, col: int) -> Cell:
        return self.cells[col]

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.cells)

    @property
    def text(self) -> str:
        """The row as text; blanks at its end are trimmed."""
        return "".join([cell.text or (" " if cell.width else "") for cell in self.cells]).rstrip(" ")


def joined_cells(row: Row, after: Row | None) -> tuple[Cell, ...]:
    """A row as part of a line that goes on in the next one.

    A wide character that did not fit into the last column left a blank there, which is not part of the line.
    """
    last = row.cells[-1]
    is_left = row.wraps and after is not None and after.cells[0].width == 2 and not last.text and last.width == 1
    return row.cells[:-1] if is_left else row.cells


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows `start` … of a screen at one moment. Equal cells are often one object, so `is` is a fast first test."""

    cols: int
    start: int
    rows: tuple[Row, ...]
    foreground: Rgb | None = None
    background: Rgb | None = None
    """The terminal's own colours where the program set them (OSC 10, 11)."""

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> Row:
        """By position in `rows`, not by the screen's numbering."""
        return self.rows[row]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @property
    def text(self) -> str:
        return "\n".join([row.text for row in self.rows])


FOREGROUND: Rgb = (229, 229, 229)
BACKGROUND: Rgb = (0, 0, 0)

_BASE: tuple[Rgb, ...] = (
    (0, 0, 0),
    (205, 0, 0),
    (0, 205, 0),
    (205, 205, 0),
    (0, 0, 238),
    (205, 0, 205),
    (0, 205, 205),
    (229, 229, 229),
    (127, 127, 127),
    (255, 0, 0),
    (0, 255, 0),
    (255, 255, 0),
    (92, 92, 255),
    (255, 0, 255),
    (0, 255, 255),
    (255, 255, 255),
)
_STEPS = (0, 95, 135, 175, 215, 255)
_CUBE: tuple[Rgb, ...] = tuple((red, green, blue) for red in _STEPS for green in _STEPS for blue in _STEPS)
_GREYS: tuple[Rgb, ...] = tuple((8 + 10 * step,) * 3 for step in range(24))

PALETTE: tuple[Rgb, ...] = _BASE + _CUBE + _GREYS
