"""Characters that are geometry (blocks, braille, Powerline, boxes), drawn to the pixel so that neighbours meet.

Box drawing, U+2500 … U+257F, follows the Unicode names: `DOWN LIGHT AND RIGHT HEAVY`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from math import ceil, hypot

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


# 3×5 pixels each, a line for each hexadecimal digit.
_DIGITS = {
    digit: tuple(int(number) for number in lines)
    for digit, lines in {
        "0": "75557", "1": "26227", "2": "71747", "3": "71717", "4": "55711", "5": "74717", "6": "74757",
        "7": "71222", "8": "75757", "9": "75717", "A": "25755", "B": "65656", "C": "34443", "D": "65556",
        "E": "74647", "F": "74644",
    }.items()
}  # fmt: skip


def draw_code(code: int, canvas: Canvas) -> None:
    """A frame that is open at the sides, and in it the digits, in as many lines as they need."""
    width, height = canvas.width, canvas.height
    for top in (0, height - 1):
        canvas.fill(0, top, width - 1, top + 1)
    for left in (0, width - 2):
        canvas.fill(left, 0, left + 1, 3)
        canvas.fill(left, height - 3, left + 1, height)
    digits = f"{code:04X}"
    rows = ceil(len(digits) / max(1, (width - 2) // 4))
    across = ceil(len(digits) / rows)
    lines = [digits[at : at + across] for at in range(0, len(digits), across)]
    scale = max(1, min((width - 2) // (4 * across), (height - 3) // (6 * rows)))
    top = (height - (6 * rows - 1) * scale) // 2
    for number, line in enumerate(lines):
        left = (width - (4 * len(line) - 1) * scale) // 2
        for place, digit in enumerate(line):
            _draw_digit(digit, left + 4 * scale * place, top + 6 * scale * number, scale, canvas)


def _draw_digit(digit: str, left: int, top: int, scale: int, canvas: Canvas) -> None:
    for row, bits in enumerate(_DIGITS[digit]):
        for column in range(3):
            if bits >> (2 - column) & 1:
                x, y = left + column * scale, top + row * scale
                canvas.fill(x, y, x + scale, y + scale)


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


# Upper left 1, upper right 2, lower left 4, lower right 8; U+2596 …
_QUADRANTS = (4, 8, 1, 13, 9, 7, 11, 2, 6, 14)
_SHADES = {0x2591: 64, 0x2592: 128, 0x2593: 191}
# U+1FB82 … 1FB86: upper blocks of these eighths; U+1FB87 … 1FB8B: right blocks.
_MORE_EIGHTHS = (2, 3, 5, 6, 7)
# Dots of a braille pattern, bit by bit: column, row.
_DOTS = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))


def draw_block(code: int, canvas: Canvas) -> None:
    width, height = canvas.width, canvas.height
    if code == 0x2580:
        canvas.fill(0, 0, width, _part(height, 4, 8))
    elif code <= 0x2588:
        canvas.fill(0, _part(height, 0x2588 - code, 8), width, height)
    elif code <= 0x258F:
        canvas.fill(0, 0, _part(width, 0x2590 - code, 8), height)
    elif code == 0x2590:
        canvas.fill(_part(width, 4, 8), 0, width, height)
    elif code in _SHADES:
        canvas.fill(0, 0, width, height, _SHADES[code])
    elif code == 0x2594:
        canvas.fill(0, 0, width, _part(height, 1, 8))
    elif code == 0x2595:
        canvas.fill(_part(width, 7, 8), 0, width, height)
    else:
        _fill_parts(_QUADRANTS[code - 0x2596], 2, canvas)


def draw_legacy(code: int, canvas: Canvas) -> None:
    """Sextants U+1FB00 … 1FB3B, upper and right eighths U+1FB82 … 1FB8B."""
    if code < 0x1FB3C:
        bits = code - 0x1FB00 + 1
        bits += (bits >= 21) + (bits >= 41)  # the two halves have characters of their own and are left out here
        _fill_parts(bits, 3, canvas)
    elif code < 0x1FB87:
        canvas.fill(0, 0, canvas.width, _part(canvas.height, _MORE_EIGHTHS[code - 0x1FB82], 8))
    else:
        canvas.fill(_part(canvas.width, 8 - _MORE_EIGHTHS[code - 0x1FB87], 8), 0, canvas.width, canvas.height)


def draw_braille(code: int, canvas: Canvas) -> None:
    width, height = canvas.width, canvas.height
    radius = min(width / 4, height / 8) * 0.72
    for bit, (column, row) in enumerate(_DOTS):
        if code >> bit & 1:
            _draw_dot((column + 0.5) * width / 2, (row + 0.5) * height / 4, radius, canvas)


def _draw_dot(x: float, y: float, radius: float, canvas: Canvas) -> None:
    area = (int(x - radius), int(y - radius), int(x + radius) + 1, int(y + radius) + 1)
    canvas.shade(lambda px, py: hypot(px - x, py - y) <= radius, area)


def _fill_parts(bits: int, rows: int, canvas: Canvas) -> None:
    """Two columns by `rows`, bit 0 at the upper left, row by row."""
    for bit in range(2 * rows):
        if bits >> bit & 1:
            row, column = divmod(bit, 2)
            canvas.fill(
                _part(canvas.width, column, 2),
                _part(canvas.height, row, rows),
                _part(canvas.width, column + 1, 2),
                _part(canvas.height, row + 1, rows),
            )


def _part(size: int, number: int, of: int) -> int:
    """A border inside the cell; whatever lies on either side of it takes it from here, so nothing overlaps or gapes."""
    return (size * number + of // 2) // of


def draw_shape(character: str, canvas: Canvas, stroke: int) -> bool:
    """Draw it if it is geometry; False leaves the canvas as it was."""
    code = ord(character)
    if code < 0x2500:
        return False
    if code < 0x2580:
        draw_box(character, canvas, stroke)
    elif code < 0x25A0:
        draw_block(code, canvas)
    elif 0x2800 <= code < 0x2900:
        draw_braille(code - 0x2800, canvas)
    elif 0xE0B0 <= code < 0xE0C0:
        draw_separator(code, canvas, stroke)
    elif 0x1FB00 <= code < 0x1FB3C or 0x1FB82 <= code < 0x1FB8C:
        draw_legacy(code, canvas)
    else:
        return False
    return True
