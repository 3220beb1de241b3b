"""Captures of a screen, compared cell by cell and pixel by pixel, with a picture that marks where they differ."""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Literal

import msgspec

from dari.errors import InvalidInput
from dari.struct_types import ready
from dari.terminal.engine.engine import Cursor, Engine, Shape, check_size
from dari.terminal.engine.grid import BACKGROUND, BLANK, FOREGROUND, Cell, Grid, Rgb, Row, Underline
from dari.terminal.screenshot.painter import Painter, Picture

if TYPE_CHECKING:
    from PIL.Image import Image

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
            raise InvalidInput(
                f"the bytes must be a capture, they begin with {data[:20]!r}", "give what a capture was stored as"
            )
        try:
            unpacker = zlib.decompressobj()
            raw = unpacker.decompress(data[len(_KIND) :], _MAX_CAPTURE_BYTES)
            if not unpacker.eof:
                raise InvalidInput(f"a capture of {len(data)} bytes is cut off or too large", "take a new one")
            stored = msgspec.msgpack.decode(raw, type=ready(_Stored))
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


MAX_BOXES = 100
_FADED = 0.4


@dataclass(frozen=True, slots=True)
class Box:
    """Pixels that changed and touch by their cells: left … right-1, top … bottom-1."""

    left: int
    top: int
    right: int
    bottom: int


@dataclass(frozen=True, slots=True)
class ScreenDiff:
    """`cells` and `rows` are complete; rows are counted from the top of the captures.

    The picture is the later capture, faded where nothing changed, with a frame around each box.
    """

    cells: tuple[CellChange, ...]
    rows: tuple[RowChange, ...]
    pixels_changed: int
    pixels: int
    boxes: tuple[Box, ...]
    size_before: tuple[int, int]
    size_after: tuple[int, int]
    cursor_before: Cursor | None
    cursor_after: Cursor | None
    scrolled: int
    """Rows that the text moved up; negative when it moved down."""
    picture: Picture

    @property
    def is_same(self) -> bool:
        return not self.pixels_changed and not self.cells and self.size_before == self.size_after


def visual_diff(before: ScreenCapture, after: ScreenCapture, painter: Painter | None = None) -> ScreenDiff:
    """Compare two captures of any sizes; cells that only one of them has are blank in the other."""
    painter = painter or Painter()
    cells = compare_cells(before.grid, after.grid)
    cols, rows = max(before.grid.cols, after.grid.cols), max(len(before.grid), len(after.grid))
    old = painter.paint(_stretched(before.grid, cols, rows), before.cursor).open()
    new = painter.paint(_stretched(after.grid, cols, rows), after.cursor).open()
    changed = _changed_pixels(old, new)
    boxes = _find_boxes(changed, painter)
    return ScreenDiff(
        tuple(cells),
        tuple(join_rows(before.grid, after.grid, cells)),
        changed.histogram()[255],
        old.width * old.height,
        tuple(boxes),
        (before.grid.cols, len(before.grid)),
        (after.grid.cols, len(after.grid)),
        before.cursor,
        after.cursor,
        count_scrolled(before.grid, after.grid),
        _mark(new, boxes, painter),
    )


def _stretched(grid: Grid, cols: int, rows: int) -> Grid:
    if grid.cols == cols and len(grid) == rows:
        return grid
    wide = [Row(row.cells + (BLANK,) * (cols - len(row.cells)), row.wraps) for row in grid.rows]
    wide += [Row((BLANK,) * cols)] * (rows - len(wide))
    return Grid(cols, grid.start, tuple(wide), grid.foreground, grid.background)


def _changed_pixels(old: Image, new: Image) -> Image:
    """255 where a pixel is different in any channel, else 0."""
    from PIL import ImageChops

    red, green, blue = ImageChops.difference(old, new).split()
    return ImageChops.lighter(ImageChops.lighter(red, green), blue).point(lambda value: 255 if value else 0)


def _find_boxes(changed: Image, painter: Painter) -> list[Box]:
    """One box for each group of changed cells that touch; the largest MOST_BOXES."""
    width, height = painter.metrics.width, painter.metrics.height
    tight: dict[tuple[int, int], Box] = {}
    for row in range(changed.height // height):
        strip = changed.crop((0, row * height, changed.width, (row + 1) * height))
        area = strip.getbbox()
        for col in range(area[0] // width, (area[2] - 1) // width + 1) if area else ():
            if inner := strip.crop((col * width, 0, (col + 1) * width, height)).getbbox():
                x, y = col * width, row * height
                tight[row, col] = Box(x + inner[0], y + inner[1], x + inner[2], y + inner[3])
    boxes: list[Box] = []
    while tight:
        place, box = tight.popitem()
        edge = [place]
        while edge:
            row, col = edge.pop()
            for near in ((row - 1, col), (row + 1, col), (row, col - 1), (row, col + 1)):
                if other := tight.pop(near, None):
                    box = _around(box, other)
                    edge.append(near)
        boxes.append(box)
    boxes.sort(key=lambda box: (box.right - box.left) * (box.bottom - box.top), reverse=True)
    return sorted(boxes[:MAX_BOXES], key=lambda box: (box.top, box.left))


def _around(one: Box, other: Box) -> Box:
    return Box(
        min(one.left, other.left), min(one.top, other.top), max(one.right, other.right), max(one.bottom, other.bottom)
    )


def _mark(image: Image, boxes: list[Box], painter: Painter) -> Picture:
    from io import BytesIO

    from PIL import Image, ImageDraw

    faded = Image.blend(Image.new("RGB", image.size, painter.theme.background), image, _FADED)
    for box in boxes:
        area = (box.left, box.top, box.right, box.bottom)
        faded.paste(image.crop(area), area)
    draw = ImageDraw.Draw(faded)
    for box in boxes:
        frame = (
            max(box.left - 2, 0),
            max(box.top - 2, 0),
            min(box.right + 1, image.width - 1),
            min(box.bottom + 1, image.height - 1),
        )
        draw.rectangle(frame, outline=painter.theme.mark)
    data = BytesIO()
    faded.save(data, "PNG", compress_level=1)
    return Picture(data.getvalue(), image.width, image.height)
