"""Texts of documents whose rows another user of a shared database wrote: what is read and made of them has bounds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
import zstandard

from dari.errors import Failed
from dari.knowledge.document import Block
from dari.knowledge.ids import asset_id
from dari.knowledge.ingest.writer import open_writer
from dari.knowledge.passages import Passages
from dari.knowledge.render import Renderer
from dari.knowledge.store.rows import MAX_BLOCKS, MAX_BLOCKS_BYTES, decode_blocks, encode_blocks
from tests.support.knowledge_documents import document, passages
from tests.support.knowledge_folder import make_settings, write_old

pytestmark = pytest.mark.usefixtures("either_store")
MAX_BYTES = 10_000


def text_of(folder: Path, blocks: Sequence[Block], **fields: object) -> str:
    """What `fetch doc` shows of a row with these blocks, where files have at most MAX_BYTES."""
    limit = str(MAX_BYTES)
    settings = make_settings(folder, {"KEBAB_INGEST_MAX_FILE_BYTES": limit, "KEBAB_INGEST_MAX_TEXT_BYTES": limit})
    with open_writer(settings) as writer:
        with writer.store.write() as transaction:
            transaction.put_document(document("a.md", **fields), passages("a.md", ["a"]), blocks)
        shown = Passages(writer.store, settings, Renderer(30), writer.backend.read_asset).fetch_doc("a.md", None)
    assert isinstance(shown.text, str)
    return shown.text


def test_blocks_stand_at_their_lines(tmp_path: Path) -> None:
    blocks = [Block("heading", "# A", 1, 1), Block("paragraph", "b", 4, 4)]
    assert text_of(tmp_path, blocks, byte_len=8) == "# A\n\n\nb"


@pytest.mark.parametrize("separator", ["\f", "\v", "\x1c", "\x85", "\u2028"])
def test_lines_are_counted_as_in_citations_whatever_else_separates_text(tmp_path: Path, separator: str) -> None:
    data = f"one{separator}\n{separator}\nthree{separator}3\nfour\n".encode()
    write_old(tmp_path / "notes/a.md", data)
    settings = make_settings(tmp_path)
    with open_writer(settings) as writer:
        with writer.store.write() as transaction:
            row = document("a.md", byte_len=len(data), asset_id=asset_id(data))
            transaction.put_document(row, passages("a.md", ["a"]), [Block("paragraph", data.decode(), 1, 4)])
        shown = Passages(writer.store, settings, Renderer(30), writer.backend.read_asset)
        assert shown.fetch_span("a.md", 4, None, None).text == "four"
        assert shown.fetch_span("a.md", 3, 9, None).effective_end == 4
        (tmp_path / "notes/a.md").unlink()
        assert shown.fetch_span("a.md", 4, None, None).text == "four", "of the blocks, as the file is gone"


@pytest.mark.parametrize("byte_len", [8, 1 << 60])
def test_a_line_far_beyond_the_document_adds_no_empty_lines(tmp_path: Path, byte_len: int) -> None:
    text = text_of(tmp_path, [Block("paragraph", "a", 1, 1), Block("paragraph", "b", 50_000_000)], byte_len=byte_len)
    assert text == "a\nb"


def test_a_file_is_read_up_to_the_limit_of_the_settings_whatever_its_row_says(tmp_path: Path) -> None:
    data = b"x" * (MAX_BYTES + 1)
    write_old(tmp_path / "notes/a.md", data)
    text = text_of(tmp_path, [Block("paragraph", "stored")], byte_len=1 << 60, asset_id=asset_id(data))
    assert text == "stored"


def test_blocks_come_back_as_they_were() -> None:
    blocks = (Block("heading", "# A", 1, 1), Block("paragraph", "b" * 100_000, 4, 4))
    assert decode_blocks(encode_blocks(blocks)) == blocks


@pytest.mark.parametrize(
    "data",
    [
        zstandard.compress(b"\0" * (MAX_BLOCKS_BYTES + 1)),  # a few kilobytes that say they are many megabytes
        zstandard.ZstdCompressor(write_content_size=False).compress(b"\x90"),
        zstandard.compress(msgspec.msgpack.encode([Block("paragraph", "")] * (MAX_BLOCKS + 1))),
        zstandard.compress(b"\xc1"),
        b"no frame",
    ],
    ids=["large", "without a size", "many", "no blocks", "no frame"],
)
def test_a_row_of_blocks_that_expands_without_bound_or_is_damaged_is_refused(data: bytes) -> None:
    with pytest.raises(Failed, match="cannot be read") as caught:
        decode_blocks(data)
    assert "kebab ingest" in caught.value.hint
