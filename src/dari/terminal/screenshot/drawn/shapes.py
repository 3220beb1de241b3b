"""Which characters are drawn here, and by what."""

from __future__ import annotations

from dari.terminal.screenshot.drawn import blocks, boxes, powerline
from dari.terminal.screenshot.drawn.canvas import Canvas


def draw_shape(character: str, canvas: Canvas, stroke: int) -> bool:
    """Draw it if it is geometry; False leaves the canvas as it was."""
    code = ord(character)
    if code < 0x2500:
        return False
    if code < 0x2580:
        boxes.draw_box(character, canvas, stroke)
    elif code < 0x25A0:
        blocks.draw_block(code, canvas)
    elif 0x2800 <= code < 0x2900:
        blocks.draw_braille(code - 0x2800, canvas)
    elif 0xE0B0 <= code < 0xE0C0:
        powerline.draw_separator(code, canvas, stroke)
    elif 0x1FB00 <= code < 0x1FB3C or 0x1FB82 <= code < 0x1FB8C:
        blocks.draw_legacy(code, canvas)
    else:
        return False
    return True
