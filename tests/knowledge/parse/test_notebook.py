from __future__ import annotations

import pytest

from dari.knowledge.chunk import chunk_document
from dari.knowledge.parse import ParseFailed, parse_bytes
from dari.knowledge.parse.notebook import MAX_OUTPUT_CHARS
from tests.support.documents import notebook

STREAM = {"output_type": "stream", "text": ["loss 0.1\n", "\x1b[31mloss 0.2\x1b[0m\n"]}
RESULT = {"output_type": "execute_result", "data": {"text/plain": "42", "image/png": "iVBORw0KGgo="}}


def test_cells_are_pages_and_headings_reach_over_them() -> None:
    data = notebook(
        ("markdown", "# Study\n\nwhy", []), ("code", "x = 1\nx", [STREAM, RESULT]), ("markdown", "the end", [])
    )
    document = parse_bytes(data, "a.ipynb")
    assert [(block.page, block.kind, block.text) for block in document.blocks] == [
        (1, "heading", "# Study"),
        (1, "paragraph", "why"),
        (2, "code", "x = 1\nx"),
        (2, "paragraph", "loss 0.1\nloss 0.2\n42"),
        (3, "paragraph", "the end"),
    ]
    assert {block.heading_path for block in document.blocks} == {("Study",)}
    assert (document.title, document.code_lang) == ("Study", "python")
    assert [chunk.location.fragment() for chunk in chunk_document("d", document)] == ["p=1", "p=2", "p=2", "p=3"]


def test_a_huge_output_is_cut() -> None:
    document = parse_bytes(notebook(("code", "x", [{"output_type": "stream", "text": "y" * 5_000_000}])), "a.ipynb")
    assert len(document.blocks[1].text) == MAX_OUTPUT_CHARS


@pytest.mark.parametrize("data", [b"", b"[]", b'{"cells": 3}', b'{"worksheets": []}', b"\xff\xfe"])
def test_what_is_no_notebook_is_malformed(data: bytes) -> None:
    with pytest.raises(ParseFailed) as caught:
        parse_bytes(data, "a.ipynb")
    assert caught.value.reason == "malformed"
