from __future__ import annotations

from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from dari.core.jcs import canonical
from dari.knowledge.document import Location
from dari.knowledge.ids import asset_id, chunk_id, citation_uri, doc_id, read_citation, text_hash

_TEXT = st.text(max_size=30)


@given(_TEXT, _TEXT, _TEXT)
def test_an_id_is_the_hash_of_the_canonical_json_of_its_tuple(path: str, asset: str, version: str) -> None:
    want = blake3(canonical(["doc", path, asset, version])).hexdigest()[:32]
    assert doc_id(path, asset, version) == want


@given(st.text(st.characters(max_codepoint=0xDFFF), max_size=10), st.lists(st.integers(0, 1 << 40), max_size=4))
def test_names_that_are_not_utf_8_have_ids_too(name: str, blocks: list[int]) -> None:
    want = blake3(canonical(["chunk", name, "v", blocks, "p#seg1"])).hexdigest()[:32]
    assert chunk_id(name, "v", blocks, "p", "#seg1") == want


def test_an_asset_is_its_bytes_whole_or_in_pieces() -> None:
    assert asset_id(b"abc") == asset_id([b"a", b"", b"bc"]) == blake3(b"abc").hexdigest()[:32]
    assert text_hash("abc") == asset_id(b"abc")


def test_a_citation_keeps_its_path_readable_and_its_fragment_apart() -> None:
    lines = Location("line", 12, 34)
    assert citation_uri("docs/설치 안내.md", lines) == "docs/설치 안내.md#L12-L34"
    assert citation_uri("a#b/100%.md", lines) == "a%23b/100%25.md#L12-L34"
    assert citation_uri("a\nb.md", Location("page", page=3)) == "a%0Ab.md#p=3"
    assert citation_uri("\udcff.png", Location("region", region=(1, 2, 3, 4))) == "%FF.png#xywh=1,2,3,4"


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20), st.integers(1, 10**9 - 1))
def test_a_citation_is_read_back(path: str, line: int) -> None:
    assert read_citation(citation_uri(path, Location("line", line, line))) == (path, line, line)
    assert read_citation(citation_uri(path, Location("page", page=3))) == (path, 0, 0)
    assert read_citation(citation_uri(path, Location("page", page=3)).rpartition("#")[0]) == (path, 0, 0)
