from __future__ import annotations

import io

import docx
import openpyxl
import pptx
import pytest

from dari.knowledge.chunk import chunk_document
from dari.knowledge.parse import ParseFailed, parse_bytes


def word_file() -> bytes:
    document = docx.Document()
    document.add_heading("연차 규정", 1)
    document.add_paragraph("연차는 15일이다.")
    document.add_heading("신청", 2)
    document.add_paragraph("사흘 전에 신청한다.", style="List Bullet")
    table = document.add_table(2, 2)
    for row, cells in zip(table.rows, [("구분", "일수"), ("연차", "15")], strict=True):
        for cell, text in zip(row.cells, cells, strict=True):
            cell.text = text
    return _saved(document)


def slides_file() -> bytes:
    presentation = pptx.Presentation()
    for title, body in (("Plan", "Ship it\nin May"), ("Risks", "None known")):
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = body
    presentation.slides[1].notes_slide.notes_text_frame.text = "Say this aloud"
    return _saved(presentation)


def sheets_file(rows: int = 3) -> bytes:
    book = openpyxl.Workbook()
    book.active.title = "Prices"
    book.active.append(["Item", "Price"])
    for number in range(rows):
        book.active.append([f"item {number}", number * 10])
    book.create_sheet("Empty")
    book.create_sheet("Notes").append(["only a remark"])
    return _saved(book)


def _saved(document: object) -> bytes:
    buffer = io.BytesIO()
    document.save(buffer)  # type: ignore[attr-defined]
    return buffer.getvalue()


def test_a_word_file_has_headings_lists_and_tables_in_reading_order() -> None:
    document = parse_bytes(word_file(), "hr.docx")
    assert [(block.kind, block.text, block.line_start) for block in document.blocks] == [
        ("heading", "연차 규정", 1),
        ("paragraph", "연차는 15일이다.", 2),
        ("heading", "신청", 3),
        ("list", "사흘 전에 신청한다.", 4),
        ("table", "| 구분 | 일수 |\n| 연차 | 15 |", 5),
    ]
    assert document.blocks[-1].heading_path == ("연차 규정", "신청") and document.lang == "ko"
    chunks = chunk_document("d", document)
    assert [chunk.text for chunk in chunks][:2] == ["연차 규정\n\n연차는 15일이다.", "신청\n\n사흘 전에 신청한다."]


def test_a_slide_is_a_page_with_its_title_and_notes() -> None:
    document = parse_bytes(slides_file(), "deck.pptx")
    assert [(block.page, block.text) for block in document.blocks] == [
        (1, "Plan"),
        (1, "Ship it\nin May"),
        (2, "Risks"),
        (2, "None known"),
        (2, "Say this aloud"),
    ]
    chunks = chunk_document("d", document)
    assert [(chunk.location.fragment(), chunk.location.section) for chunk in chunks] == [
        ("p=1", "Plan"),
        ("p=2", "Risks"),
    ]


def test_a_sheet_is_a_page_and_every_part_of_it_has_the_names_of_its_columns() -> None:
    document = parse_bytes(sheets_file(200), "prices.xlsx")
    tables = [block for block in document.blocks if block.kind == "table"]
    assert len(tables) > 2 and all(block.text.startswith("| Item | Price |\n| item ") for block in tables[:-1])
    assert (tables[0].page, tables[0].line_start) == (1, 1) and tables[1].line_start == tables[0].line_end + 1
    assert (tables[-1].page, tables[-1].text) == (3, "| only a remark |")
    rows = [line for block in tables[:-1] for line in block.text.split("\n")[1:]]
    assert [row for row in rows if row.startswith("| item")] == [f"| item {n} | {n * 10} |" for n in range(200)]


@pytest.mark.parametrize("name", ["a.docx", "a.pptx", "a.xlsx"])
@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 broken", b"plain words"])
def test_what_is_no_office_file_is_malformed(name: str, data: bytes) -> None:
    with pytest.raises(ParseFailed) as caught:
        parse_bytes(data, name)
    assert caught.value.reason == "malformed"


@pytest.mark.parametrize("name", ["a.docx", "a.pptx"])
def test_a_file_of_another_kind_under_an_office_name_is_malformed(name: str) -> None:
    with pytest.raises(ParseFailed) as caught:
        parse_bytes(sheets_file(), name)
    assert caught.value.reason == "malformed"


def test_an_encrypted_office_file_is_named_as_such() -> None:
    with pytest.raises(ParseFailed) as caught:
        parse_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "secret.docx")
    assert caught.value.reason == "encrypted"
