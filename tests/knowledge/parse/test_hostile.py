"""Files made to harm a parser. Each costs itself; the pool reads the next file as if nothing had been."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dari.knowledge.parse import ParseFailed, ParseLimits, ParserPool
from tests.knowledge.parse.test_office import sheets_file, word_file
from tests.support.documents import archive, notebook, pdf_of_objects

MIB = 1 << 20
# The processor's time ends what never ends; a busy machine takes several times as long for it.
LIMITS = ParseLimits(max_memory_bytes=320 * MIB, max_cpu_s=4, max_wall_s=40.0, max_unpacked_bytes=128 * MIB)
WORD_NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
BOMB = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "{}">{}]>'.format(
    "lol" * 10, "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9))
)


@pytest.fixture(scope="module")
def pool() -> Iterator[ParserPool]:
    with ParserPool(LIMITS, inline_bytes=0) as pool:
        yield pool


def reason_of(pool: ParserPool, data: bytes, name: str) -> str:
    """Why it was not read; and the pool goes on."""
    try:
        document = pool.parse_bytes(data, name)
    except ParseFailed as error:
        reason: str = error.reason
    else:
        reason = f"read {sum(len(block.text) for block in document.blocks)}"
    assert pool.parse_bytes(b"# next\n", "next.md").title == "next"
    return reason


def test_a_zip_bomb_is_refused_before_it_is_unpacked(pool: ParserPool) -> None:
    assert reason_of(pool, archive({"word/media/a.bin": bytes(160 * MIB)}, word_file()), "a.docx") == "output_exceeded"
    assert reason_of(pool, archive({"xl/media/a.bin": bytes(160 * MIB)}, sheets_file()), "a.xlsx") == "output_exceeded"


def test_an_archive_that_lies_about_its_sizes_is_malformed(pool: ParserPool) -> None:
    honest = archive({"word/document.xml": b"<a>" + b" " * (40 * MIB) + b"</a>"}, word_file())
    at = honest.rindex(b"word/document.xml") - 46 + 24  # the size in the central directory
    assert reason_of(pool, honest[:at] + b"\x10\0\0\0" + honest[at + 4 :], "a.docx") == "malformed"


def test_a_document_that_needs_too_much_memory_costs_itself(pool: ParserPool) -> None:
    body = b"<w:p><w:r><w:t>x</w:t></w:r></w:p>" * 2_500_000
    xml = f'<w:document xmlns:w="{WORD_NAMESPACE}"><w:body>'.encode() + body + b"</w:body></w:document>"
    assert reason_of(pool, archive({"word/document.xml": xml}, word_file()), "a.docx") in (
        "memory",
        "malformed",
        "crashed",
    )


def test_entities_that_multiply_are_not_expanded(pool: ParserPool) -> None:
    body = "<w:body><w:p><w:r><w:t>&j;</w:t></w:r></w:p></w:body>"
    xml = f'{BOMB}<w:document xmlns:w="{WORD_NAMESPACE}">{body}</w:document>'
    assert reason_of(pool, archive({"word/document.xml": xml.encode()}, word_file()), "a.docx") in (
        "malformed",
        "read 0",
    )
    strings = f'{BOMB}<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>&j;</t></si></sst>'
    found = reason_of(pool, archive({"xl/sharedStrings.xml": strings.encode()}, sheets_file()), "a.xlsx")
    assert found == "malformed" or int(found.removeprefix("read ")) < 10_000


def test_a_sheet_that_claims_a_billion_cells_has_only_those_it_has(pool: ParserPool) -> None:
    xml = (
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        '<dimension ref="A1:XFD1048576"/><sheetData>'
        '<row r="1"><c r="A1" t="inlineStr"><is><t>one word</t></is></c></row>'
        '<row r="1048576"><c r="XFD1048576"><v>7</v></c></row></sheetData></worksheet>'
    )
    found = reason_of(pool, archive({"xl/worksheets/sheet1.xml": xml.encode()}, sheets_file()), "a.xlsx")
    assert found.startswith("read")


def test_a_page_tree_that_holds_itself_ends(pool: ParserPool) -> None:
    looped = pdf_of_objects(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R 2 0 R] /Count 1000000 /Parent 3 0 R >>",
            b"<< /Type /Pages /Kids [2 0 R 3 0 R] /Count 1000000 /Parent 2 0 R >>",
            b"<< >>",
        ]
    )
    assert reason_of(pool, looped, "loop.pdf") in ("malformed", "timeout", "read 0")


def test_a_pdf_whose_forms_draw_each_other_ten_billion_times_is_stopped(pool: ParserPool) -> None:
    def form(number: int) -> bytes:
        draw = b"/N Do " * 10 if number < 14 else b"BT /F 9 Tf (x) Tj ET"
        inner = b"/Resources << /XObject << /N %d 0 R >> >>" % (number + 1)
        head = b"<< /Type /XObject /Subtype /Form /BBox [0 0 99 99] " + inner + b" /Length %d >>" % len(draw)
        return head + b"\nstream\n" + draw + b"\nendstream"

    inside = b"/MediaBox [0 0 99 99] /Contents 4 0 R /Resources << /XObject << /N 5 0 R >> >>"
    page = b"<< /Type /Page /Parent 2 0 R " + inside + b" >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        page,
        b"<< /Length 5 >>\nstream\n/N Do\nendstream",
        *(form(number) for number in range(5, 15)),
        b"<< >>",
    ]
    assert reason_of(pool, pdf_of_objects(objects), "forms.pdf") in ("timeout", "memory", "crashed")
    assert pool.restarts >= 1


def test_a_line_of_a_gigabyte_is_refused_by_its_size(pool: ParserPool, tmp_path: Path) -> None:
    with open(tmp_path / "line.txt", "wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(ParseFailed) as caught:
        pool.parse(tmp_path / "line.txt", "line.txt")
    assert caught.value.reason == "size_exceeded" and caught.value.is_skip


def test_a_line_of_many_megabytes_is_one_block(pool: ParserPool) -> None:
    assert reason_of(pool, b"a" * (20 * MIB), "line.txt") == f"read {20 * MIB}"
    assert reason_of(pool, b"# " + b"*" * MIB, "stars.md").startswith("read")


def test_a_file_of_line_ends_needs_no_more_than_its_limit(pool: ParserPool) -> None:
    assert reason_of(pool, b"\n" * (48 * MIB), "empty.txt") in ("memory", "read 0", "timeout")


def test_more_blocks_than_a_document_may_have_are_refused(pool: ParserPool) -> None:
    assert reason_of(pool, b"a\n\n" * 300_000, "many.txt") == "output_exceeded"


def test_html_as_deep_as_a_mine_is_read(pool: ParserPool) -> None:
    deep = b"<div>" * 100_000 + b"deep" + b"</div>" * 100_000
    assert reason_of(pool, deep, "deep.html") == "read 4"
    assert reason_of(pool, b"<p>x" + b"<!-- <script> " * 200_000, "open.html") == "read 1"


def test_json_as_deep_as_a_mine_is_malformed(pool: ParserPool) -> None:
    deep = b'{"cells": [], "metadata": {"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    assert reason_of(pool, deep, "deep.ipynb") in ("malformed", "read 0")


def test_a_notebook_with_a_huge_output_keeps_a_little_of_it(pool: ParserPool) -> None:
    data = notebook(("code", "x = 1", [{"output_type": "stream", "text": "z" * (30 * MIB)}]))
    assert int(reason_of(pool, data, "a.ipynb").removeprefix("read ")) < 5_000
    assert json.loads(data)


@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.py", "a.html", "a.ipynb", "a.pdf", "a.docx", "a.xlsx", "a.json"])
def test_noise_under_any_name_costs_itself(pool: ParserPool, name: str) -> None:
    noise = bytes((n * 7919 + n // 3) % 256 for n in range(40_000))
    assert reason_of(pool, noise, name) in ("binary", "malformed", "read 0")


def test_brackets_without_end_cost_code_nothing(pool: ParserPool) -> None:
    for name in ("a.py", "a.js", "a.cpp", "a.rs", "a.sh"):
        assert reason_of(pool, b"x = " + b"([{\n" * 4_000, name).startswith(("read", "timeout"))
