"""Korean documents as people have them: a PDF with an embedded font, and pictures of text."""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from tests.support.requirements import missing

FONT = Path("/usr/share/fonts/truetype/nanum/NanumGothic.ttf")


def require_font() -> None:
    if not FONT.exists():
        missing("KOREAN DOCUMENTS WERE NOT TESTED: apt-get install fonts-nanum")


def korean_pdf(pages: Sequence[str], title: str = "") -> bytes:
    """A page per text, wrapped at the margin; the font is embedded as a subset, as word processors do."""
    from fpdf import FPDF

    logging.getLogger("fontTools").setLevel(logging.ERROR)
    document = FPDF()
    document.add_font("nanum", fname=str(FONT))
    document.set_title(title)
    for text in pages:
        document.add_page()
        document.set_font("nanum", size=14)
        document.multi_cell(0, 8, text)
    return bytes(document.output())


def korean_picture(lines: Sequence[str], size_px: int) -> Image.Image:
    """Lines of text, black on white, as a screenshot or a scan has them."""
    image = Image.new("L", (1400, 160 + 2 * size_px * len(lines)), 255)
    draw, font = ImageDraw.Draw(image), ImageFont.truetype(str(FONT), size_px)
    for number, line in enumerate(lines):
        draw.text((60, 60 + 2 * size_px * number), line, 0, font)
    return image


def png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()
