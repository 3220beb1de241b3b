"""A PNG of strips that are compressed one by one, so that an unchanged strip is never packed again.

Colours are a palette of at most 256, or three bytes per pixel.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dari.terminal.engine.grid import Rgb
from dari.terminal.screenshot.tiles import COARSE, FINE, Ink, Tile

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_ADLER = 65521
# Of a screen of text, level 1 makes 100…150 kB in 4…10 ms; 4 a fifth less in twice the time.
_LEVEL = 1


@dataclass(frozen=True, slots=True)
class Strip:
    """Some scan lines of a picture as an IDAT chunk, with the checksum of what is in it."""

    chunk: bytes
    adler: int
    size: int


def pack_strip(lines: Sequence[bytes]) -> Strip:
    raw = b"\0" + b"\0".join(lines)  # filter 0 before each line: flat colours pack best as they are
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -15)
    data = packer.compress(raw) + packer.flush(zlib.Z_SYNC_FLUSH)
    return Strip(_chunk(b"IDAT", data), zlib.adler32(raw), len(raw))


def write_png(width: int, height: int, palette: Sequence[Rgb] | None, strips: Sequence[Strip]) -> bytes:
    """With a palette the lines hold one byte for a pixel, without one three."""
    kind = 2 if palette is None else 3
    parts = [_SIGNATURE, _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0))]
    if palette is not None:
        parts.append(_chunk(b"PLTE", bytes([channel for color in palette for channel in color])))
    parts.append(_chunk(b"IDAT", b"\x78\x01"))
    adler = 1
    for strip in strips:
        parts.append(strip.chunk)
        adler = _joined_adler(adler, strip.adler, strip.size)
    parts.append(_chunk(b"IDAT", b"\x03\x00" + struct.pack(">I", adler)))
    parts.append(_chunk(b"IEND", b""))
    return b"".join(parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def _joined_adler(first: int, second: int, second_size: int) -> int:
    """The checksum of two pieces in a row from the checksums of each (RFC 1950)."""
    low = ((first & 0xFFFF) + (second & 0xFFFF) - 1) % _ADLER
    high = ((first >> 16) + (second >> 16) + second_size * ((first & 0xFFFF) - 1)) % _ADLER
    return high << 16 | low


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
