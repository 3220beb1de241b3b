from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.knowledge.parse import parse_bytes
from dari.knowledge.parse.lines import has_words
from dari.knowledge.parse.markdown import _blocks, markdown_blocks, parse_tokens

GUIDE = """---
title: "설치 안내"
tags: [ops, 'release notes']
lang: ko-KR
trust: secondary
---
# Guide

Intro text
goes on.

## Install **now** ##

- one
- two

```bash
pip install x
# not a heading
```

| a | b |
|---|---|
| 1 | 2 |

![shot](a.png)

Setext
------

> # quoted

[ref]: https://example.com "target"
"""


def test_blocks_hold_the_source_of_their_lines() -> None:
    lines = GUIDE.split("\n")
    for block in parse_bytes(GUIDE.encode(), "guide.md").blocks:
        assert block.text == "\n".join(lines[block.line_start - 1 : block.line_end])


def test_kinds_and_heading_paths_follow_the_structure() -> None:
    blocks = parse_bytes(GUIDE.encode(), "guide.md").blocks
    assert [(block.kind, block.heading_path) for block in blocks] == [
        ("heading", ("Guide",)),
        ("paragraph", ("Guide",)),
        ("heading", ("Guide", "Install now")),
        ("list", ("Guide", "Install now")),
        ("code", ("Guide", "Install now")),
        ("table", ("Guide", "Install now")),
        ("image", ("Guide", "Install now")),
        ("heading", ("Guide", "Setext")),
        ("paragraph", ("Guide", "Setext")),
        ("paragraph", ("Guide", "Setext")),
    ]


def test_front_matter_gives_title_language_tags_and_trust() -> None:
    document = parse_bytes(GUIDE.encode(), "guide.md")
    assert (document.title, document.lang, document.trust_level) == ("설치 안내", "ko", "secondary")
    assert document.tags == ("ops", "release notes")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("# a &middot; b [![ci](x.svg)](https://ci)", "a · b"),
        ("# [Linked](x.md) `code` <a id='y'></a>", "Linked code"),
        ("# ![only](x.png)", "only"),
        ("# Anchored {#here}", "Anchored"),
        ("# The **`__init__`** of *it*", "The __init__ of it"),
        ("# #", ""),
        ("## snake_case_name ##", "snake_case_name"),
    ],
)
def test_a_heading_is_named_as_a_reader_sees_it(source: str, text: str) -> None:
    assert markdown_blocks([source])[0].heading_path == (text,)


def test_tags_may_stand_below_their_key() -> None:
    text = "---\ntags:\n  - alpha\n  - '#beta'\n  - \"gamma\"\ntitle: T # a remark\n---\ntext\n"
    document = parse_bytes(text.encode(), "a.md")
    assert (document.tags, document.title) == (("alpha", "#beta", "gamma"), "T")


def test_a_rule_at_the_start_is_not_front_matter() -> None:
    document = parse_bytes(b"---\n\nfirst words\n\n---\n\nlast words\n", "a.md")
    assert [block.text for block in document.blocks] == ["first words", "last words"]


def test_text_between_two_rules_is_not_front_matter_because_of_a_colon() -> None:
    document = parse_bytes(b"---\n\n# First slide\n\nNote: read this\naloud.\n\n---\n\n# Second slide\n", "a.md")
    assert [block.text for block in document.blocks] == ["# First slide", "Note: read this\naloud.", "# Second slide"]


def test_front_matter_may_have_keys_of_any_script_comments_and_lines_that_go_on() -> None:
    text = (
        "---\n# made by hand\n\n제목 줄: 값\ntags: [\n  a, b\n]\nsummary: >\n  goes on\n- odd\ntitle = T\n---\nwords\n"
    )
    document = parse_bytes(text.encode(), "a.md")
    assert (document.title, [block.text for block in document.blocks]) == ("T", ["words"])


def test_a_document_without_a_heading_is_titled_by_its_name() -> None:
    assert parse_bytes(b"words", "notes/release plan.md").title == "release plan"


def test_a_long_list_is_cut_at_its_items() -> None:
    text = "".join(f"- item {n}\n\n  {'word ' * 60}\n" for n in range(8))
    blocks = parse_bytes(text.encode(), "a.md").blocks
    assert len(blocks) == 8 and {block.kind for block in blocks} == {"list"}
    assert all(block.text.startswith("- item") for block in blocks)


_LINE = st.one_of(
    st.sampled_from(
        ["", "", "# A", "## B b", "### C", "- x", "  - y", "1. z", "```", "~~~", "> q", "| a | b |", "|--|--|"]
    ),
    st.sampled_from(
        ["---", "===", "    code", "\tcode", "<div>", "</div>", "[r]: http://x", "![i](p)", "***", "<!--", "-->"]
    ),
    st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=("Cs",)), max_size=12),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_LINE, max_size=25).map("\n".join))
def test_no_line_with_a_word_is_lost_and_none_is_in_two_blocks(text: str) -> None:
    lines = text.split("\n")
    covered: list[int] = []
    for block in markdown_blocks(lines):
        assert block.text == "\n".join(lines[block.line_start - 1 : block.line_end])
        covered += range(block.line_start, block.line_end + 1)
    assert covered == sorted(set(covered))
    assert [n for n, line in enumerate(lines, 1) if has_words(line) and n not in covered] == []


_SIMPLE_LINES = (
    "words here;more words;**bold** start;`code` start;2024 was;- a;- b;  more;  - c;1. x;2. y;   deep;* s;;;# H;"
    "## G ##;```;```py;~~~;| a | b |;|---|---|;| 1 | 2 |;> q;---;\ttab; one;    four;<div>;</div>;<!-- c -->;<!--;-->;"
    "  ```;1) z;10. t;- - -;#no;[r]: http://x;![i](p);===;||;|-|;+ p;- ```;> - n;\u3000;"
    "(paren;0. zero;-;- # h;<!-- a --> b;x\\|"
)
_SIMPLE = st.sampled_from(_SIMPLE_LINES.split(";"))


@settings(max_examples=1500, deadline=None)
@given(st.lists(_SIMPLE, max_size=16))
def test_the_scan_finds_what_markdown_it_finds_in_the_whole_file(lines: list[str]) -> None:
    want = _blocks(lines, 0, [], parse_tokens(lines, 0, len(lines)))
    assert markdown_blocks(lines) == want
