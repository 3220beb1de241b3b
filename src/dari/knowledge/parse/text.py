"""Plain text: paragraphs between blank lines, and the headings of reStructuredText and AsciiDoc."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dari.knowledge.document import Block, ParsedDocument
from dari.knowledge.parse.encoding import decode
from dari.knowledge.parse.language import detect_language
from dari.knowledge.parse.lines import block_of, has_words, paragraphs
from dari.knowledge.parse.versions import PARSER_VERSIONS

PARSER_VERSION = PARSER_VERSIONS["text"]
MAX_TITLE_CHARS = 120
_UNDERLINE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}\s*$")
_SECTION = re.compile(r"(={1,6}|\*{1,8})\s+(\S.*)$")
# A list of AsciiDoc has the mark of Org's headings.
_SECTION_MARKS = {"adoc": "=", "asciidoc": "=", "org": "*"}


def parse_text(data: bytes, extension: str) -> ParsedDocument:
    text, warnings = decode(data)
    lines = text.split("\n")
    blocks: list[Block]
    if extension == "rst":
        blocks = _sections(lines, _underlined_headings(lines))
    elif mark := _SECTION_MARKS.get(extension):
        blocks = _sections(lines, _marked_headings(lines, mark))
    else:
        blocks = _sections(lines, {})
    title = next((block.heading_path[-1] for block in blocks if block.kind == "heading"), "")
    return ParsedDocument("text", PARSER_VERSION, tuple(blocks), title, detect_language(text), warnings=tuple(warnings))


def _sections(lines: Sequence[str], headings: dict[int, tuple[int, int, str]]) -> list[Block]:
    """`headings`: by first line, the line after the heading, its level and its text. Lines count from 0."""
    blocks: list[Block] = []
    open_headings: list[tuple[int, str]] = []
    path: tuple[str, ...] = ()
    done = 0
    for start, (end, level, title) in sorted(headings.items()):
        blocks += _plain(lines, done, start, path)
        open_headings = [one for one in open_headings if one[0] < level]
        open_headings.append((level, title))
        path = tuple(name for _, name in open_headings)
        blocks.append(block_of("heading", lines, start, end, path))
        done = end
    blocks += _plain(lines, done, len(lines), path)
    return blocks


def _plain(lines: Sequence[str], start: int, end: int, path: tuple[str, ...]) -> list[Block]:
    found = (block_of("paragraph", lines, first, after, path) for first, after in paragraphs(lines, start, end))
    return [block for block in found if has_words(block.text)]


def _underlined_headings(lines: Sequence[str]) -> dict[int, tuple[int, int, str]]:
    """reStructuredText: the first underline character met is level 1, the next one level 2, and so on."""
    levels: dict[str, int] = {}
    found: dict[int, tuple[int, int, str]] = {}
    for number in range(1, len(lines)):
        title = lines[number - 1]
        if not title or title[0].isspace() or len(title) > MAX_TITLE_CHARS or not has_words(title):
            continue
        mark = _UNDERLINE.match(lines[number])
        if mark is None or len(lines[number].rstrip()) < len(title.rstrip()) // 2:
            continue
        has_overline = number >= 2 and bool(_UNDERLINE.match(lines[number - 2])) and lines[number - 2][0] == mark[1]
        before = number - 3 if has_overline else number - 2
        if before >= 0 and lines[before].strip():
            continue
        style = mark[1] * 2 if has_overline else mark[1]
        start = number - 2 if has_overline else number - 1
        found[start] = (number + 1, levels.setdefault(style, len(levels) + 1), title.strip())
    return found


def _marked_headings(lines: Sequence[str], mark: str) -> dict[int, tuple[int, int, str]]:
    found = {}
    for number, line in enumerate(lines):
        if line.startswith(mark) and len(line) <= MAX_TITLE_CHARS and (section := _SECTION.match(line)):
            found[number] = (number + 1, len(section[1]), section[2].strip())
    return found
