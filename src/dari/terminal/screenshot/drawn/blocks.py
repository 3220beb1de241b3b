"""Blocks, shades, quadrants, sextants (U+2580 …, U+1FB00 …) and braille: parts of a cell that add up to a whole one."""

from __future__ import annotations

from math import hypot

from dari.terminal.screenshot.drawn.canvas import Canvas

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
