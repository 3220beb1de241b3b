from __future__ import annotations

from dari.knowledge.chunk import chunk_document
from dari.knowledge.document import Block, ParsedDocument
from dari.knowledge.parse import parse_bytes


def test_a_list_of_asciidoc_is_text_and_its_headings_are_headings() -> None:
    document = parse_bytes(b"= Guide\n\n== Steps\n\n* unpack\n** the box\n* plug in\n\n====== Deep\nwords\n", "a.adoc")
    assert [(block.kind, block.heading_path) for block in document.blocks] == [
        ("heading", ("Guide",)),
        ("heading", ("Guide", "Steps")),
        ("paragraph", ("Guide", "Steps")),
        ("heading", ("Guide", "Steps", "Deep")),
        ("paragraph", ("Guide", "Steps", "Deep")),
    ]
    assert document.blocks[2].text == "* unpack\n** the box\n* plug in"


def test_a_heading_of_org_has_stars() -> None:
    document = parse_bytes(b"* Plan\n= not a heading\n** Tasks\nwords\n", "a.org")
    assert [block.heading_path for block in document.blocks if block.kind == "heading"] == [
        ("Plan",),
        ("Plan", "Tasks"),
    ]


class _Watched(str):
    """Counts how much of it is looked through for line ends."""

    looked_at = 0

    def count(self, what: str, start: int = 0, end: int | None = None, /) -> int:  # type: ignore[override]
        stop = len(self) if end is None else end
        type(self).looked_at += max(0, stop - start)
        return super().count(what, start, stop)


def test_the_lines_of_a_long_text_are_counted_once() -> None:
    lines = [f"On day {number} the server has begun its work." for number in range(4_000)]
    text = _Watched("\n".join(lines))
    block = Block("paragraph", text, 11, 10 + len(lines))
    chunks = chunk_document("d", ParsedDocument("text", "v", (block,)))
    assert len(chunks) > 100 and _Watched.looked_at < 3 * len(text)
    for chunk in chunks:
        assert chunk.text.split("\n")[0].strip() in lines[chunk.location.line_start - 11]
        assert chunk.text.split("\n")[-1].strip() in lines[chunk.location.line_end - 11]
