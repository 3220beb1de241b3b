"""The separators of Powerline, U+E0B0 … U+E0BF: triangles, half circles and slants as high as the cell."""

from __future__ import annotations

from collections.abc import Callable
from math import hypot

from dari.terminal.screenshot.drawn.canvas import Canvas

Shape = Callable[[float, float], bool]


def draw_separator(code: int, canvas: Canvas, stroke: int) -> None:
    width, height = canvas.width, canvas.height
    kind = code - 0xE0B0
    shape: Shape
    if kind < 8:
        points_left, is_outline, is_round = bool(kind & 2), bool(kind & 1), kind >= 4
        side = (
            _half_circle(width, height, stroke, is_outline)
            if is_round
            else _triangle(width, height, stroke, is_outline)
        )
        shape = (lambda x, y: side(width - x, y)) if points_left else side
    elif kind & 1:  # the thin slants between the corners: ╲ at B9 and BF, ╱ at BB and BD
        reach = stroke / 2 * hypot(width, height)
        falls = kind in (9, 15)
        shape = lambda x, y: abs((x if falls else width - x) * height - y * width) <= reach  # noqa: E731
    else:
        at_right, at_top = kind in (10, 14), kind >= 12
        shape = lambda x, y: (  # noqa: E731
            (width - x if at_right else x) / width + (y if at_top else height - y) / height <= 1
        )
    canvas.shade(shape)


def _triangle(width: int, height: int, stroke: int, is_outline: bool) -> Shape:
    middle = height / 2
    slope = hypot(width, middle)

    def is_inside(x: float, y: float) -> bool:
        away = x * middle + abs(y - middle) * width - width * middle
        return abs(away) <= stroke * slope / 2 if is_outline else away <= 0

    return is_inside


def _half_circle(width: int, height: int, stroke: int, is_outline: bool) -> Shape:
    middle = height / 2

    def is_inside(x: float, y: float) -> bool:
        away = hypot(x / width, (y - middle) / middle)
        return abs(away - 1) <= stroke / width if is_outline else away <= 1

    return is_inside
