"""A cell as pixels that do not know their colours yet (numbers into the inks of the tile), and the theme."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from dari.terminal.engine.engine import Shape
from dari.terminal.engine.grid import BACKGROUND, FOREGROUND, Cell, Rgb
from dari.terminal.screenshot import canvas
from dari.terminal.screenshot.canvas import LEVELS, Metrics
from dari.terminal.screenshot.glyphs import Glyph, Glyphs


@dataclass(frozen=True, slots=True)
class Theme:
    foreground: Rgb = FOREGROUND
    background: Rgb = BACKGROUND
    mark: Rgb = (255, 64, 160)
    """Frames around what changed in the picture of a difference."""
    dim: float = 0.55
    """How much of a dim character's colour is left over its background."""


def mix(low: Rgb, high: Rgb, share: float) -> Rgb:
    """`low` at 0, `high` at 1."""
    return (
        round(low[0] + (high[0] - low[0]) * share),
        round(low[1] + (high[1] - low[1]) * share),
        round(low[2] + (high[2] - low[2]) * share),
    )


FINE, COARSE = LEVELS, 6
_PLACES = {steps: [round(level * (steps - 1) / (LEVELS - 1)) for level in range(LEVELS)] for steps in (FINE, COARSE)}


@dataclass(frozen=True, slots=True)
class Ink:
    """A ramp from the first colour to the second, or up to LEVELS colours of a picture."""

    colors: tuple[Rgb, ...]
    is_ramp: bool = True

    def channels(self, steps: int) -> list[bytes]:
        """Red, green and blue at each of LEVELS levels; of a ramp only `steps` are different."""
        if not self.is_ramp:
            return [bytes(channel) for channel in zip(*self.colors, strict=True)]
        low, high = self.colors
        top, half = steps - 1, steps // 2
        places = _PLACES[steps]
        return [
            bytes([(first * (top - place) + last * place + half) // top for place in places])
            for first, last in zip(low, high, strict=True)
        ]

    def shades(self, steps: int) -> list[Rgb]:
        return list(zip(*self.channels(steps), strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class Tile:
    """Pixel p of `data` has the level p % LEVELS of ink p // LEVELS. No two tiles ever have the same number."""

    data: bytes
    width: int
    inks: tuple[Ink, ...]
    number: int = field(default_factory=count().__next__)


class Tiles:
    """Makes the tiles of one theme and cell size, over the terminal's own colours as the program set them."""

    def __init__(self, glyphs: Glyphs, metrics: Metrics, theme: Theme, foreground: Rgb, background: Rgb) -> None:
        self._glyphs = glyphs
        self._metrics = metrics
        self._theme = theme
        self._foreground = foreground
        self._background = background

    def make(self, cell: Cell, cells: int, cursor: Shape | None = None) -> Tile:
        foreground, background = cell.fg or self._foreground, cell.bg or self._background
        if cell.inverse:
            foreground, background = background, foreground
        pointer = foreground
        if cursor == "block":
            foreground, background = background, foreground
        if cell.dim:
            foreground = mix(background, foreground, self._theme.dim)
        if cell.invisible:
            foreground = background
        layers = _Layers(self._metrics, cells, background)
        glyph = self._glyphs.get(cell.text, cells, bold=cell.bold, italic=cell.italic)
        if glyph.rgba and not cell.invisible:
            layers.picture(glyph)
        else:
            layers.add(glyph.ink or bytes(layers.size), foreground)
        if not cell.invisible:
            if kind := cell.underline or ("single" if cell.link else ""):
                layers.add(canvas.underline(kind, cells, self._metrics), cell.underline_color or foreground)
            if cell.strike:
                layers.add(canvas.strike(cells, self._metrics), foreground)
            if cell.overline:
                layers.add(canvas.overline(cells, self._metrics), foreground)
        if cursor in ("bar", "underline"):
            layers.add(_pointer(cursor, cells, self._metrics), pointer)
        return layers.tile()


class _Layers:
    def __init__(self, metrics: Metrics, cells: int, background: Rgb) -> None:
        self.width = cells * metrics.width
        self.height = metrics.height
        self.size = self.width * self.height
        self._background = background
        self._inks: list[Ink] = []
        self._data = b""

    def add(self, levels: bytes, color: Rgb) -> None:
        """Lay ink over what is there; the same colour again shares its ramp."""
        ink = Ink((self._background, color))
        if not self._inks:
            self._inks, self._data = [ink], levels
            return
        if ink not in self._inks:
            self._inks.append(ink)
        first = self._inks.index(ink) * LEVELS
        pairs = zip(self._data, levels, strict=True)
        if first:
            self._data = bytes([first + new if new else old for old, new in pairs])
        else:
            self._data = bytes([max(old, new) if old < LEVELS else new or old for old, new in pairs])

    def picture(self, glyph: Glyph) -> None:
        """Sixteen colours a picture: at this size more are not seen, and a screen's palette holds 256."""
        from PIL import Image

        image = Image.new("RGBA", (self.width, self.height), (*self._background, 255))
        image.alpha_composite(Image.frombytes("RGBA", image.size, glyph.rgba))
        reduced = image.convert("RGB").quantize(LEVELS, dither=Image.Dither.NONE)
        palette = (reduced.getpalette() or [])[: LEVELS * 3]
        colors = [(palette[at], palette[at + 1], palette[at + 2]) for at in range(0, len(palette) - 2, 3)]
        colors += [self._background] * (LEVELS - len(colors))
        self._inks, self._data = [Ink(tuple(colors), is_ramp=False)], reduced.tobytes()

    def tile(self) -> Tile:
        return Tile(self._data, self.width, tuple(self._inks))


def _pointer(shape: Shape, cells: int, metrics: Metrics) -> bytes:
    width, thick = cells * metrics.width, max(2, 2 * metrics.stroke)
    full = bytes([LEVELS - 1])
    if shape == "underline":
        return bytes(width * (metrics.height - thick)) + full * (width * thick)
    return (full * thick + bytes(width - thick)) * metrics.height
