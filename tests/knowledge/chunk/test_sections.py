from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dari.knowledge.chunk import ChunkPolicy, chunk_document, chunker_version
from dari.knowledge.document import Chunk
from dari.knowledge.parse import parse_bytes
from dari.knowledge.parse.lines import has_words

SMALL = ChunkPolicy(target_tokens=40, overlap_tokens=10, max_tokens=120)


def chunks_of(text: str, name: str = "a.md", policy: ChunkPolicy = SMALL) -> list[Chunk]:
    return chunk_document("d", parse_bytes(text.encode(), name), policy)


def test_a_heading_begins_a_chunk_and_leads_it() -> None:
    found = chunks_of("# One\n\nfirst\n\n# Two\n\nsecond\n")
    assert [chunk.text for chunk in found] == ["# One\n\nfirst", "# Two\n\nsecond"]
    assert [chunk.heading_path for chunk in found] == [("One",), ("Two",)]
    assert [chunk.location.fragment() for chunk in found] == ["L1-L3", "L5-L7"]


def test_headings_with_nothing_between_them_stand_together() -> None:
    (found,) = chunks_of("# Guide\n\n## Install\n\ntext\n")
    assert (found.text, found.heading_path) == ("# Guide\n\n## Install\n\ntext", ("Guide", "Install"))


def test_an_empty_section_keeps_its_heading() -> None:
    assert [chunk.text for chunk in chunks_of("## A\n\n## B\n\ntext\n")] == ["## A", "## B\n\ntext"]


def test_code_tables_and_images_stand_alone() -> None:
    text = "before\n\n```\ncode\n```\n\n| a |\n|---|\n| 1 |\n\n![i](p.png)\n\nafter\n"
    assert [chunk.text.split("\n")[0] for chunk in chunks_of(text)] == [
        "before",
        "```",
        "| a |",
        "![i](p.png)",
        "after",
    ]


def test_paragraphs_are_packed_to_the_target_and_overlap_by_whole_sentences() -> None:
    text = "\n\n".join(f"Sentence number {n} is here. It has a second part {n}." for n in range(6))
    found = chunks_of(text)
    assert len(found) > 1 and all(chunk.token_count <= SMALL.target_tokens for chunk in found)
    assert found[1].text.startswith("It has a second part")
    assert found[1].location.line_start == found[0].location.line_end


def test_a_block_above_the_maximum_is_cut_on_lines_and_then_inside_them() -> None:
    code = "```\n" + "\n".join(f"line {n} " + "x" * 40 for n in range(20)) + "\n" + "y" * 900 + "\n```\n"
    found = chunks_of(code)
    assert len(found) > 3 and all(chunk.token_count <= SMALL.max_tokens for chunk in found)
    assert "".join(chunk.text.replace("\n", "") for chunk in found) == code.replace("\n", "")
    assert len({chunk.chunk_id for chunk in found}) == len(found)


def test_a_korean_character_is_never_cut_in_two() -> None:
    text = "가나다라마바사" * 200
    found = chunks_of(text)
    assert "".join(chunk.text for chunk in found) == text
    assert {chunk.location.fragment() for chunk in found} == {"L1"}


def test_ids_depend_on_document_policy_and_place_and_on_nothing_else() -> None:
    text = "# A\n\nx\n\n# B\n\ny\n"
    document = parse_bytes(text.encode(), "a.md")
    ids = [chunk.chunk_id for chunk in chunk_document("d", document, SMALL)]
    assert ids == [chunk.chunk_id for chunk in chunk_document("d", document, SMALL)]
    assert not set(ids) & {chunk.chunk_id for chunk in chunk_document("e", document, SMALL)}
    assert not set(ids) & {chunk.chunk_id for chunk in chunk_document("d", document)}
    assert all(len(one) == 32 for one in ids) and chunker_version(document) == "md-heading-v2"


_WORDS = st.text(st.sampled_from("abc 가나.다?!0"), min_size=1, max_size=60)
_BLOCK = st.one_of(
    _WORDS.map(lambda words: f"p{words}"),
    st.lists(_WORDS.map(lambda words: f"w{words}"), min_size=2, max_size=6).map("\n".join),
    st.sampled_from(
        [
            "# H1",
            "## H2",
            "### H3",
            "```\nx = 1\n\ny\n```",
            "| a | b |\n|---|---|\n| 1 | 2 |",
            "![i](p)",
            "- a\n- b",
            "---",
        ]
    ),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_BLOCK, max_size=12).map("\n\n".join), st.sampled_from(["a.md", "a.txt"]))
def test_chunks_cover_the_text_hold_their_lines_and_never_cross_a_heading(text: str, name: str) -> None:
    lines = text.split("\n")
    document = parse_bytes(text.encode(), name)
    found = chunk_document("d", document, SMALL)
    seen: set[int] = set()
    for ordinal, chunk in enumerate(found):
        assert chunk.ordinal == ordinal
        place = chunk.location
        cited, held = lines[place.line_start - 1 : place.line_end], chunk.text.split("\n")
        assert len(cited) == len(held)
        if len(held) == 1:
            assert held[0] in cited[0]
        else:
            # Only the first and the last line may be cut; a line without a word may be left out.
            assert cited[0].endswith(held[0]) and cited[-1].startswith(held[-1])
            assert all(
                part == line or not (part or has_words(line))
                for line, part in list(zip(cited, held, strict=True))[1:-1]
            )
        seen.update(range(place.line_start, place.line_end + 1))
        headings = {block.line_start for block in document.blocks if block.kind == "heading"}
        others = {block.line_start for block in document.blocks if block.kind != "heading"}
        inside = range(place.line_start, place.line_end + 1)
        last_heading = max((n for n in inside if n in headings), default=0)
        assert not [n for n in inside if n in others and n < last_heading]
    for block in document.blocks:
        assert set(range(block.line_start, block.line_end + 1)) <= seen
    assert len({chunk.chunk_id for chunk in found}) == len(found)


@settings(max_examples=200, deadline=None)
@given(st.lists(_WORDS, max_size=30).map("\n".join))
def test_no_character_but_white_space_is_lost(text: str) -> None:
    found = chunk_document("d", parse_bytes(text.encode(), "a.txt"), ChunkPolicy(30, 0, 60))
    kept = "".join(chunk.text for chunk in found)
    want = "\n".join(block.text for block in parse_bytes(text.encode(), "a.txt").blocks)
    assert "".join(kept.split()) == "".join(want.split())
