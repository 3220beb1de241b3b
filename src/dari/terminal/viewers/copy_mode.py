"""Copy mode: look back in a pane with a cursor, search, select and copy, as tmux does it.

Output goes on meanwhile. A mark in the engine moves with the text, and every position here moves with the mark.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dari.terminal.engine.engine import Engine
from dari.terminal.engine.grid import Cell, Row

MAX_COPY_CHARS = 1_000_000


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Row 0 is the top of the screen, negative rows have scrolled off it."""

    row: int
    col: int


class CopyMode:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._mark = engine.mark()
        self._mark_row = self._find_mark()
        self._top = 0
        self._cursor = Position(engine.cursor.row, engine.cursor.col)
        self._anchor: Position | None = None
        self._needle = ""
        self._is_upwards = False

    def is_of(self, engine: Engine) -> bool:
        """Whether it looks at this screen; a program that takes another one's place gets a new one."""
        return self._engine is engine

    @property
    def scrolled(self) -> int:
        """Rows between the bottom of the view and the bottom of the screen."""
        self._follow_text()
        return -self._top

    @property
    def cursor(self) -> Position:
        """Where the cursor is in the view."""
        self._follow_text()
        return Position(self._cursor.row - self._top, self._cursor.col)

    def move(self, rows: int = 0, cols: int = 0) -> None:
        self._follow_text()
        self._go(Position(self._cursor.row + rows, self._cursor.col + cols))

    def scroll(self, rows: int) -> None:
        """Move the view, the cursor with it; at an end the cursor goes on alone."""
        self._follow_text()
        top = max(-self._engine.history, min(0, self._top + rows))
        moved, self._top = top - self._top, top
        self._go(Position(self._cursor.row + (moved or rows), self._cursor.col))

    def go_to_row_start(self) -> None:
        self._go(Position(self._cursor.row, 0))

    def go_to_row_end(self) -> None:
        self._follow_text()
        self._go(Position(self._cursor.row, max(0, len(_trimmed(self._row(self._cursor.row))) - 1)))

    def select(self) -> None:
        """Begin a selection at the cursor; a second time, begin it anew here."""
        self._follow_text()
        self._anchor = self._cursor

    def clear(self) -> bool:
        """Drop the selection; whether there was one."""
        had, self._anchor = self._anchor is not None, None
        return had

    def search(self, needle: str, *, is_upwards: bool) -> bool:
        """Go to the next match, around the end; upper case in `needle` makes the case count."""
        self._needle, self._is_upwards = needle, is_upwards
        return self.search_again()

    def search_again(self, *, is_reversed: bool = False) -> bool:
        self._follow_text()
        if not self._needle:
            return False
        is_upwards = self._is_upwards is not is_reversed
        is_exact = any(each.isupper() for each in self._needle)
        needle = self._needle if is_exact else self._needle.lower()
        first = -self._engine.history
        text = self._engine.text(first, self._engine.rows)
        lines = (text if is_exact else text.lower()).split("\n")
        # From the cursor's row around to that row again. The cells of a row are asked for only where it has a match.
        for step in range(len(lines) + 1):
            at = (self._cursor.row - first + (-step if is_upwards else step)) % len(lines)
            if needle not in lines[at]:
                continue
            cols = self._match_columns(first + at, lines[at], needle)
            if step == 0:
                cols = [col for col in cols if (col < self._cursor.col if is_upwards else col > self._cursor.col)]
            if cols:
                self._go(Position(first + at, cols[-1 if is_upwards else 0]))
                return True
        return False

    def selected_text(self) -> str:
        """The selected text, rows of one line joined; empty without a selection."""
        self._follow_text()
        if self._anchor is None:
            return ""
        first, last = sorted((self._anchor, self._cursor))
        rows = self._engine.grid(first.row, last.row + 1).rows
        parts: list[str] = []
        for number, row in enumerate(rows, first.row):
            start = first.col if number == first.row else 0
            end = last.col + 1 if number == last.row else len(row)
            is_last = number == last.row
            cells = row.cells[start:end] if row.wraps and not is_last else _trimmed(row)[start:end]
            parts.append(_text(cells) + ("" if is_last or row.wraps else "\n"))
        return "".join(parts)[:MAX_COPY_CHARS]

    def highlight(self, row: int, cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
        """The cells of a row of the view, the selected ones inverted."""
        if self._anchor is None:
            return cells
        first, last = sorted((self._anchor, self._cursor))
        number = row + self._top
        if not first.row <= number <= last.row:
            return cells
        start = first.col if number == first.row else 0
        end = last.col + 1 if number == last.row else len(cells)
        inverted = tuple(replace(cell, inverse=not cell.inverse) for cell in cells[start:end])
        return cells[:start] + inverted + cells[end:]

    def _go(self, wanted: Position) -> None:
        row = max(-self._engine.history, min(self._engine.rows - 1, wanted.row))
        self._cursor = Position(row, max(0, min(self._engine.cols - 1, wanted.col)))
        self._top = min(self._top, row)
        self._top = max(self._top, row - self._engine.rows + 1)

    def _match_columns(self, number: int, line: str, needle: str) -> list[int]:
        """Where the needle begins in the text of that row, as columns."""
        columns = [
            col for col, cell in enumerate(self._row(number)) for _ in range(len(cell.text) or (1 if cell.width else 0))
        ]
        found: list[int] = []
        at = line.find(needle)
        while at >= 0:
            found.append(columns[at] if at < len(columns) else 0)
            at = line.find(needle, at + 1)
        return found

    def _row(self, number: int) -> Row:
        return self._engine.grid(number, number + 1).rows[0]

    def _follow_text(self) -> None:
        """Move everything by as many rows as the text has moved since."""
        now = self._find_mark()
        moved, self._mark_row = now - self._mark_row, now
        if moved:
            self._top = max(-self._engine.history, min(0, self._top + moved))
            self._anchor = None if self._anchor is None else replace(self._anchor, row=self._anchor.row + moved)
            self._cursor = replace(self._cursor, row=self._cursor.row + moved)
        self._go(self._cursor)

    def _find_mark(self) -> int:
        place = self._engine.place(self._mark)
        if place is None:  # its row is gone: stand still from here on
            self._mark = self._engine.mark()
            place = self._engine.place(self._mark)
            self._mark_row = place[1] if place is not None else 0
        return place[1] if place is not None else 0


def _trimmed(row: Row) -> tuple[Cell, ...]:
    end = len(row)
    while end and not row[end - 1].text.strip() and row[end - 1].width:
        end -= 1
    return row.cells[:end]


def _text(cells: tuple[Cell, ...]) -> str:
    return "".join([cell.text or (" " if cell.width else "") for cell in cells])
