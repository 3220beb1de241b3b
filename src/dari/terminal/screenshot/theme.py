"""The colours that a program leaves to the terminal, and how colours mix."""

from __future__ import annotations

from dataclasses import dataclass

from dari.terminal.engine.colors import BACKGROUND, FOREGROUND
from dari.terminal.engine.grid import Rgb


@dataclass(frozen=True, slots=True)
class Theme:
    foreground: Rgb = FOREGROUND
    background: Rgb = BACKGROUND
    mark: Rgb = (255, 64, 160)
    """Frames around what changed in the picture of a difference."""
    dim: float = 0.55
    """How much of a dim character's colour is left over its background."""


def mix(low: Rgb, high: Rgb, share: float) -> Rgb:
    """`low` at 0, `high` at 1."""
    return (
        round(low[0] + (high[0] - low[0]) * share),
        round(low[1] + (high[1] - low[1]) * share),
        round(low[2] + (high[2] - low[2]) * share),
    )
