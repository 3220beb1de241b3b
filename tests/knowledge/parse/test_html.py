from __future__ import annotations

import pytest

from dari.knowledge.chunk import chunk_document
from dari.knowledge.parse import parse_bytes

PAGE = """<!doctype html>
<html lang="en"><head><title>The &amp; title</title>
<style>p { color: red }</style><script>var noise = 1;</script></head>
<body>
<nav><a href="/">Home</a> <a href="/x">Elsewhere</a></nav>
<main>
<h1>Guide to <em>things</em></h1>
<p>First paragraph
goes on.</p>
<h2 id="install">Install</h2>
<ul><li>one thing</li>
<li>two things <ul><li>inner</li></ul></li></ul>
<pre><code>pip install x
  indented</code></pre>
<table><tr><th>Name</th><th>Value</th></tr>
<tr><td>alpha</td><td>1</td></tr></table>
<div>Loose words<br>after a break</div>
</main>
<footer>Copyright notice</footer>
</body></html>
"""


def test_the_article_is_read_and_the_frame_around_it_is_not() -> None:
    document = parse_bytes(PAGE.encode(), "page.html")
    assert document.title == "The & title" and document.lang == "en"
    text = "\n".join(block.text for block in document.blocks)
    assert "Copyright" not in text and "Elsewhere" not in text and "noise" not in text and "color" not in text


def test_blocks_have_their_kinds_paths_and_lines() -> None:
    document = parse_bytes(PAGE.encode(), "page.html")
    assert [(block.kind, block.heading_path[-1], block.line_start, block.line_end) for block in document.blocks] == [
        ("heading", "Guide to things", 7, 7),
        ("paragraph", "Guide to things", 8, 9),
        ("heading", "Install", 10, 10),
        ("list", "Install", 11, 12),
        ("code", "Install", 13, 14),
        ("table", "Install", 15, 16),
        ("paragraph", "Install", 17, 17),
    ]
    assert document.blocks[3].text == "- one thing\n- two things\n  - inner"
    assert document.blocks[4].text == "pip install x\n  indented"
    assert document.blocks[5].text == "| Name | Value |\n| alpha | 1 |"
    assert document.blocks[6].text == "Loose words\nafter a break"


def test_chunks_cite_lines_of_the_source() -> None:
    chunks = chunk_document("d", parse_bytes(PAGE.encode(), "page.html"))
    assert [chunk.location.fragment() for chunk in chunks] == ["L7-L9", "L10-L12", "L13-L14", "L15-L16", "L17"]
    assert chunks[0].text == "Guide to things\n\nFirst paragraph goes on."


def test_a_page_in_euc_kr_is_read_as_it_declares() -> None:
    page = '<html><head><meta charset="euc-kr"></head><body><p>서울은 대한민국의 수도이다.</p></body></html>'
    document = parse_bytes(page.encode("euc-kr"), "old.htm")
    assert document.blocks[0].text == "서울은 대한민국의 수도이다." and document.lang == "ko"


@pytest.mark.parametrize(
    ("declared", "name", "text"),
    [
        ("gb2312", "gbk", "镕基的讲话"),  # 镕 came with GBK
        ("Shift_JIS", "cp932", "①の説明"),  # ① came with Windows
        ("big5", "big5", "說明"),
        ("iso-8859-1", "cp1252", "the “fair” price"),
        ("undefined", "cp1252", "a café"),  # a codec of Python's that decodes nothing
        ("idna", "cp1252", "a café"),
        ("utf-16", "cp1252", "a café at the pier"),
        ("x-unheard-of", "cp949", "서울은 대한민국의 수도이다."),
    ],
)
def test_a_declared_encoding_is_read_as_browsers_do_and_a_wrong_one_is_not_believed(
    declared: str, name: str, text: str
) -> None:
    page = f'<html><head><meta charset="{declared}"></head><body><p>{text}</p></body></html>'
    assert parse_bytes(page.encode(name), "old.htm").blocks[0].text == text


def test_a_page_nested_100_000_deep_is_read_as_text_in_no_time() -> None:
    page = "<html><body>\n" + "<div>" * 100_000 + "\ndeep words &amp; more\n" + "</div>" * 100_000
    document = parse_bytes(page.encode(), "deep.html")
    assert [block.text for block in document.blocks] == ["deep words & more"]
    assert document.blocks[0].line_start == 3 and "nested" in document.warnings[0]


def test_a_page_without_a_body_has_no_blocks() -> None:
    assert parse_bytes(b"", "empty.html").blocks == ()


def test_equal_texts_have_the_lines_where_each_of_them_stands() -> None:
    page = (
        "<body>\n<h2>Example</h2>\n<p>one</p>\n<h2>Example</h2>\n<p>one</p>\n<ul>\n<li>yes</li>\n<li>yes</li>\n</ul>\n"
    )
    blocks = parse_bytes(page.encode(), "a.html").blocks
    assert [(block.line_start, block.line_end) for block in blocks] == [(2, 2), (3, 3), (4, 4), (5, 5), (7, 8)]


def test_a_script_or_a_comment_with_the_words_of_the_article_is_not_where_it_stands() -> None:
    page = (
        '<html><head><title>First words</title><script type="application/ld+json">{"text": "First words"}</script>\n'
        "</head><body>\n<!-- First words -->\n<p>First words</p>\n</body></html>"
    )
    (block,) = parse_bytes(page.encode(), "a.html").blocks
    assert (block.text, block.line_start) == ("First words", 4)


def test_tables_inside_tables_and_lists_inside_items_are_read_once() -> None:
    page = "<body><table><tr><td>Side</td><td><table><tr><td>k</td><td>v</td></tr></table></td></tr></table></body>"
    assert [block.text for block in parse_bytes(page.encode(), "a.html").blocks] == ["Side", "| k | v |"]
    page = "<body><ul><li><div>Outer <b>part</b><ul><li><p>Inner</p></li></ul> end</div></li></ul></body>"
    assert [block.text for block in parse_bytes(page.encode(), "a.html").blocks] == ["- Outer part end\n  - Inner"]


def test_a_japanese_page_in_seven_bits_is_read() -> None:
    page = '<html><head><meta charset="iso-2022-jp"></head><body><p>日本語の文章です。</p></body></html>'
    (block,) = parse_bytes(page.encode("iso2022_jp"), "a.html").blocks
    assert block.text == "日本語の文章です。"


def test_a_deep_page_in_utf_16_is_read_as_text_too() -> None:
    page = "\ufeff" + "<div>" * 5_000 + "deep words" + "</div>" * 5_000
    document = parse_bytes(page.encode("utf-16-le"), "a.html")
    assert [block.text for block in document.blocks] == ["deep words"] and "nested deeper" in document.warnings[0]
