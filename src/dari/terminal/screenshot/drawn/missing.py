"""A character that no font has: its code in a frame, so that a reader can look it up."""

from __future__ import annotations

from math import ceil

from dari.terminal.screenshot.drawn.canvas import Canvas

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
