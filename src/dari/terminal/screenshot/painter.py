"""Grids into PNGs. Rows that were painted before are not drawn, coloured or packed again."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dari.terminal.engine.engine import Cursor, Shape
from dari.terminal.engine.grid import BLANK, Cell, Grid, Rgb, Row
from dari.terminal.screenshot.canvas import Metrics
from dari.terminal.screenshot.fonts import Fonts
from dari.terminal.screenshot.glyphs import Glyphs
from dari.terminal.screenshot.png import Coloring, Palette, Strip, TrueColor, fit, pack_strip, write_png
from dari.terminal.screenshot.tiles import FINE, Ink, Theme, Tile, Tiles

if TYPE_CHECKING:
    from PIL.Image import Image

_MAX_CACHED_LINES = 2000
_MAX_CACHED_TILES = 8192
_MAX_CACHED_CELLS = 30_000

Pointer = tuple[int, Shape]


@dataclass(frozen=True, slots=True)
class Picture:
    png: bytes
    width: int
    height: int

    def open(self) -> Image:
        """The pixels as a Pillow image in RGB."""
        from io import BytesIO

        from PIL import Image

        return Image.open(BytesIO(self.png)).convert("RGB")


@dataclass(slots=True, eq=False)
class _Line:
    """A painted row. `cells` keeps the objects alive whose identities are its key."""

    cells: tuple[Cell, ...]
    cols: int
    pointer: Pointer | None
    inks: frozenset[Ink]
    tiles: list[Tile] | None = None
    """Until they are coloured; what is packed is all that stays."""
    strip: Strip | None = None
    coloring: Coloring | None = None


@dataclass(slots=True)
class Work:
    """What a painter has done so far, for those who ask whether it did too much."""

    pictures: int = 0
    rows_drawn: int = 0
    tiles_made: int = 0


class Painter:
    """Paints any number of grids; one at a time, from any thread. It keeps what it drew for the next picture.

    The first picture opens fonts (about 0.1 s), so a caller on an event loop paints in a thread.
    """

    def __init__(self, metrics: Metrics | None = None, fonts: Fonts | None = None) -> None:
        self.theme = Theme()
        self.metrics = metrics or Metrics()
        self.work = Work()
        self._glyphs = Glyphs(self.metrics, fonts or Fonts())
        self._lock = threading.Lock()
        self._own: tuple[Rgb, Rgb] | None = None
        self._forget(self.theme.foreground, self.theme.background)

    def paint(self, grid: Grid, cursor: Cursor | None = None) -> Picture:
        """The grid as it is, with the cursor where it is visible and inside the grid."""
        self.metrics.check_picture(grid.cols, len(grid))
        with self._lock:
            self._prepare(grid)
            pointed = cursor.row - grid.start if cursor is not None and cursor.is_visible else -1
            lines = []
            for number, row in enumerate(grid.rows):
                pointer = (cursor.col, cursor.shape) if cursor is not None and number == pointed else None
                lines.append(self._line(row, grid.cols, pointer))
            coloring = self._choose(frozenset[Ink]().union(*[line.inks for line in lines]))
            strips = [self._strip(line, coloring) for line in lines]
            self.work.pictures += 1
            width, height = grid.cols * self.metrics.width, len(lines) * self.metrics.height
            return Picture(write_png(width, height, coloring.colors, strips), width, height)

    def _prepare(self, grid: Grid) -> None:
        own = (grid.foreground or self.theme.foreground, grid.background or self.theme.background)
        if own != self._own:
            self._forget(*own)
        elif len(self._by_value) > _MAX_CACHED_TILES or len(self._by_identity) > _MAX_CACHED_CELLS:
            self._by_identity.clear()
            self._by_value.clear()
            self._coloring.forget_tiles()
        while len(self._lines) > _MAX_CACHED_LINES:
            del self._lines[next(iter(self._lines))]

    def _forget(self, foreground: Rgb, background: Rgb) -> None:
        self._own = (foreground, background)
        self._tiles = Tiles(self._glyphs, self.metrics, self.theme, foreground, background)
        self._by_identity: dict[int, tuple[Cell, Tile]] = {}
        self._by_value: dict[tuple[Cell, int, Shape | None], Tile] = {}
        self._lines: dict[tuple[object, ...], _Line] = {}
        self._coloring: Coloring = Palette(FINE)
        self._inks: frozenset[Ink] = frozenset()

    def _line(self, row: Row, cols: int, pointer: Pointer | None) -> _Line:
        # Engines hand out the same object for equal cells; hashing 120 cells by value would cost more than drawing.
        key = (cols, pointer, *map(id, row.cells))
        line = self._lines.pop(key, None)
        if line is None:
            tiles = self._row_tiles(row.cells, cols, pointer)
            drawn = (None, *[tile.number for tile in tiles])
            same = self._lines.get(drawn)
            if same is None:
                inks = frozenset([ink for tile in set(tiles) for ink in tile.inks])
                line = self._lines[drawn] = _Line(row.cells, cols, pointer, inks, tiles)
            else:
                line = _Line(row.cells, cols, pointer, same.inks, None, same.strip, same.coloring)
        self._lines[key] = line  # at the end: what was not used for long is at the front
        return line

    def _row_tiles(self, cells: tuple[Cell, ...], cols: int, pointer: Pointer | None) -> list[Tile]:
        known = self._by_identity
        tiles: list[Tile] = []
        at = 0
        special = _head(cells, pointer[0]) if pointer else -1
        while at < cols:
            cell = cells[at] if at < len(cells) else BLANK
            is_wide = cell.width == 2 and at + 1 < cols and at + 1 < len(cells) and cells[at + 1].width == 0
            if pointer and at == special:
                tiles.append(self._tile(cell, 2 if is_wide else 1, pointer[1]))
            elif is_wide or cell.width == 2:
                tiles.append(self._tile(cell, 2 if is_wide else 1, None))
            else:
                found = known.get(id(cell))
                if found is None:
                    found = known[id(cell)] = (cell, self._tile(cell, 1, None))
                tiles.append(found[1])
            at += 2 if is_wide else 1
        return tiles

    def _tile(self, cell: Cell, cells: int, cursor: Shape | None) -> Tile:
        key = (cell, cells, cursor)
        tile = self._by_value.get(key)
        if tile is None:
            tile = self._by_value[key] = self._tiles.make(cell, cells, cursor)
            self.work.tiles_made += 1
        return tile

    def _choose(self, inks: frozenset[Ink]) -> Coloring:
        """Keep the colouring while it can show the screen and no finer one could."""
        if inks != self._inks:
            self._inks = inks
            current = self._coloring
            is_finest = isinstance(current, Palette) and current.steps == FINE
            if not is_finest or not current.takes(inks):
                fitting = fit(inks)
                is_finer = isinstance(fitting, Palette) and (
                    isinstance(current, TrueColor) or fitting.steps > current.steps
                )
                if is_finer or not current.takes(inks):
                    self._coloring = fitting
        return self._coloring

    def _strip(self, line: _Line, coloring: Coloring) -> Strip:
        if line.strip is None or line.coloring is not coloring:
            tiles = line.tiles or self._row_tiles(line.cells, line.cols, line.pointer)
            line.tiles = None
            columns = [coloring.lines(tile) for tile in tiles]
            line.strip = pack_strip([b"".join(parts) for parts in zip(*columns, strict=True)])
            line.coloring = coloring
            self.work.rows_drawn += 1
        return line.strip


def _head(cells: tuple[Cell, ...], col: int) -> int:
    """The column of the character that covers `col`."""
    return col - 1 if 0 < col < len(cells) and cells[col].width == 0 and cells[col - 1].width == 2 else col
