"""Box drawing, U+2500 … U+257F, from what Unicode calls the characters: `DOWN LIGHT AND RIGHT HEAVY`."""

from __future__ import annotations

import unicodedata
from math import hypot

from dari.terminal.screenshot.canvas import Canvas

_SIDES = {
    "LEFT": ("left",),
    "RIGHT": ("right",),
    "UP": ("up",),
    "DOWN": ("down",),
    "HORIZONTAL": ("left", "right"),
    "VERTICAL": ("up", "down"),
}
_WEIGHTS = {"LIGHT": "light", "SINGLE": "light", "HEAVY": "heavy", "DOUBLE": "double"}
_DASHES = {"DOUBLE DASH": 2, "TRIPLE DASH": 3, "QUADRUPLE DASH": 4}
_OPPOSITE = {"left": "right", "right": "left", "up": "down", "down": "up"}

Arms = dict[str, str]


def draw_box(character: str, canvas: Canvas, stroke: int) -> None:
    name = unicodedata.name(character).removeprefix("BOX DRAWINGS ")
    if "DIAGONAL" in name:
        _draw_diagonals(name, canvas, stroke)
    elif "ARC" in name:
        _draw_arc(read_arms(name.replace("ARC ", "")), canvas, stroke)
    elif dash := next((words for words in _DASHES if words in name), None):
        _draw_dashes(read_arms(name.replace(dash + " ", "")), _DASHES[dash], canvas, stroke)
    else:
        _draw_arms(read_arms(name), canvas, stroke)


def read_arms(name: str) -> Arms:
    """The weight of each arm: a weight stands before or after its sides, and holds on where the next names none."""
    arms: Arms = {}
    weight = "light"
    for group in name.split(" AND "):
        words = group.split()
        weight = next((_WEIGHTS[word] for word in words if word in _WEIGHTS), weight)
        for word in words:
            for side in _SIDES.get(word, ()):
                arms[side] = weight
    return arms


class _Frame:
    """Rectangles along an arm, whichever way it points: from `start` outwards to the border, `thick` across."""

    def __init__(self, canvas: Canvas, stroke: int) -> None:
        self.canvas = canvas
        self.stroke = stroke
        self._x = (canvas.width - stroke) // 2
        self._y = (canvas.height - stroke) // 2

    def arm(self, side: str, start: int, extra: int, ink: int = 255) -> None:
        """`start` counts from the near edge of the centre line; `extra` is added on both sides of that line."""
        canvas, stroke = self.canvas, self.stroke
        left, right = self._x - extra, self._x + stroke + extra
        top, bottom = self._y - extra, self._y + stroke + extra
        if side == "right":
            canvas.fill(self._x + start, top, canvas.width, bottom, ink)
        elif side == "left":
            canvas.fill(0, top, self._x + stroke - start, bottom, ink)
        elif side == "down":
            canvas.fill(left, self._y + start, right, canvas.height, ink)
        else:
            canvas.fill(left, 0, right, self._y + stroke - start, ink)


def _draw_arms(arms: Arms, canvas: Canvas, stroke: int) -> None:
    frame = _Frame(canvas, stroke)
    doubles = [side for side, weight in arms.items() if weight == "double"]
    # A double arm is a thick one with a channel cut out; the channels of crossing arms run into each other.
    for side in doubles:
        meets_double = any(arms.get(across) == "double" for across in _across(side))
        frame.arm(side, -stroke if meets_double else 0, stroke)
    for side in doubles:
        ends_at_line = arms.get(_OPPOSITE[side]) != "double" and any(
            arms.get(across) == "light" for across in _across(side)
        )
        frame.arm(side, stroke if ends_at_line else 0, 0, ink=0)
    for side, weight in arms.items():
        if weight == "double":
            continue
        crossing = [arms[across] for across in _across(side) if across in arms]
        start = -stroke if "heavy" in crossing else 0
        if crossing.count("double") == 2:
            start = stroke if _OPPOSITE[side] not in arms else 0  # from the nearer of the two lines, or through both
        elif "double" in crossing:
            start = -stroke  # over the ends of both lines
        frame.arm(side, start, stroke if weight == "heavy" else 0)


def _across(side: str) -> tuple[str, str]:
    return ("up", "down") if side in ("left", "right") else ("left", "right")


def _draw_dashes(arms: Arms, count: int, canvas: Canvas, stroke: int) -> None:
    is_level = "left" in arms
    length = canvas.width if is_level else canvas.height
    extra = stroke if "heavy" in arms.values() else 0
    middle = ((canvas.height if is_level else canvas.width) - stroke) // 2
    gap = max(1.0, length / count * 0.35)
    for number in range(count):
        begin = round(number * length / count + gap / 2)
        end = max(begin + 1, round((number + 1) * length / count - gap / 2))
        if is_level:
            canvas.fill(begin, middle - extra, end, middle + stroke + extra)
        else:
            canvas.fill(middle - extra, begin, middle + stroke + extra, end)


def _draw_arc(arms: Arms, canvas: Canvas, stroke: int) -> None:
    left, top = (canvas.width - stroke) // 2, (canvas.height - stroke) // 2
    x, y = left + stroke / 2, top + stroke / 2  # where the straight lines would meet
    radius = min(canvas.width - x, x, canvas.height - y, y)
    to_right, to_down = "right" in arms, "down" in arms
    center_x = x + radius if to_right else x - radius
    center_y = y + radius if to_down else y - radius

    def is_inside(px: float, py: float) -> bool:
        if (px <= center_x) == to_right and (py <= center_y) == to_down:
            return abs(hypot(px - center_x, py - center_y) - radius) <= stroke / 2
        return False

    canvas.shade(is_inside)
    if to_down:
        canvas.fill(left, round(center_y), left + stroke, canvas.height)
    else:
        canvas.fill(left, 0, left + stroke, round(center_y))
    if to_right:
        canvas.fill(round(center_x), top, canvas.width, top + stroke)
    else:
        canvas.fill(0, top, round(center_x), top + stroke)


def _draw_diagonals(name: str, canvas: Canvas, stroke: int) -> None:
    width, height = canvas.width, canvas.height
    reach = stroke / 2 * hypot(width, height)
    falls, rises = "UPPER LEFT" in name or "CROSS" in name, "UPPER RIGHT" in name or "CROSS" in name

    def is_inside(x: float, y: float) -> bool:
        return (falls and abs(x * height - y * width) <= reach) or (
            rises and abs((width - x) * height - y * width) <= reach
        )

    canvas.shade(is_inside)
