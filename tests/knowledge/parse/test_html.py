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
