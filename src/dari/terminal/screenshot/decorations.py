"""Lines under, through and over text, as levels of ink; they run on into the next cell without a step."""

from __future__ import annotations

from functools import lru_cache
from math import cos, pi

from dari.terminal.engine.grid import Underline
from dari.terminal.screenshot.drawn.canvas import Canvas
from dari.terminal.screenshot.glyphs import LEVELS
from dari.terminal.screenshot.metrics import Metrics

_TO_LEVELS = bytes((ink * (LEVELS - 1) + 127) // 255 for ink in range(256))


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
    return bytes(canvas.ink).translate(_TO_LEVELS)


@lru_cache(maxsize=16)
def strike(cells: int, metrics: Metrics) -> bytes:
    canvas = Canvas(cells * metrics.width, metrics.height)
    top = metrics.baseline - round(metrics.font_size * 0.3)
    canvas.fill(0, top, canvas.width, top + metrics.stroke)
    return bytes(canvas.ink).translate(_TO_LEVELS)


@lru_cache(maxsize=16)
def overline(cells: int, metrics: Metrics) -> bytes:
    canvas = Canvas(cells * metrics.width, metrics.height)
    canvas.fill(0, 0, canvas.width, metrics.stroke)
    return bytes(canvas.ink).translate(_TO_LEVELS)


def _draw_wave(canvas: Canvas, metrics: Metrics) -> None:
    """One period a cell, lowest at the borders."""
    height = max(2.0, metrics.height / 10)
    middle = metrics.height - height / 2 - metrics.stroke / 2
    half = max(1.0, metrics.stroke) / 2 + 0.2
    canvas.shade(lambda x, y: abs(y - middle - height / 2 * cos(2 * pi * x / metrics.width)) <= half)
