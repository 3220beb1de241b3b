"""Source to syntax trees, in any language that a grammar is installed for, and within a bound of time."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from dari.syntax.grammars import new_parser, parse
from dari.syntax.languages import FURTHER_LANGUAGES, code_language

if TYPE_CHECKING:
    from tree_sitter import Node, Range, Tree

MAX_SOURCE_BYTES = 16 << 20
_EMBEDDED = frozenset(("vue", "svelte", "astro", "html"))
_SCRIPT = re.compile(rb"<script\b([^>]{0,400})>", re.IGNORECASE)
_SCRIPT_END = re.compile(rb"</script\s*>", re.IGNORECASE)
_TYPED = re.compile(rb"lang\s*=\s*[\"']?tsx?\b")


class SourceTree:
    """A parsed file. Text comes from `data` by byte offsets; `Node.text` would call into the parser's reader again."""

    __slots__ = ("data", "language", "is_complete", "_tree")

    def __init__(self, data: bytes, language: str, tree: Tree, *, is_complete: bool) -> None:
        self.data = data
        self.language = language
        self.is_complete = is_complete
        """False: it was stopped, and the tree is of the part before."""
        self._tree = tree

    @property
    def root(self) -> Node:
        return self._tree.root_node

    def text(self, node: Node) -> str:
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")


def language_of(name: PurePath, head: bytes = b"") -> str:
    """The language of a file for a parser; empty when neither its name nor its first line says one."""
    if known := FURTHER_LANGUAGES.get(name.suffix.lower()) or FURTHER_LANGUAGES.get(name.name.lower()):
        return known
    return code_language(name, head)


def parse_source(data: bytes, language: str) -> SourceTree:
    """Parse it; UnknownLanguage without a grammar. Nothing stops the parser: ask it in a process that may be killed
    (in tree-sitter 0.25.2 its progress callback ends in a segmentation fault)."""
    ranges: list[Range] = []
    if language in _EMBEDDED:
        language, ranges = _scripts(data)
    parser = new_parser(language)
    if ranges:
        parser.included_ranges = ranges
    data = data[:MAX_SOURCE_BYTES]
    return SourceTree(data, language, parse(parser, data), is_complete=len(data) < MAX_SOURCE_BYTES)


def _scripts(data: bytes) -> tuple[str, list[Range]]:
    """The scripts of a page or component: ranges of it, so that lines and columns are those of the file."""
    from tree_sitter import Point, Range

    is_typed = False
    found: list[Range] = []
    row = counted = 0  # each byte is looked at once, however many scripts a page has
    while (script := _SCRIPT.search(data, counted)) and (closing := _SCRIPT_END.search(data, script.end())):
        is_typed = is_typed or bool(_TYPED.search(script[1]))
        places = []
        for at in (script.end(), closing.start()):
            row += data.count(b"\n", counted, at)
            places.append(Point(row, at - data.rfind(b"\n", 0, at) - 1))
            counted = at
        if closing.start() > script.end():
            found.append(Range(places[0], places[1], script.end(), closing.start()))
    if not found:
        found = [Range(Point(0, 0), Point(0, 0), 0, 0)]
    return ("typescript" if is_typed else "javascript"), found
