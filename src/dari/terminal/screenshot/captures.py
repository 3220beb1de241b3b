"""A screen at one moment, kept so that it can be compared later."""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass, replace

import msgspec

from dari.errors import InvalidInput
from dari.terminal.engine.engine import Cursor, Engine, Shape, check_size
from dari.terminal.engine.grid import BACKGROUND, FOREGROUND, Cell, Grid, Rgb, Row, Underline

_KIND = b"dari-capture-1\n"
_MAX_CAPTURE_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class ScreenCapture:
    grid: Grid
    cursor: Cursor | None = None
    pane: str = ""
    taken: float = 0.0
    """Seconds since 1970."""

    @staticmethod
    def of(engine: Engine, pane: str = "", start: int = 0, end: int | None = None) -> ScreenCapture:
        """What a screen shows now; a screen in reverse video (DECSCNM) has its own colours swapped."""
        grid = engine.grid(start, end)
        if engine.modes.reverse_video:
            own = (grid.foreground or FOREGROUND, grid.background or BACKGROUND)
            grid = replace(grid, foreground=own[1], background=own[0])
        return ScreenCapture(grid, engine.cursor, pane, time.time())

    def stored(self) -> bytes:
        """Bytes that `load` turns back into an equal capture; about 2 kB for a full screen of text."""
        numbers: dict[Cell, int] = {}
        rows = [[numbers.setdefault(cell, len(numbers)) for cell in row.cells] for row in self.grid.rows]
        cursor = self.cursor
        stored = _Stored(
            cols=self.grid.cols,
            start=self.grid.start,
            cells=[_pack(cell) for cell in numbers],
            rows=rows,
            wraps=[row.wraps for row in self.grid.rows],
            foreground=self.grid.foreground,
            background=self.grid.background,
            cursor=((cursor.col, cursor.row, cursor.shape, cursor.is_visible, cursor.is_blinking) if cursor else None),
            pane=self.pane,
            taken=self.taken,
        )
        return _KIND + zlib.compress(msgspec.msgpack.encode(stored), 6)

    @staticmethod
    def load(data: bytes) -> ScreenCapture:
        """The capture that `stored` gave these bytes for; anything else is an InvalidInput."""
        if not data.startswith(_KIND):
            raise InvalidInput(f"{data[:20]!r} begins no capture", "give what a capture was stored as")
        try:
            unpacker = zlib.decompressobj()
            raw = unpacker.decompress(data[len(_KIND) :], _MAX_CAPTURE_BYTES)
            if not unpacker.eof:
                raise InvalidInput(f"a capture of {len(data)} bytes is cut off or too large", "take a new one")
            stored = msgspec.msgpack.decode(raw, type=_Stored)
            cells = [_unpack(one) for one in stored.cells]
            rows = [
                Row(tuple([cells[number] for number in row]), wraps)
                for row, wraps in zip(stored.rows, stored.wraps, strict=True)
            ]
        except (zlib.error, msgspec.DecodeError, ValueError, LookupError) as error:
            raise InvalidInput(f"a capture of {len(data)} bytes cannot be read: {error}", "take a new one") from error
        check_size(stored.cols, max(1, len(rows)))
        grid = Grid(stored.cols, stored.start, tuple(rows), stored.foreground, stored.background)
        return ScreenCapture(grid, Cursor(*stored.cursor) if stored.cursor else None, stored.pane, stored.taken)


_Packed = tuple[str, int, Rgb | None, Rgb | None, int, Underline, Rgb | None, str]
_FLAGS = ("bold", "italic", "inverse", "strike", "dim", "blink", "invisible", "overline")


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    cols: int
    start: int
    cells: list[_Packed]
    rows: list[list[int]]
    wraps: list[bool]
    foreground: Rgb | None
    background: Rgb | None
    cursor: tuple[int, int, Shape, bool, bool] | None
    pane: str
    taken: float


def _pack(cell: Cell) -> _Packed:
    flags = sum(getattr(cell, name) << bit for bit, name in enumerate(_FLAGS))
    # An engine may give a kind of str of its own, which is not encoded.
    return (str(cell.text), cell.width, cell.fg, cell.bg, flags, cell.underline, cell.underline_color, cell.link)


def _unpack(packed: _Packed) -> Cell:
    text, width, fg, bg, flags, underline, underline_color, link = packed
    if width not in (0, 1, 2) or any(
        not 0 <= channel < 256 for color in (fg, bg, underline_color) for channel in color or ()
    ):
        raise ValueError(f"no cell is {width} columns wide, or has a colour beyond 255")
    return Cell(
        text,
        width,
        fg,
        bg,
        underline=underline,
        underline_color=underline_color,
        link=link,
        **{name: bool(flags >> bit & 1) for bit, name in enumerate(_FLAGS)},
    )
