"""The colours of a picture: at most 256 in a palette, or each pixel its own."""

from __future__ import annotations

from collections.abc import Iterable

from dari.terminal.engine.grid import Rgb
from dari.terminal.screenshot.tiles import COARSE, FINE, Ink, Tile

MAX_COLORS = 256


class Palette:
    """Gives colours to tiles. It only grows, so a strip that was coloured once stays right while the palette lives."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self._numbers: dict[Rgb, int] = {}
        self._inks: set[Ink] = set()
        self._tables: dict[tuple[Ink, ...], bytes] = {}
        self._colored: dict[Tile, tuple[bytes, ...]] = {}

    @property
    def colors(self) -> list[Rgb] | None:
        return list(self._numbers)

    def takes(self, inks: Iterable[Ink]) -> bool:
        """Add the inks while their colours fit; False when one does not."""
        for ink in inks:
            if ink in self._inks:
                continue
            shades = ink.shades(self.steps)
            if len(self._numbers) + len({shade for shade in shades if shade not in self._numbers}) > MAX_COLORS:
                return False
            for shade in shades:
                self._numbers.setdefault(shade, len(self._numbers))
            self._inks.add(ink)
        return True

    def lines(self, tile: Tile) -> tuple[bytes, ...]:
        """The scan lines of a tile; its inks have to have been taken."""
        lines = self._colored.get(tile)
        if lines is None:
            table = self._tables.get(tile.inks)
            if table is None:
                numbers = [self._numbers[shade] for ink in tile.inks for shade in ink.shades(self.steps)]
                table = self._tables[tile.inks] = bytes(numbers).ljust(256, b"\0")
            lines = self._colored[tile] = _cut(tile.data.translate(table), tile.width)
        return lines

    def forget_tiles(self) -> None:
        self._colored.clear()


class TrueColor:
    """Three bytes a pixel, for screens of many colours."""

    colors: list[Rgb] | None = None
    steps = FINE

    def __init__(self) -> None:
        self._colored: dict[Tile, tuple[bytes, ...]] = {}

    def takes(self, inks: Iterable[Ink]) -> bool:
        return True

    def lines(self, tile: Tile) -> tuple[bytes, ...]:
        lines = self._colored.get(tile)
        if lines is None:
            data = bytearray(3 * len(tile.data))
            inks = [ink.channels(FINE) for ink in tile.inks]
            for channel in range(3):
                table = b"".join([ink[channel] for ink in inks]).ljust(256, b"\0")
                data[channel::3] = tile.data.translate(table)
            lines = self._colored[tile] = _cut(bytes(data), 3 * tile.width)
        return lines

    def forget_tiles(self) -> None:
        self._colored.clear()


Coloring = Palette | TrueColor


def fit(inks: frozenset[Ink]) -> Coloring:
    """The finest that can show all of them."""
    for steps in (FINE, COARSE):
        palette = Palette(steps)
        if palette.takes(inks):
            return palette
    return TrueColor()


def _cut(data: bytes, width: int) -> tuple[bytes, ...]:
    return tuple([data[at : at + width] for at in range(0, len(data), width)])
