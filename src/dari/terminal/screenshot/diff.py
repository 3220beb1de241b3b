"""Two captures compared: cell by cell, pixel by pixel, and a picture that marks where they differ."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

from dari.terminal.engine.engine import Cursor
from dari.terminal.engine.grid import BLANK, Cell, Grid, Row
from dari.terminal.screenshot.captures import ScreenCapture
from dari.terminal.screenshot.painter import Painter, Picture

if TYPE_CHECKING:
    from PIL.Image import Image

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
