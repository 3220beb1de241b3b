"""What is different between two grids, cell by cell."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from dari.terminal.engine.grid import BLANK, Cell, Grid, Row

Kind = Literal["text", "style", "both"]
Span = tuple[int, int]
_LOOKS = tuple(one.name for one in fields(Cell) if one.compare and one.name not in ("text", "width"))


@dataclass(frozen=True, slots=True)
class CellChange:
    """One cell. `style` names the attributes that changed, `inverse` or `fg` for example."""

    row: int
    col: int
    kind: Kind
    before: str
    after: str
    style: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RowChange:
    """One row; `spans` are the columns from … to (not included) in which its cells changed."""

    row: int
    before: str
    after: str
    spans: tuple[Span, ...]

    @property
    def is_style_only(self) -> bool:
        return self.before == self.after


def compare_cells(before: Grid, after: Grid) -> list[CellChange]:
    """Row by row from the top left. A cell that only one of them has counts as blank in the other."""
    found: list[CellChange] = []
    cols = max(before.cols, after.cols)
    for number in range(max(len(before), len(after))):
        old, new = _cells(before, number), _cells(after, number)
        if old is new or old == new:
            continue
        for col in range(cols):
            was, is_now = old[col] if col < len(old) else BLANK, new[col] if col < len(new) else BLANK
            if was is not is_now and was != is_now:
                found.append(_compare(number, col, was, is_now))
    return found


def join_rows(before: Grid, after: Grid, cells: list[CellChange]) -> list[RowChange]:
    """The rows of these changes, with what they read before and after."""
    columns: dict[int, list[int]] = {}
    for change in cells:
        columns.setdefault(change.row, []).append(change.col)
    return [
        RowChange(row, _text(before, row), _text(after, row), tuple(_spans(changed)))
        for row, changed in columns.items()
    ]


def count_scrolled(before: Grid, after: Grid) -> int:
    """How many rows the text moved up (negative: down); 0 when that does not explain most of what is there."""
    old, new = [row.text for row in before.rows], [row.text for row in after.rows]
    kept = _matches(old, new, 0)
    best, most = 0, kept
    for shift in range(1, min(len(old), len(new))):
        for candidate in (shift, -shift):
            count = _matches(old, new, candidate)
            if count > most:
                best, most = candidate, count
    written = sum(1 for text in new if text)
    return best if most >= 2 and most - kept >= 2 and most * 2 >= written else 0


def _matches(old: list[str], new: list[str], shift: int) -> int:
    pairs = zip(old[shift:], new, strict=False) if shift >= 0 else zip(old, new[-shift:], strict=False)
    return sum(1 for was, is_now in pairs if was and was == is_now)


def _compare(row: int, col: int, before: Cell, after: Cell) -> CellChange:
    style = tuple([name for name in _LOOKS if getattr(before, name) != getattr(after, name)])
    is_text = before.text != after.text or before.width != after.width
    kind: Kind = "both" if is_text and style else "text" if is_text else "style"
    return CellChange(row, col, kind, before.text, after.text, style)


def _cells(grid: Grid, number: int) -> tuple[Cell, ...]:
    return grid.rows[number].cells if number < len(grid) else ()


def _text(grid: Grid, number: int) -> str:
    row: Row | None = grid.rows[number] if number < len(grid) else None
    return row.text if row is not None else ""


def _spans(columns: list[int]) -> list[Span]:
    spans: list[Span] = []
    for col in columns:
        if spans and spans[-1][1] == col:
            spans[-1] = (spans[-1][0], col + 1)
        else:
            spans.append((col, col + 1))
    return spans
