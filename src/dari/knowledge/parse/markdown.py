"""Markdown: blocks with their exact lines, by our scan of simple lines and markdown-it's block rules for the others.

Only block rules run: the text of a block is its source, so that a citation shows what the file shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from html import unescape
from typing import TYPE_CHECKING

from dari.knowledge.document import Block, BlockKind, ParsedDocument
from dari.knowledge.parse.encoding import decode
from dari.knowledge.parse.front_matter import read_front_matter
from dari.knowledge.parse.language import detect_language
from dari.knowledge.parse.lines import block_of, has_words, paragraphs
from dari.knowledge.parse.markdown_scan import Found, scan
from dari.knowledge.parse.versions import PARSER_VERSIONS

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

PARSER_VERSION = PARSER_VERSIONS["markdown"]
MAX_HEADING_CHARS = 400
LONG_LIST_CHARS = 1_200
"""A longer list is cut at its items, so that its chunks have the size of others."""

_KINDS: dict[str, BlockKind] = {
    "paragraph_open": "paragraph",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "fence": "code",
    "code_block": "code",
    "table_open": "table",
    "blockquote_open": "paragraph",
    "html_block": "paragraph",
}
_IMAGE_ONLY = re.compile(r"\s*(?:\[?!\[[^\]]*\]\([^)\s]*(?:\s+\"[^\"]*\")?\)(?:\]\([^)\s]*\))?\s*)+")
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_LINK = re.compile(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_MARKS = re.compile(
    r"(\*{1,3}|`{1,3}|~~)(?=\S)(.+?)(?<=\S)\1|(?<!\w)(_{1,3})(?=\S)(.+?)(?<=\S)\3(?!\w)"  # `snake_case` has no emphasis
)
_CLOSING_HASHES = re.compile(r"\s+#+\s*$")
_ANCHOR = re.compile(r"\s*\{#[\w.-]+\}\s*$")
_HTML_TAG = re.compile(r"</?[A-Za-z][^<>]*>")


def parse_markdown(data: bytes) -> ParsedDocument:
    text, warnings = decode(data)
    lines = text.split("\n")
    matter = read_front_matter(lines)
    blocks = markdown_blocks(lines, matter.end)
    title = matter.title or next((block.heading_path[-1] for block in blocks if block.kind == "heading"), "")
    return ParsedDocument(
        "markdown",
        PARSER_VERSION,
        tuple(blocks),
        title,
        matter.lang or detect_language(text if not matter.end else "\n".join(lines[matter.end :])),
        tags=matter.tags,
        trust_level=matter.trust_level,
        warnings=tuple(warnings),
    )


def markdown_blocks(lines: Sequence[str], first: int = 0, headings: list[tuple[int, str]] | None = None) -> list[Block]:
    """All blocks from line `first` (counted from 0) on. Every line with a word in it is in one of them.

    `headings` are those open before, level and text; they are brought up to date.
    """
    headings = [] if headings is None else headings
    return _blocks(lines, first, headings, scan(lines, first, lambda start, end: parse_tokens(lines, start, end)))


def _blocks(lines: Sequence[str], first: int, headings: list[tuple[int, str]], found: Iterable[Found]) -> list[Block]:
    blocks: list[Block] = []
    path = tuple(name for _, name in headings)
    done = first
    for one in found:
        start, end = one.start, one.end
        if start > done:
            _add_lost(blocks, lines, done, start, path)
        done = max(done, end)
        while end > start and not lines[end - 1].strip():
            end -= 1
        if one.kind == "heading":
            headings[:] = [*(open_ for open_ in headings if open_[0] < one.level), (one.level, heading_text(one.title))]
            path = tuple(name for _, name in headings)
            blocks.append(block_of("heading", lines, start, end, path))
        else:
            blocks += _of_kind(one, lines, end, path)
    _add_lost(blocks, lines, done, len(lines), path)
    return blocks


def parse_tokens(lines: Sequence[str], start: int, end: int) -> Iterator[Found]:
    """The top level of these lines by markdown-it."""
    tokens = _block_parser().parse("\n".join(lines[start:end]))
    for index, token in enumerate(tokens):
        if token.level or token.map is None or token.nesting < 0:
            continue
        first, after = token.map[0] + start, token.map[1] + start
        if token.type == "heading_open":
            yield Found("heading", first, after, int(token.tag[1]), f" {tokens[index + 1].content}")
        elif kind := _KINDS.get(token.type):
            items = [] if kind != "list" else [one + start for one in _item_starts(tokens, index)]
            yield Found(kind, first, after, items=items)
        else:
            yield Found("paragraph", first, after)  # a rule: it has no words


def heading_text(source: str) -> str:
    """What a reader sees of a heading: no emphasis, no badges, no link targets, no closing hashes."""
    # Cut first: these patterns take the square of a hostile line's length.
    text = _ANCHOR.sub("", _CLOSING_HASHES.sub("", source[:MAX_HEADING_CHARS]))
    if "[" in text:
        text = _LINK.sub(r"\1", _IMAGE.sub("", text) if has_words(_LINK.sub("", text)) else text)
    if "&" in text:
        text = unescape(text)
    if "<" in text:
        text = _HTML_TAG.sub("", text)
    text = _MARKS.sub(lambda found: found[2] or found[4], text)
    return " ".join(text.replace("`", "").split())


def _of_kind(found: Found, lines: Sequence[str], end: int, path: tuple[str, ...]) -> list[Block]:
    block = block_of(found.kind, lines, found.start, end, path)
    if found.kind == "paragraph" and "![" in block.text and _IMAGE_ONLY.fullmatch(block.text):
        return [block_of("image", lines, found.start, end, path)]
    if found.kind != "list" or len(block.text) <= LONG_LIST_CHARS:
        return [block] if found.kind != "paragraph" or has_words(block.text) else []
    starts = [found.start, *found.items[1:]]
    bounds = zip(starts, [*starts[1:], end], strict=True)
    return [block_of("list", lines, first, after, path) for first, after in bounds if first < after]


def _item_starts(tokens: Sequence[Token], index: int) -> Iterator[int]:
    """The first lines of the items of the list that opens at `index`."""
    for at in range(index + 1, len(tokens)):
        token = tokens[at]
        if token.level == 0:
            break
        if token.level == 1 and token.type == "list_item_open" and token.map is not None:
            yield token.map[0]


def _add_lost(blocks: list[Block], lines: Sequence[str], start: int, end: int, path: tuple[str, ...]) -> None:
    """Lines without a token, such as the targets of reference links."""
    for first, after in paragraphs(lines, start, end):
        if has_words(found := "\n".join(lines[first:after])):
            blocks.append(Block("paragraph", found, first + 1, after, 0, path))


@cache
def _block_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": 20}).enable("table")
    parser.core.ruler.enableOnly(["block"])
    return parser
