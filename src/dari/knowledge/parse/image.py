"""Pictures: their text by tesseract, paragraph by paragraph, each with its place in the picture."""

from __future__ import annotations

import time

from dari.knowledge.document import Block, ParsedDocument
from dari.knowledge.parse import ocr
from dari.knowledge.parse.detect import is_picture
from dari.knowledge.parse.language import detect_language
from dari.knowledge.parse.limits import ParseFailed, ParseLimits
from dari.knowledge.parse.lines import has_words
from dari.knowledge.parse.versions import PARSER_VERSIONS


def parse_image(data: bytes, limits: ParseLimits) -> ParsedDocument:
    if not limits.ocr:
        raise ParseFailed("ocr_unavailable", "a picture can only be read by OCR, which is off", "set ingest.ocr = true")
    if not ocr.is_available():
        raise ParseFailed(
            "ocr_unavailable",
            "a picture can only be read by tesseract, which is not installed",
            "apt-get install tesseract-ocr tesseract-ocr-kor, or brew install tesseract tesseract-lang",
        )
    if not is_picture(data):
        # Tesseract takes any other file for a list of files, and reads those.
        raise ParseFailed(
            "malformed", "a picture must be PNG, JPEG, GIF, WebP, TIFF or BMP", "its name says more than it is"
        )
    begun = time.monotonic()
    try:
        passages = ocr.read_passages(data, limits)
    except ocr.OcrFailed as error:
        raise ParseFailed("timeout" if isinstance(error, ocr.OcrTimedOut) else "malformed", str(error)) from None
    blocks = tuple(
        Block("paragraph", passage.text, region=passage.region) for passage in passages if has_words(passage.text)
    )
    return ParsedDocument(
        "image",
        PARSER_VERSIONS["image"],
        blocks,
        lang=detect_language("\n".join(block.text for block in blocks)),
        warnings=() if blocks else ("no text was found in the picture",),
        ocr_pages=1,
        ocr_ms=int((time.monotonic() - begun) * 1000),
    )
