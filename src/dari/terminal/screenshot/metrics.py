"""The size of a cell in pixels, and where the lines of text run in it."""

from __future__ import annotations

from dataclasses import dataclass

from dari.errors import InvalidInput

# The Latin face's own proportions, so that its advance is exactly one cell.
ADVANCE, ASCENT, DESCENT = 0.6, 1.02, 0.3

MOST_PIXELS = 40_000_000


@dataclass(frozen=True, slots=True)
class Metrics:
    width: int = 10
    height: int = 20

    def __post_init__(self) -> None:
        if not (4 <= self.width <= 64 and 6 <= self.height <= 128):
            raise InvalidInput(
                f"{self.width}×{self.height} pixels is no size of a cell", "give 4…64 by 6…128, for example 10×20"
            )

    @property
    def font_size(self) -> float:
        """The largest at which neither the advance nor tall letters leave the cell."""
        return min(self.width / ADVANCE, self.height / (0.9 * (ASCENT + DESCENT)))

    @property
    def baseline(self) -> int:
        text = (ASCENT + DESCENT) * self.font_size
        return round((self.height - text) / 2 + ASCENT * self.font_size)

    @property
    def stroke(self) -> int:
        """The thickness of a light line."""
        return max(1, round(min(self.width * 2, self.height) / 16))

    def check_picture(self, cols: int, rows: int) -> None:
        if cols * rows * self.width * self.height > MOST_PIXELS:
            raise InvalidInput(
                f"{cols}×{rows} cells of {self.width}×{self.height} pixels are more than {MOST_PIXELS:,} pixels",
                "take fewer rows, or smaller cells",
            )
