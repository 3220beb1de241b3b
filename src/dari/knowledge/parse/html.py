"""HTML: the article of a page (main, article or body, without navigation and forms) as headings and blocks.

Lines are those of the source where the text of a block begins and ends, found by looking for it from there on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dari.knowledge.document import Block, BlockKind, ParsedDocument
from dari.knowledge.parse.encoding import decode
from dari.knowledge.parse.language import detect_language
from dari.knowledge.parse.lines import has_words, paragraphs
from dari.knowledge.parse.versions import PARSER_VERSIONS

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_DEPTH = 800
"""Browsers stop at 512; lexbor takes the square of the depth in time."""
MAX_TABLE_CELLS = 20_000
_DROPPED = ("script", "style", "noscript", "template", "svg", "nav", "footer", "aside", "form", "button", "iframe")
_HEADINGS = {f"h{n}": n for n in range(1, 7)}
_WORD_BLOCKS = (
    "p div section article main body header address blockquote dd dt dl figure figcaption details summary fieldset "
    "center td th tr hr ul ol li table caption pre thead tbody tfoot h1 h2 h3 h4 h5 h6"
)
_BLOCKS = frozenset(_WORD_BLOCKS.split())
_VOID = frozenset(
    (b"area", b"base", b"br", b"col", b"embed", b"hr", b"img", b"input", b"link", b"meta", b"source", b"wbr")
)
_IMPLIED = frozenset((b"p", b"li", b"td", b"th", b"tr", b"dd", b"dt", b"option"))
_TAG = re.compile(rb"<(/?)([A-Za-z][A-Za-z0-9]*)")
# What is not closed takes the rest of the page with it, so that no pattern looks at a place twice.
_ANY_TAG = re.compile(
    r"<(?:script|style)\b(?s:.*?)(?:</(?:script|style)>|\Z)|<!--(?s:.*?)(?:-->|\Z)|<[^>]*(?:>|\Z)", re.IGNORECASE
)
# As browsers read these names: pages that declare the old set use what was added to it. A declaration that is read as
# ASCII is not in UTF-16.
_SUPERSETS = {
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "x-sjis": "cp932",
    "big5": "big5hkscs",
    "iso-8859-1": "cp1252",
    "utf-16": "utf-8",
    "utf-16le": "utf-8",
    "utf-16be": "utf-8",
}
_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?([\w-]{2,20})", re.IGNORECASE)
_SPACE = re.compile(r"\s+")
# What a page holds and nobody reads. A description for search engines often has the words of the article.
_UNSEEN = re.compile(r"<(script|style)\b(?s:.*?)(?:</\1|\Z)|<!--(?s:.*?)(?:-->|\Z)", re.IGNORECASE)
_BODY = re.compile(r"<body\b", re.IGNORECASE)
_ENTITY = re.compile(r"[&<>\"'\u00a0\u2010-\u203a\n]")  # what a source may spell otherwise
_SEARCH_CHARS = 200_000


def parse_html(data: bytes) -> ParsedDocument:
    text, warnings = _decode(data)
    if _is_too_deep(text):
        return _flat(text, [*warnings, f"nested deeper than {MAX_DEPTH} elements: read as text without structure"])
    from selectolax.lexbor import LexborHTMLParser

    page = LexborHTMLParser(text)
    title = _title(page)
    lang = (page.root.attributes.get("lang") or "")[:2].lower() if page.root is not None else ""
    root = _article(page)
    blocks = list(_Walk(text).blocks(root)) if root is not None else []
    sample = "\n".join(block.text for block in blocks[:60])
    found = detect_language(sample)
    return ParsedDocument(
        "html",
        PARSER_VERSIONS["html"],
        tuple(blocks),
        title,
        found if found != "und" else lang or "und",
        warnings=tuple(warnings),
    )


def _decode(data: bytes) -> tuple[str, list[str]]:
    """UTF-8 wins over what the page declares, since it cannot be mistaken; then comes the declaration."""
    try:
        text = data.decode("utf-8-sig")
        if "\x1b$" in text:
            return decode(data)  # Japanese or Korean in seven bits
        return text.replace("\r\n", "\n").replace("\r", "\n"), []
    except UnicodeDecodeError:
        pass
    if declared := _CHARSET.search(data[:4096]):
        name = declared[1].decode().lower()
        try:
            text = data.decode(_SUPERSETS.get(name, name))
            return text.replace("\r\n", "\n").replace("\r", "\n"), []
        except (LookupError, UnicodeError):
            pass  # an unknown name, another encoding than declared, or one of Python's that is none (`undefined`)
    return decode(data)


def _is_too_deep(text: str) -> bool:
    if text.count("<") < MAX_DEPTH:
        return False
    depth = 0
    for closing, name in _TAG.findall(text.encode("utf-8", "replace")):
        name = name.lower()
        if name in _VOID or name in _IMPLIED:
            continue
        depth = max(0, depth - 1) if closing else depth + 1
        if depth > MAX_DEPTH:
            return True
    return False


def _flat(text: str, warnings: list[str]) -> ParsedDocument:
    from html import unescape

    plain = _ANY_TAG.sub(lambda found: "\n" * found[0].count("\n"), text)
    lines = [unescape(line).strip() for line in plain.split("\n")]
    blocks = (
        Block("paragraph", "\n".join(lines[first:after]), first + 1, after)
        for first, after in paragraphs(lines, 0, len(lines))
    )
    kept = tuple(block for block in blocks if has_words(block.text))
    return ParsedDocument("html", PARSER_VERSIONS["html"], kept, lang=detect_language(plain), warnings=tuple(warnings))


def _title(page: LexborHTMLParser) -> str:
    for selector in ("title", "h1"):
        if (node := page.css_first(selector)) is not None and (words := _squeeze(node.text())):
            return words[:300]
    return ""


def _article(page: LexborHTMLParser) -> LexborNode | None:
    """The one main part, or the body when there is none, or it holds little of the page."""
    for node in page.css(", ".join(_DROPPED)):
        node.decompose()
    body = page.body
    if body is None:
        return None
    whole = len(body.text())
    for selector in ("main", "[role=main]", "article"):
        found = page.css(selector)
        if len(found) == 1 and len(found[0].text()) > whole // 4:
            return found[0]
    for node in body.css("body > header"):
        if node.css_first("h1") is None:
            node.decompose()
    return body


def _squeeze(text: str | None) -> str:
    return _SPACE.sub(" ", text or "").strip()


class _Walk:
    """From node to node without recursion: a page may be as deep as it likes."""

    def __init__(self, source: str) -> None:
        self._source = _UNSEEN.sub(lambda found: "\n" * found[0].count("\n"), source)
        body = _BODY.search(self._source)
        self._at = body.start() if body else 0
        self._line = 1 + self._source.count("\n", 0, self._at)
        self._words: list[str] = []
        self._first_line = 0
        self._last_line = 0
        self._headings: list[tuple[int, str]] = []

    def blocks(self, root: LexborNode) -> Iterator[Block]:
        node: LexborNode | None = root
        is_leaving = False
        while node is not None:
            tag = node.tag
            if not is_leaving:
                is_whole = tag in _HEADINGS or tag in ("pre", "ul", "ol") or (tag == "table" and not _is_layout(node))
                if tag == "-text":
                    self._add(node.text_content or "")
                elif tag in _BLOCKS or tag == "br":
                    if tag != "br":
                        yield from self._flush()
                    else:
                        self._words.append("\n")
                    if is_whole:
                        yield from self._whole(node, str(tag))
                elif tag == "img" and (name := _squeeze(node.attributes.get("alt"))):
                    self._add(name)
                if node.child is not None and not is_whole:
                    node = node.child
                    continue
            elif tag in _BLOCKS:
                yield from self._flush()
            is_leaving = False
            if node.mem_id == root.mem_id:
                break
            if node.next is not None:
                node = node.next
            else:
                node, is_leaving = node.parent, True
        yield from self._flush()

    def _whole(self, node: LexborNode, tag: str) -> Iterator[Block]:
        kind: BlockKind = "list"
        if tag in _HEADINGS:
            kind, text = "heading", _squeeze(node.text(separator=" "))
            if has_words(text):
                level = _HEADINGS[tag]
                self._headings = [*(one for one in self._headings if one[0] < level), (level, text)]
        elif tag == "pre":
            kind, text = "code", node.text().strip("\n")
        elif tag == "table":
            text = _table(node)
            kind = "table" if "|" in text else "paragraph"
        else:
            text = "\n".join(_items(node))
        for inner in node.traverse(include_text=True):
            if inner.tag == "-text":
                self._locate(inner.text_content or "")
        yield from self._block(kind, text)

    def _add(self, text: str) -> None:
        self._locate(text)
        if self._words or text.strip():
            self._words.append(_SPACE.sub(" ", text if self._words else text.lstrip()))

    def _flush(self) -> Iterator[Block]:
        text = "".join(self._words)
        self._words = []
        yield from self._block("paragraph", "\n".join(line.strip() for line in text.split("\n")).strip())

    def _block(self, kind: BlockKind, text: str) -> Iterator[Block]:
        first, last = self._first_line or self._line, self._last_line or self._line
        self._first_line = self._last_line = 0
        if has_words(text):
            yield Block(kind, text, first, max(first, last), 0, tuple(name for _, name in self._headings))

    def _locate(self, text: str) -> None:
        """Where the text stands in the source, from the last place on. A text with an entity is found by what comes
        before it; one that is not found stands where the last one did."""
        stripped = text.strip()
        if not stripped:
            return
        words = _ENTITY.split(stripped, maxsplit=1)[0][:60] or stripped[1:20]
        at = self._source.find(words, self._at, self._at + _SEARCH_CHARS)
        if at < 0:
            self._first_line, self._last_line = self._first_line or self._line, self._line
            return
        line = self._line + self._source.count("\n", self._at, at)
        self._first_line, self._last_line = self._first_line or line, line + stripped.count("\n")
        # Past it: the next text may be the same once more.
        self._at, self._line = at + len(words), line + words.count("\n")


def _items(node: LexborNode) -> Iterator[str]:
    """The items of a list, a line each, inner ones indented."""
    for item in node.css("li"):
        depth, above = 0, item.parent
        while above is not None and above.mem_id != node.mem_id and depth < 8:
            depth += above.tag in ("ul", "ol")
            above = above.parent
        own = _own_text(item)
        if own:
            yield f"{'  ' * depth}- {own}"


def _own_text(item: LexborNode) -> str:
    """The text of an item without that of the lists inside it."""
    if item.css_first("ul, ol") is None:
        return _squeeze(item.text(separator=" "))
    words: list[str] = []
    node = item.child
    while node is not None:
        if node.tag == "-text":
            words.append(node.text_content or "")
        if node.child is not None and node.tag not in ("ul", "ol"):
            node = node.child
            continue
        while node.next is None:
            parent = node.parent
            if parent is None or parent.mem_id == item.mem_id:
                return _squeeze(" ".join(words))
            node = parent
        node = node.next
    return _squeeze(" ".join(words))


def _is_layout(table: LexborNode) -> bool:
    """A table around tables only arranges them; old pages and mail are made of such. What it holds is read in order."""
    return len(table.css("table")) > 1


def _table(node: LexborNode) -> str:
    rows = []
    cells_left = MAX_TABLE_CELLS
    for row in node.css("tr"):
        cells = [_squeeze(cell.text(separator=" ")) for cell in row.css("th, td")]
        cells_left -= len(cells)
        if cells_left < 0:
            break
        if any(cells):
            rows.append(f"| {' | '.join(cells)} |" if len(cells) > 1 else cells[0])
    return "\n".join(rows)
