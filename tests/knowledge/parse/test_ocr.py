from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from dari.knowledge.chunk import chunk_document
from dari.knowledge.parse import ParseFailed, ParseLimits, ParserPool, parse_bytes
from dari.knowledge.parse.ocr import is_available
from tests.support.documents import pdf, picture_pdf
from tests.support.requirements import missing

WORDS = "The reserve server starts at noon"


def picture() -> Image.Image:
    image = Image.new("L", (1000, 260), 255)
    ImageDraw.Draw(image).text((60, 90), WORDS, 0, ImageFont.load_default(48))
    return image


def png() -> bytes:
    buffer = io.BytesIO()
    picture().save(buffer, "PNG")
    return buffer.getvalue()


def scan() -> bytes:
    image = picture()
    return picture_pdf(image.width, image.height, image.tobytes())


def require_tesseract() -> None:
    if not is_available():
        missing("OCR WAS NOT TESTED: tesseract is not installed; apt-get install tesseract-ocr tesseract-ocr-kor")


def test_text_in_a_picture_is_found_with_its_place(tmp_path: Path) -> None:
    require_tesseract()
    (tmp_path / "board.png").write_bytes(png())
    with ParserPool() as pool:
        document = pool.parse(tmp_path / "board.png", "board.png")
    (chunk,) = chunk_document("d", document)
    assert chunk.text == WORDS and document.ocr_pages == 1
    x, y, width, height = chunk.location.region
    assert chunk.location.kind == "region" and 40 <= x <= 80 and 80 <= y <= 130 and width > 500 and height < 80
    assert chunk.location.fragment() == f"xywh={x},{y},{width},{height}"


def test_a_page_that_is_a_picture_is_read_by_ocr_and_cited_as_a_page() -> None:
    require_tesseract()
    with ParserPool() as pool:
        document = pool.parse_bytes(scan(), "scan.pdf")
    (block,) = document.blocks
    assert (block.page, block.text, document.ocr_pages) == (1, WORDS, 1) and document.ocr_ms > 0


def test_what_is_no_picture_is_malformed() -> None:
    require_tesseract()
    with pytest.raises(ParseFailed) as caught:
        parse_bytes(b"\x89PNG\r\n\x1a\n broken", "a.png")
    assert caught.value.reason == "malformed"


def test_a_list_of_files_under_a_pictures_name_is_not_followed(tmp_path: Path) -> None:
    require_tesseract()
    (tmp_path / "private.png").write_bytes(png())
    for head in ("", "RIFF\n"):
        with pytest.raises(ParseFailed) as caught:
            parse_bytes(f"{head}{tmp_path}/private.png\n".encode(), "a.png")
        assert caught.value.reason == "malformed"


def test_a_scan_that_takes_longer_than_a_file_may_keeps_what_was_read() -> None:
    require_tesseract()
    document = parse_bytes(scan(), "scan.pdf", ParseLimits(max_wall_s=1e-6))
    assert document.blocks == () and "raise [ingest] parse_timeout_s" in document.warnings[0]


def test_a_picture_that_takes_too_long_is_not_called_malformed() -> None:
    require_tesseract()
    with pytest.raises(ParseFailed, match="--force-reingest") as caught:
        parse_bytes(png(), "a.png", ParseLimits(ocr_page_timeout_s=1e-6))
    assert caught.value.reason == "timeout"


def test_without_tesseract_a_picture_is_skipped_and_a_scanned_page_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(ParseFailed) as caught:
        parse_bytes(png(), "a.png")
    assert caught.value.reason == "ocr_unavailable" and caught.value.is_skip and "tesseract" in caught.value.hint
    document = parse_bytes(scan(), "scan.pdf")
    assert document.blocks == () and "tesseract is not installed" in document.warnings[0]


def test_ocr_that_is_off_is_off() -> None:
    with pytest.raises(ParseFailed) as caught:
        parse_bytes(png(), "a.png", ParseLimits(ocr=False))
    assert caught.value.reason == "ocr_unavailable"


def test_an_empty_page_is_not_taken_for_a_picture() -> None:
    assert parse_bytes(pdf(["words", ""]), "a.pdf").warnings == ()
