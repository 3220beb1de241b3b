from __future__ import annotations

import pytest

from dari.knowledge.chunk import ChunkPolicy, chunk_document, chunker_version
from dari.knowledge.parse import ParseFailed, ParseLimits, parse_bytes
from tests.support.documents import pdf


def test_each_page_with_text_is_a_block_with_its_number() -> None:
    document = parse_bytes(pdf(["first page\nsecond line", "", "third page"], "A Title"), "a.pdf")
    assert [(block.kind, block.page, block.text) for block in document.blocks] == [
        ("page", 1, "first page\nsecond line"),
        ("page", 3, "third page"),
    ]
    assert document.title == "A Title" and chunker_version(document) == "pdf-page-v1.2"


def test_a_pdf_is_known_by_its_first_bytes_whatever_its_name() -> None:
    assert parse_bytes(pdf(["words"]), "scan.txt").media == "pdf"


def test_chunks_of_a_long_page_are_whole_sentences_and_stay_on_their_page() -> None:
    page = "\n".join(f"Sentence number {n} of the page ends here." for n in range(40))
    document = parse_bytes(pdf([page, "Other words on the next page."]), "a.pdf")
    chunks = chunk_document("d", document, ChunkPolicy(100, 20, 400))
    assert len(chunks) > 4 and {chunk.location.kind for chunk in chunks} == {"page"}
    assert [chunk.location.fragment() for chunk in chunks[-2:]] == ["p=1", "p=2"]
    assert all(chunk.text.endswith(".") and chunk.token_count <= 100 for chunk in chunks)
    assert "Other words" not in "".join(chunk.text for chunk in chunks if chunk.location.page == 1)


def test_pages_beyond_the_limit_are_left_out_and_said_so() -> None:
    document = parse_bytes(pdf(["one", "two", "three"]), "a.pdf", ParseLimits(max_pages=2))
    assert len(document.blocks) == 2 and "2 of 3" in document.warnings[0]


@pytest.mark.parametrize("cut", [20, 200, 400])
def test_a_pdf_that_was_cut_short_is_read_as_far_as_it_goes_or_malformed(cut: int) -> None:
    try:
        document = parse_bytes(pdf(["words"])[:cut], "a.pdf")
    except ParseFailed as error:
        assert error.reason == "malformed" and not error.is_skip
    else:
        assert document.media == "pdf"


def test_what_is_no_pdf_is_malformed() -> None:
    with pytest.raises(ParseFailed) as caught:
        parse_bytes(b"not a pdf at all", "a.pdf")
    assert caught.value.reason == "malformed"
