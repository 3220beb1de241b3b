"""PDF by pdfium: the text of each page; pages that are pictures are read by tesseract where it is installed."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dari.knowledge.document import Block, ParsedDocument
from dari.knowledge.parse import ocr
from dari.knowledge.parse.language import detect_language
from dari.knowledge.parse.limits import ParseFailed, ParseLimits
from dari.knowledge.parse.lines import has_words
from dari.knowledge.parse.versions import PARSER_VERSIONS

if TYPE_CHECKING:
    import pypdfium2

OCR_DPI = 200
MAX_BITMAP_SIDE = 4_000
_OCR_SHARE = 0.7
"""Of a file's time: what was read is kept, where the process would be killed with all of it."""
_HYPHEN = re.compile("[\ufffe\u00ad\x02]\n?")  # pdfium writes U+FFFE or U+0002 where a word was broken at a line end
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_SPACES = re.compile(r"[ \t\u00a0]{2,}")


def parse_pdf(data: bytes, limits: ParseLimits) -> ParsedDocument:
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
        pages = len(document)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise ParseFailed("encrypted", "a PDF must be readable without a password", "remove the password") from None
        raise ParseFailed("malformed", f"pdfium cannot open the PDF: {str(error)[:200]}") from None
    warnings: list[str] = []
    if pages > limits.max_pages:
        warnings.append(f"only the first {limits.max_pages} of {pages} pages were read")
    reader = _Reader(document, limits)
    blocks = [block for number in range(min(pages, limits.max_pages)) if (block := reader.page(number)) is not None]
    if not blocks and reader.problems >= pages > 0:
        raise ParseFailed("malformed", f"pdfium can read none of the {pages} pages")
    warnings += reader.warnings()
    title = " ".join(document.get_metadata_value("Title").split())[:300]
    sample = "\n".join(block.text for block in blocks[:5])
    return ParsedDocument(
        "pdf",
        PARSER_VERSIONS["pdf"],
        tuple(blocks),
        title,
        detect_language(sample),
        warnings=tuple(warnings),
        ocr_pages=reader.ocr_pages,
        ocr_ms=reader.ocr_ms,
    )


class _Reader:
    def __init__(self, document: pypdfium2.PdfDocument, limits: ParseLimits) -> None:
        self._document = document
        self._limits = limits
        self._size = 0
        self._ocr_until = time.monotonic() + _OCR_SHARE * limits.max_wall_s
        self.problems = 0
        self.pictures = 0
        self.ocr_pages = 0
        self.ocr_ms = 0
        self._ocr_problem = ""

    def page(self, number: int) -> Block | None:
        """A page of text, counted from 0; None for one without."""
        import pypdfium2

        try:
            page = self._document[number]
            text_page = page.get_textpage()
        except pypdfium2.PdfiumError:
            self.problems += 1
            return None
        try:
            text = clean(text_page.get_text_bounded())
            if not has_words(text):
                text = self._read_picture(page)
        finally:
            text_page.close()
            page.close()
        self._size += len(text)
        if self._size > self._limits.max_output_bytes:
            raise ParseFailed("output_exceeded", "the text of a PDF must fit the output limit", "split it")
        return Block("page", text, page=number + 1) if has_words(text) else None

    def warnings(self) -> list[str]:
        found = []
        if self.problems:
            found.append(f"{self.problems} pages are broken and were left out")
        if unread := self.pictures - self.ocr_pages:
            why = self._ocr_problem or "no text was found on them"
            found.append(f"{unread} pages have no text: {why}")
        return found

    def _read_picture(self, page: pypdfium2.PdfPage) -> str:
        if not any(True for _ in page.get_objects(max_depth=1)):
            return ""  # an empty page
        self.pictures += 1
        if not self._limits.ocr:
            self._ocr_problem = "OCR is off"
        elif not ocr.is_available():
            self._ocr_problem = "tesseract is not installed"
        elif self.ocr_pages >= self._limits.max_ocr_pages:
            self._ocr_problem = f"at most {self._limits.max_ocr_pages} pages of a file are read by OCR"
        elif (left_s := self._ocr_until - (begun := time.monotonic())) <= 0:
            self._ocr_problem = (
                "there was no time left for OCR; raise [ingest] parse_timeout_s, then kebab ingest --force-reingest"
            )
        else:
            # A page may be read twice.
            page_s = min(self._limits.ocr_page_timeout_s, left_s / 2)
            try:
                text = ocr.read_text(_bitmap(page), replace(self._limits, ocr_page_timeout_s=page_s))
            except ocr.OcrFailed as error:
                self._ocr_problem = str(error)
                return ""
            finally:
                self.ocr_ms += int((time.monotonic() - begun) * 1000)
            self.ocr_pages += has_words(text)
            return text
        return ""


def clean(text: str) -> str:
    """Line ends as `\\n`, words whole again that a line end broke, no control characters."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.isascii() or "\x02" in text:
        text = _HYPHEN.sub("", text)
    text = _SPACES.sub(" ", _CONTROL.sub("", text))
    return "\n".join(line.strip() for line in text.split("\n")).strip()


def _bitmap(page: pypdfium2.PdfPage) -> bytes:
    """The page in grey as a PGM picture, which needs no library to write."""
    side = max(page.get_width(), page.get_height(), 1.0)
    bitmap = page.render(scale=min(OCR_DPI / 72, MAX_BITMAP_SIDE / side), grayscale=True)
    try:
        width, height, stride = bitmap.width, bitmap.height, bitmap.stride
        raw = bytes(bitmap.buffer)
        rows = raw if stride == width else b"".join(raw[n * stride : n * stride + width] for n in range(height))
        return b"P5 %d %d 255\n" % (width, height) + rows
    finally:
        bitmap.close()
