"""Units of code by tree-sitter: functions, methods and types with their qualified names, and the lines between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from dari.knowledge.parse.lines import has_words
from dari.syntax.grammars import GRAMMARS, Grammar, definition_name, parse, parser_of, qualified_name

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_UNIT_LINES = 200
WHOLE_TYPE_LINES = 40
"""A class of so few lines stays one unit; a longer one is a unit per method."""
_MAX_DEPTH = 12


class Span(Struct, frozen=True):
    """Lines `start` to `end` without it, counted from 0. Without a symbol: what stands between definitions."""

    start: int
    end: int
    symbol: str = ""


# What belongs to the definition after it.
_LEADING = frozenset(("comment", "line_comment", "block_comment", "attribute_item", "decorator", "annotation"))
# What the first definition inside begins with.
_HEADS = frozenset(("decorated_definition", "export_statement", "type_declaration"))


def code_units(data: bytes, lines: Sequence[str], language: str) -> list[Span]:
    """Spans in order that cover every line with a word in it, none longer than `MAX_UNIT_LINES`."""
    grammar = GRAMMARS[language]
    root = parse(parser_of(language), data).root_node
    spans: list[Span] = []
    done = 0
    for found in _definitions(root, grammar, "", 0):
        start, end = max(found.start, done), found.end
        if end <= start:
            continue  # a second definition on the same line
        spans += _between(lines, done, start)
        spans += _cut(lines, start, end, found.symbol)
        done = end
    return [*spans, *_between(lines, done, len(lines))]


def _definitions(node: Node, grammar: Grammar, prefix: str, depth: int) -> Iterator[Span]:
    leading = last = -1
    for child in node.named_children:
        kind = child.type
        if kind in _LEADING:
            # Only comments right above a definition are about it.
            if leading < 0 or child.start_point.row > last + 1:
                leading = child.start_point.row
            last = child.end_point.row
            continue
        first = leading if leading >= 0 and child.start_point.row <= last + 1 else child.start_point.row
        leading = -1
        if kind in grammar.units:
            if name := definition_name(child):
                yield Span(first, _end(child), qualified_name(prefix, name, grammar))
        elif kind in grammar.types:
            yield from _type(child, grammar, prefix, first, depth)
        elif kind in grammar.scopes and depth < _MAX_DEPTH:
            found = list(_definitions(child, grammar, prefix, depth + 1))
            if found and found[0].start - first <= 8 and kind in _HEADS:
                found[0] = Span(first, found[0].end, found[0].symbol)
            yield from found


def _type(node: Node, grammar: Grammar, prefix: str, first: int, depth: int) -> Iterator[Span]:
    """A short type whole; of a long one its members, and its own head as a unit of its name."""
    symbol = qualified_name(prefix, definition_name(node) or "", grammar)
    end = _end(node)
    if depth >= _MAX_DEPTH or (symbol and end - first <= WHOLE_TYPE_LINES):
        if symbol:
            yield Span(first, end, symbol)
        return
    done = first
    bodies = [child for child in node.named_children if child.type in grammar.scopes or child.type.endswith("_body")]
    for body in bodies or [node]:
        for member in _definitions(body, grammar, symbol, depth + 1):
            if member.start > done and symbol:
                yield Span(done, member.start, symbol)
            yield member
            done = max(done, member.end)
    if done < end and symbol:
        yield Span(done, end, symbol)


def _end(node: Node) -> int:
    return node.end_point.row + (node.end_point.column > 0)


def _between(lines: Sequence[str], start: int, end: int) -> Iterator[Span]:
    """Imports, constants, statements: without the blank lines around them."""
    while start < end and not lines[start].strip():
        start += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    if start < end and has_words("\n".join(lines[start:end])):
        yield from _cut(lines, start, end, "")


def _cut(lines: Sequence[str], start: int, end: int, symbol: str) -> Iterator[Span]:
    """At most `MAX_UNIT_LINES` each, cut at a blank line where there is one in the second half."""
    while end - start > MAX_UNIT_LINES:
        limit = start + MAX_UNIT_LINES
        cut = next((n for n in range(limit, start + MAX_UNIT_LINES // 2, -1) if not lines[n - 1].strip()), limit)
        yield from _trimmed(lines, start, cut, symbol)
        start = cut
    yield from _trimmed(lines, start, end, symbol)


def _trimmed(lines: Sequence[str], start: int, end: int, symbol: str) -> Iterator[Span]:
    while start < end and not lines[start].strip():
        start += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    if start < end:
        yield Span(start, end, symbol)
