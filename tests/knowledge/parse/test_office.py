from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable

import docx
import openpyxl
import pptx
import pytest
from docx.oxml import parse_xml

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


def test_cells_with_the_same_text_keep_their_columns_and_a_merged_cell_is_one() -> None:
    document = docx.Document()
    table = document.add_table(3, 4)
    for row, texts in zip(table.rows, (["a", "1", "1", "2"], ["x", "", "", "y"]), strict=False):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    table.cell(2, 0).merge(table.cell(2, 2)).text = "all of it"
    (block,) = parse_bytes(_saved(document), "a.docx").blocks
    assert block.text == "| a | 1 | 1 | 2 |\n| x |  |  | y |\n| all of it |  |"
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    row = slide.shapes.add_table(1, 4, 0, 0, 99, 99).table.rows[0]
    for cell, text in zip(row.cells, ["7", "7", "", ""], strict=True):
        cell.text = text
    (block,) = parse_bytes(_saved(presentation), "a.pptx").blocks
    assert block.text == "| 7 | 7 |  |  |"


def test_a_table_inside_a_cell_is_read_with_the_cell() -> None:
    document = docx.Document()
    cell = document.add_table(1, 2).cell(0, 1)
    cell.text = "Applicant"
    inner = cell.add_table(1, 2)
    inner.cell(0, 0).text, inner.cell(0, 1).text = "name", "Kim"
    (block,) = parse_bytes(_saved(document), "form.docx").blocks
    assert block.text == "|  | Applicant name Kim |"


@pytest.mark.parametrize(("name", "make"), [("hr.docx", docx.Document), ("hr.pptx", pptx.Presentation)])
def test_a_file_that_states_no_title_is_called_by_its_name(name: str, make: Callable[[], object]) -> None:
    plain = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(_saved(make()))) as whole, zipfile.ZipFile(plain, "w") as left:
        for member in whole.namelist():
            if member != "docProps/core.xml":
                left.writestr(member, re.sub(rb"<Relationship [^>]*core-properties[^>]*/>", b"", whole.read(member)))
    assert parse_bytes(plain.getvalue(), name).title == "hr"


def test_the_last_part_of_a_sheet_ends_at_its_last_row() -> None:
    book = openpyxl.Workbook()
    for row in (["Item", "Price"], [], ["nail", 1], [], [], ["screw", 2]):
        book.active.append(row)
    (table,) = [block for block in parse_bytes(_saved(book), "a.xlsx").blocks if block.kind == "table"]
    assert (table.line_start, table.line_end) == (1, 6)
    tables = [
        block for block in parse_bytes(sheets_file(200), "a.xlsx").blocks if block.kind == "table" and block.page == 1
    ]
    assert tables[-1].line_end == 201


def test_insertions_content_controls_and_text_boxes_are_read_and_deletions_are_not() -> None:
    document = docx.Document()
    body = document.element.body
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    for xml in (
        f"<w:p {space}><w:r><w:t>It is </w:t></w:r><w:del><w:r><w:delText>not </w:delText></w:r></w:del>"
        "<w:ins><w:r><w:t>now </w:t></w:r></w:ins><w:smartTag><w:r><w:t>Seoul</w:t></w:r></w:smartTag></w:p>",
        f"<w:sdt {space}><w:sdtContent><w:p><w:r><w:t>Name</w:t><w:tab/><w:t>Kim</w:t></w:r></w:p>"
        "</w:sdtContent></w:sdt>",
        f"<w:p {space}><w:r><w:pict><txbxContent><w:p><w:r><w:t>In a box</w:t></w:r></w:p>"
        "</txbxContent></w:pict></w:r></w:p>",
        f'<w:sdt {space}><w:sdtPr><w:docPartObj><w:docPartGallery w:val="Table of Contents"/></w:docPartObj></w:sdtPr>'
        "<w:sdtContent><w:p><w:r><w:t>Contents</w:t></w:r></w:p></w:sdtContent></w:sdt>",
    ):
        body.insert(len(body) - 1, parse_xml(xml))
    texts = [block.text for block in parse_bytes(_saved(document), "a.docx").blocks]
    assert texts == ["It is now Seoul", "Name\tKim", "In a box"]
