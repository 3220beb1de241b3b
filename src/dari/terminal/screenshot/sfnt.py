"""What Pillow does not tell of a font file: which characters it has, which sequences it draws as one glyph.

Pillow can only draw characters. A font whose ligatures we resolve ourselves (emoji: families, flags, skin tones) is
therefore given a new character map in memory, in which every glyph is the private character of its number. Pillow's
own shaping would need libfribidi on the machine.
"""

from __future__ import annotations

import mmap
import struct
from bisect import bisect_right
from collections.abc import Sequence

Content = bytes | mmap.mmap

PRIVATE = 0x100000
_MAX_PRIVATE = 0xFFFE


class Sfnt:
    """One font of a TrueType, OpenType or collection file."""

    def __init__(self, data: Content, index: int = 0) -> None:
        self.data = data
        start = 0
        if data[:4] == b"ttcf":
            (start,) = struct.unpack_from(">I", data, 12 + 4 * index)
        (count,) = struct.unpack_from(">H", data, start + 4)
        self._directory = start + 12
        self.tables: dict[bytes, tuple[int, int]] = {}
        for at in range(count):
            tag, _, offset, length = struct.unpack_from(">4sIII", data, self._directory + 16 * at)
            self.tables[tag] = (offset, length)
        self._map: _Segments | _Groups = _read_map(data, self.tables[b"cmap"][0])
        self._ligatures: dict[int, list[tuple[tuple[int, ...], int]]] | None = None

    def glyph(self, character: str) -> int:
        """Its number, or 0 when the font does not have it."""
        return self._map.glyph(ord(character))

    def joined(self, text: str) -> list[int]:
        """The glyphs of a text after the font's ligatures; 0 where a character is missing."""
        glyphs = [self.glyph(one) for one in text]
        if self._ligatures is None:
            self._ligatures = self._read_ligatures()
        at = 0
        while at < len(glyphs):
            for rest, ligature in self._ligatures.get(glyphs[at], ()):
                if tuple(glyphs[at + 1 : at + 1 + len(rest)]) == rest:
                    glyphs[at : at + 1 + len(rest)] = [ligature]
                    break
            at += 1
        return glyphs

    def by_number(self) -> bytes:
        """The file with the character map replaced: PRIVATE + n is glyph n."""
        (count,) = struct.unpack_from(">H", self.data, self.tables[b"maxp"][0] + 4)
        last = PRIVATE + min(count, _MAX_PRIVATE) - 1
        table = struct.pack(">HHHHIHHIIIIII", 0, 1, 3, 10, 12, 12, 0, 28, 0, 1, PRIVATE, last, 0)
        data = bytearray(self.data)
        data += bytes(-len(data) % 4)
        entry = self._directory + 16 * list(self.tables).index(b"cmap")
        struct.pack_into(">II", data, entry + 8, len(data), len(table))
        return bytes(data + table)

    def _read_ligatures(self) -> dict[int, list[tuple[tuple[int, ...], int]]]:
        found: dict[int, list[tuple[tuple[int, ...], int]]] = {}
        if b"GSUB" not in self.tables:
            return found
        data, base = self.data, self.tables[b"GSUB"][0]
        lookups = base + struct.unpack_from(">H", data, base + 8)[0]
        for offset in _offsets(data, lookups):
            lookup = lookups + offset
            (kind,) = struct.unpack_from(">H", data, lookup)
            for inner in _offsets(data, lookup + 4):
                table, actual = lookup + inner, kind
                if kind == 7:  # an extension: the real kind and place follow
                    actual, distance = struct.unpack_from(">HI", data, table + 2)
                    table += distance
                if actual == 4:
                    _read_ligature_table(data, table, found)
        for rules in found.values():
            rules.sort(key=lambda rule: -len(rule[0]))
        return found


def _offsets(data: Content, at: int) -> Sequence[int]:
    (count,) = struct.unpack_from(">H", data, at)
    return struct.unpack_from(f">{count}H", data, at + 2)


def _read_ligature_table(data: Content, table: int, found: dict[int, list[tuple[tuple[int, ...], int]]]) -> None:
    (coverage,) = struct.unpack_from(">H", data, table + 2)
    firsts = _read_coverage(data, table + coverage)
    for first, offset in zip(firsts, _offsets(data, table + 4), strict=False):
        for inner in _offsets(data, table + offset):
            place = table + offset + inner
            glyph, count = struct.unpack_from(">HH", data, place)
            rest = struct.unpack_from(f">{count - 1}H", data, place + 4)
            found.setdefault(first, []).append((rest, glyph))


def _read_coverage(data: Content, at: int) -> list[int]:
    form, count = struct.unpack_from(">HH", data, at)
    if form == 1:
        return list(struct.unpack_from(f">{count}H", data, at + 4))
    glyphs: list[int] = []
    for number in range(count):
        first, last, _ = struct.unpack_from(">HHH", data, at + 4 + 6 * number)
        glyphs.extend(range(first, last + 1))
    return glyphs


class _Groups:
    """Format 12: ranges of characters with consecutive glyphs."""

    def __init__(self, data: Content, at: int) -> None:
        (count,) = struct.unpack_from(">I", data, at + 12)
        numbers = struct.unpack_from(f">{3 * count}I", data, at + 16)
        self._firsts: tuple[int, ...] = numbers[0::3]
        self._lasts: tuple[int, ...] = numbers[1::3]
        self._glyphs: tuple[int, ...] = numbers[2::3]

    def glyph(self, code: int) -> int:
        at = bisect_right(self._firsts, code) - 1
        if at < 0 or code > self._lasts[at]:
            return 0
        return self._glyphs[at] + code - self._firsts[at]


class _Segments:
    """Format 4: 16-bit segments with a delta or a table of glyphs."""

    def __init__(self, data: Content, at: int) -> None:
        self._data = data
        (double,) = struct.unpack_from(">H", data, at + 6)
        count = double // 2
        self._lasts = struct.unpack_from(f">{count}H", data, at + 14)
        self._firsts = struct.unpack_from(f">{count}H", data, at + 16 + double)
        self._deltas: tuple[int, ...] = struct.unpack_from(f">{count}H", data, at + 16 + 2 * double)
        self._offsets_at = at + 16 + 3 * double
        self._offsets = struct.unpack_from(f">{count}H", data, self._offsets_at)

    def glyph(self, code: int) -> int:
        at = bisect_right(self._lasts, code - 1)
        if at >= len(self._lasts) or code < self._firsts[at]:
            return 0
        if not self._offsets[at]:
            return (code + self._deltas[at]) & 0xFFFF
        place = self._offsets_at + 2 * at + self._offsets[at] + 2 * (code - self._firsts[at])
        glyph: int = struct.unpack_from(">H", self._data, place)[0]
        return (glyph + self._deltas[at]) & 0xFFFF if glyph else 0


def _read_map(data: Content, base: int) -> _Segments | _Groups:
    (count,) = struct.unpack_from(">H", data, base + 2)
    segments = 0
    for number in range(count):
        _, _, offset = struct.unpack_from(">HHI", data, base + 4 + 8 * number)
        (form,) = struct.unpack_from(">H", data, base + offset)
        if form == 12:
            return _Groups(data, base + offset)
        if form == 4:
            segments = base + offset
    if not segments:
        raise ValueError("the font has no Unicode character map")
    return _Segments(data, segments)
