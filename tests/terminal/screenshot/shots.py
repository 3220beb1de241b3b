"""A screen that was fed bytes, painted, and read back from the PNG pixel by pixel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from PIL.Image import Image

from dari.terminal.engine.engine import make_engine
from dari.terminal.engine.grid import Rgb
from dari.terminal.screenshot.canvas import Metrics
from dari.terminal.screenshot.diff import ScreenCapture
from dari.terminal.screenshot.fonts import Fonts
from dari.terminal.screenshot.painter import Painter, Picture

BLACK: Rgb = (0, 0, 0)
WHITE: Rgb = (229, 229, 229)
HIDE = "\x1b[?25l"


@cache
def painter(width: int = 10, height: int = 20, *, color_emoji: bool = True) -> Painter:
    return Painter(metrics=Metrics(width, height), fonts=Fonts(color_emoji=color_emoji))


@dataclass(frozen=True)
class Shot:
    picture: Picture
    image: Image
    width: int
    height: int

    def pixel(self, x: int, y: int) -> Rgb:
        found = self.image.getpixel((x, y))
        assert isinstance(found, tuple)
        return found[0], found[1], found[2]

    def cell(self, col: int, row: int = 0) -> Image:
        x, y = col * self.width, row * self.height
        return self.image.crop((x, y, x + self.width, y + self.height))

    def ink(self, col: int, row: int = 0, background: Rgb = BLACK) -> int:
        """How many pixels of a cell are not its background."""
        return sum(count for count, color in self.cell(col, row).getcolors(4096) if color != background)

    def colors(self, col: int, row: int = 0) -> set[Rgb]:
        return {color for _, color in self.cell(col, row).getcolors(4096)}

    def weight(self, col: int, row: int = 0) -> int:
        """The brightness of a cell, summed up."""
        return sum(sum(color) * count for count, color in self.cell(col, row).getcolors(4096))


def capture(
    text: str, cols: int = 20, rows: int = 4, *, hide_cursor: bool = True, engine: str = "auto"
) -> ScreenCapture:
    screen = make_engine(cols, rows, prefer=engine)  # type: ignore[arg-type]
    screen.feed(((HIDE if hide_cursor else "") + text.replace("\n", "\r\n")).encode())
    taken = ScreenCapture(screen.grid(), screen.cursor, "pane-1", 1.5)
    screen.close()
    return taken


def shoot(taken: ScreenCapture | str, using: Painter | None = None) -> Shot:
    using = using or painter()
    if isinstance(taken, str):
        taken = capture(taken)
    picture = using.paint(taken.grid, taken.cursor)
    image = picture.open()
    assert image.size == (picture.width, picture.height)
    return Shot(picture, image, using.metrics.width, using.metrics.height)
