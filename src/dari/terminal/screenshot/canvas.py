"""A cell in pixels: its size and lines (`Metrics`), the ink of each pixel (`Canvas`), lines under and over text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import cos, pi

from dari.errors import InvalidInput
from dari.terminal.engine.grid import Underline

# The Latin face's own proportions, so that its advance is exactly one cell.
ADVANCE, ASCENT, DESCENT = 0.6, 1.02, 0.3

MAX_PIXELS = 40_000_000


@dataclass(frozen=True, slots=True)
class Metrics:
    width: int = 10
    height: int = 20

    def __post_init__(self) -> None:
        if not (4 <= self.width <= 64 and 6 <= self.height <= 128):
            raise InvalidInput(
                f"a cell must be 4…64 by 6…128 pixels, got {self.width}×{self.height}", "use for example 10×20"
            )

    @property
    def font_size(self) -> float:
        """The largest at which neither the advance nor tall letters leave the cell."""
        return min(self.width / ADVANCE, self.height / (0.9 * (ASCENT + DESCENT)))

    @property
    def baseline(self) -> int:
        text = (ASCENT + DESCENT) * self.font_size
        return round((self.height - text) / 2 + ASCENT * self.font_size)

    @property
    def stroke(self) -> int:
        """The thickness of a light line."""
        return max(1, round(min(self.width * 2, self.height) / 16))

    def check_picture(self, cols: int, rows: int) -> None:
        if cols * rows * self.width * self.height > MAX_PIXELS:
            raise InvalidInput(
                f"{cols}×{rows} cells of {self.width}×{self.height} pixels are more than {MAX_PIXELS:,} pixels",
                "take fewer rows, or smaller cells",
            )


_SAMPLES = tuple((number + 0.5) / 4 for number in range(4))


class Canvas:
    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.height = height
        self.ink = bytearray(width * height)

    def fill(self, left: int, top: int, right: int, bottom: int, ink: int = 255) -> None:
        """Set the pixels left … right-1 of the lines top … bottom-1; what is outside the cell is left out."""
        left, right = max(left, 0), min(right, self.width)
        if right <= left:
            return
        run = bytes([ink]) * (right - left)
        for y in range(max(top, 0), min(bottom, self.height)):
            self.ink[y * self.width + left : y * self.width + right] = run

    def shade(self, is_inside: Callable[[float, float], bool], area: tuple[int, int, int, int] | None = None) -> None:
        """Add the part of each pixel that lies inside a shape, by 16 samples; `area` is where to look."""
        left, top, right, bottom = area or (0, 0, self.width, self.height)
        for y in range(max(top, 0), min(bottom, self.height)):
            for x in range(max(left, 0), min(right, self.width)):
                hits = sum([is_inside(x + dx, y + dy) for dy in _SAMPLES for dx in _SAMPLES])
                if hits:
                    at = y * self.width + x
                    self.ink[at] = max(self.ink[at], hits * 255 // 16)


LEVELS = 16
TO_LEVELS = bytes((ink * (LEVELS - 1) + 127) // 255 for ink in range(256))


@lru_cache(maxsize=64)
def underline(kind: Underline, cells: int, metrics: Metrics) -> bytes:
    canvas = Canvas(cells * metrics.width, metrics.height)
    width, stroke = canvas.width, metrics.stroke
    top = min(metrics.baseline + stroke + 1, metrics.height - stroke)
    if kind == "single":
        canvas.fill(0, top, width, top + stroke)
    elif kind == "double":
        second = min(top + 2 * stroke, metrics.height - stroke)
        canvas.fill(0, second - 2 * stroke, width, second - stroke)
        canvas.fill(0, second, width, second + stroke)
    elif kind == "dotted":
        for left in range(0, width, 2 * stroke):
            canvas.fill(left, top, left + stroke, top + stroke)
    elif kind == "dashed":
        for cell in range(cells):
            left = cell * metrics.width
            canvas.fill(left, top, left + metrics.width * 3 // 5, top + stroke)
    elif kind == "curly":
        _draw_wave(canvas, metrics)
    return bytes(canvas.ink).translate(TO_LEVELS)


@lru_cache(maxsize=16)
def strike(cells: int, metrics: Metrics) -> bytes:
    canvas = Canvas(cells * metrics.width, metrics.height)
    top = metrics.baseline - round(metrics.font_size * 0.3)
    canvas.fill(0, top, canvas.width, top + metrics.stroke)
    return bytes(canvas.ink).translate(TO_LEVELS)


@lru_cache(maxsize=16)
def overline(cells: int, metrics: Metrics) -> bytes:
    canvas = Canvas(cells * metrics.width, metrics.height)
    canvas.fill(0, 0, canvas.width, metrics.stroke)
    return bytes(canvas.ink).translate(TO_LEVELS)


def _draw_wave(canvas: Canvas, metrics: Metrics) -> None:
    """One period a cell, lowest at the borders."""
    height = max(2.0, metrics.height / 10)
    middle = metrics.height - height / 2 - metrics.stroke / 2
    half = max(1.0, metrics.stroke) / 2 + 0.2
    canvas.shade(lambda x, y: abs(y - middle - height / 2 * cos(2 * pi * x / metrics.width)) <= half)
