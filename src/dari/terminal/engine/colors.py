"""The colours of a terminal that nobody has themed: xterm's sixteen, its cube and greys, light on black."""

from __future__ import annotations

from dari.terminal.engine.grid import Rgb

FOREGROUND: Rgb = (229, 229, 229)
BACKGROUND: Rgb = (0, 0, 0)

_BASE: tuple[Rgb, ...] = (
    (0, 0, 0),
    (205, 0, 0),
    (0, 205, 0),
    (205, 205, 0),
    (0, 0, 238),
    (205, 0, 205),
    (0, 205, 205),
    (229, 229, 229),
    (127, 127, 127),
    (255, 0, 0),
    (0, 255, 0),
    (255, 255, 0),
    (92, 92, 255),
    (255, 0, 255),
    (0, 255, 255),
    (255, 255, 255),
)
_STEPS = (0, 95, 135, 175, 215, 255)
_CUBE: tuple[Rgb, ...] = tuple((red, green, blue) for red in _STEPS for green in _STEPS for blue in _STEPS)
_GREYS: tuple[Rgb, ...] = tuple((8 + 10 * step,) * 3 for step in range(24))

PALETTE: tuple[Rgb, ...] = _BASE + _CUBE + _GREYS
