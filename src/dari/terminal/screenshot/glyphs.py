"""The atlas: what each character covers of its cell or cells, drawn once for every weight and slant."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from dari.terminal.screenshot.canvas import TO_LEVELS, Canvas, Metrics
from dari.terminal.screenshot.fonts import Face, Fonts
from dari.terminal.screenshot.shapes import draw_code, draw_shape

if TYPE_CHECKING:
    from PIL.Image import Image

_MAX_CACHED_GLYPHS = 8192
_MAX_CHARACTERS = 32
_SLANT = 0.2
_ENLARGED = 3
_AS_TEXT, _AS_EMOJI = "\ufe0e", "\ufe0f"


@dataclass(frozen=True, slots=True)
class Glyph:
    """Line by line: `ink` has the level 0 … 15 of each pixel; a colour emoji has four bytes a pixel in `rgba`."""

    ink: bytes
    rgba: bytes = b""


class Glyphs:
    def __init__(self, metrics: Metrics, fonts: Fonts) -> None:
        self._metrics = metrics
        self._fonts = fonts
        self._kept: dict[tuple[str, int, bool, bool], Glyph] = {}

    def get(self, text: str, cells: int, *, bold: bool, italic: bool) -> Glyph:
        key = (text, cells, bold, italic)
        glyph = self._kept.get(key)
        if glyph is None:
            if len(self._kept) >= _MAX_CACHED_GLYPHS:
                self._kept.clear()
            glyph = self._kept[key] = self._draw(text[:_MAX_CHARACTERS], cells, bold, italic)
        return glyph

    def _draw(self, text: str, cells: int, bold: bool, italic: bool) -> Glyph:
        canvas = Canvas(cells * self._metrics.width, self._metrics.height)
        if not text.strip() or (len(text) == 1 and draw_shape(text, canvas, self._metrics.stroke)):
            return _finished(canvas.ink)
        if _is_picture(text, cells) and (emoji := self._draw_emoji(text, cells, bold)):
            return emoji
        text = "".join([one for one in unicodedata.normalize("NFC", text) if not _is_ignorable(one)])
        if not text:  # nothing but joiners and selectors
            return _finished(canvas.ink)
        body = "".join([one for one in text if not _is_mark(one)]) or "\N{DOTTED CIRCLE}"
        face = self._fonts.find(body[0], italic=italic)
        if face is None:
            if emoji := self._draw_emoji(body[0], cells, bold):
                return emoji
            draw_code(ord(body[0]), canvas)
            return _finished(canvas.ink)
        run = "".join([one for one in body if face.has(one)])
        return _finished(self._draw_text(face, run, [one for one in text if _is_mark(one)], cells, bold, italic))

    def _draw_text(self, face: Face, run: str, marks: list[str], cells: int, bold: bool, italic: bool) -> bytes:
        image = self._blank(cells)
        self._place(image, face, run, cells, bold)
        for mark in marks:
            owner = face if face.has(mark) else self._fonts.find(mark)
            if owner is None:
                self._frame(image, mark)
            else:
                self._place_mark(image, owner, mark, bold)
        if bold and not face.is_variable:
            image = _thickened(image)
        if italic and face is not self._fonts.latin_italic:
            image = _slanted(image, self._metrics.baseline)
        return image.tobytes()

    def _place(self, image: Image, face: Face, run: str, cells: int, bold: bool) -> None:
        from PIL import ImageDraw

        size = self._metrics.font_size
        is_latin = face in (self._fonts.latin, self._fonts.latin_italic)
        if cells > 1 and not is_latin:
            size = min(image.width * 0.92, image.height * 0.9)
        font = face.at(size, bold=bold)
        left, top, right, bottom = font.getbbox(run, anchor="ls")
        is_too_large = right - left > image.width or bottom - top > image.height
        if is_too_large and not (is_latin and len(run) == 1):
            picture, above = _cut_out(face, run, size, bold)
            picture, share = _shrunk(picture, image.size, 1 / _ENLARGED)
            y = round(max(0, min(self._metrics.baseline - above * share, image.height - picture.height)))
            image.paste(picture, ((image.width - picture.width) // 2, y))
            return
        x = round((image.width - font.getlength(run)) / 2)
        if not is_latin:
            x = round(max(-left, min(x, image.width - right)))
        y = round(max(-top, min(self._metrics.baseline, image.height - bottom)))
        ImageDraw.Draw(image).text((x, y), run, 255, font, "ls")

    def _place_mark(self, image: Image, face: Face, mark: str, bold: bool) -> None:
        """Centred over or under what is there; fonts place marks by tables that Pillow's plain layout does not read."""
        from PIL import Image, ImageChops, ImageDraw

        font = face.at(self._metrics.font_size, bold=bold)
        left, top, right, bottom = font.getbbox(mark, anchor="ls")
        x, y = round((image.width - (right - left)) / 2 - left), float(self._metrics.baseline)
        ink = image.getbbox()
        if ink and unicodedata.combining(mark) == 230:
            y -= max(0, y + bottom + 1 - ink[1])
        elif ink and unicodedata.combining(mark) == 220:
            y += max(0, ink[3] + 1 - (y + top))
        y = max(-top, min(y, image.height - bottom))
        layer = Image.new("L", image.size)
        ImageDraw.Draw(layer).text((x, round(y)), mark, 255, font, "ls")
        image.paste(ImageChops.lighter(image, layer))

    def _frame(self, image: Image, mark: str) -> None:
        from PIL import Image, ImageChops

        canvas = Canvas(image.width, image.height)
        draw_code(ord(mark), canvas)
        image.paste(ImageChops.lighter(image, Image.frombytes("L", image.size, bytes(canvas.ink))))

    def _draw_emoji(self, text: str, cells: int, bold: bool) -> Glyph | None:
        """The whole sequence, or its first picture where the font does not join it."""
        from PIL import Image

        found = self._fonts.find_emoji(text) or self._fonts.find_emoji(text[0])
        if found is None:
            return None
        face, characters = found
        box = (cells * self._metrics.width, self._metrics.height)
        picture, _ = _cut_out(face, characters, self._metrics.height, bold)
        picture, _ = _shrunk(picture, box, 1)
        image = Image.new(picture.mode, box)
        image.paste(picture, ((box[0] - picture.width) // 2, (box[1] - picture.height) // 2))
        return Glyph(b"", image.tobytes()) if face.is_color else _finished(image.tobytes())

    def _blank(self, cells: int) -> Image:
        from PIL import Image

        return Image.new("L", (cells * self._metrics.width, self._metrics.height))


def _finished(ink: bytes | bytearray) -> Glyph:
    return Glyph(bytes(ink).translate(TO_LEVELS))


def _is_picture(text: str, cells: int) -> bool:
    if _AS_TEXT in text:
        return False
    return _AS_EMOJI in text or (cells == 2 and not 0x2E80 <= ord(text[0]) < 0x1F000)


def _is_mark(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Me")


def _is_ignorable(character: str) -> bool:
    """Joiners, selectors and other marks that have no look of their own."""
    code = ord(character)
    return 0xFE00 <= code <= 0xFE0F or 0xE0000 <= code <= 0xE01EF or unicodedata.category(character) == "Cf"


def _cut_out(face: Face, characters: str, size: float, bold: bool) -> tuple[Image, int]:
    """A larger picture without its margins, and how far it reaches above the baseline.

    FreeType does not tell the extent of glyphs made of coloured layers; and one size for all that has to be made to
    fit keeps the number of open fonts small.
    """
    from PIL import Image, ImageDraw

    font = face.at(round(size * _ENLARGED), bold=bold)
    left, top, right, bottom = font.getbbox(characters, anchor="ls")
    margin = round(size)
    width, height = ceil(right - left) + 2 * margin, ceil(bottom - top) + 2 * margin
    image = Image.new("RGBA" if face.is_color else "L", (width, height))
    place = (margin - left, margin - top)
    ink = (255, 255, 255) if face.is_color else 255
    ImageDraw.Draw(image).text(place, characters, ink, font, "ls", embedded_color=face.is_color)
    area = image.getbbox() or (0, 0, 1, 1)
    return image.crop(area), round(place[1] - area[1])


def _shrunk(picture: Image, box: tuple[int, int], most: float) -> tuple[Image, float]:
    """The picture at the largest scale up to `most` at which it fits the box, and that scale."""
    from PIL import Image

    share = min(most, box[0] / picture.width, box[1] / picture.height)
    size = (max(1, round(picture.width * share)), max(1, round(picture.height * share)))
    return picture.resize(size, Image.Resampling.LANCZOS), share


def _thickened(image: Image) -> Image:
    from PIL import ImageChops

    return ImageChops.lighter(image, ImageChops.offset(image, 1, 0))


def _slanted(image: Image, baseline: int) -> Image:
    from PIL import Image

    return image.transform(
        image.size, Image.Transform.AFFINE, (1, _SLANT, -_SLANT * baseline * 0.6, 0, 1, 0), Image.Resampling.BILINEAR
    )
