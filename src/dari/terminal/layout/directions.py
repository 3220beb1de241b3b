"""Which pane lies beyond a border of another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from dari.terminal.layout.cells import Area

Side = Literal["left", "right", "up", "down"]


def beyond(areas: Mapping[str, Area], cols: int, rows: int, pane: str, side: Side) -> list[str]:
    """The panes that touch that border; at the edge of the window those at the other edge, as tmux goes around."""
    here = areas[pane]
    found = []
    for other, there in areas.items():
        if side in ("left", "right"):
            shares = there.top <= here.bottom and there.bottom > here.top
            edge = here.left if side == "left" else here.right + 1
            if side == "left" and here.left == 0:
                edge = cols + 1
            elif side == "right" and here.right >= cols:
                edge = 0
            touches = (there.right + 1 if side == "left" else there.left) == edge
        else:
            shares = there.left <= here.right and there.right > here.left
            edge = here.top if side == "up" else here.bottom + 1
            if side == "up" and here.top == 0:
                edge = rows + 1
            elif side == "down" and here.bottom >= rows:
                edge = 0
            touches = (there.bottom + 1 if side == "up" else there.top) == edge
        if other != pane and shares and touches:
            found.append(other)
    return found
