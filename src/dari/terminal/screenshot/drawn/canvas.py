"""How much of each pixel of a cell is ink: 0 … 255."""

from __future__ import annotations

from collections.abc import Callable

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
