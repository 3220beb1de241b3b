"""Units of code by tree-sitter: functions, methods and types with their qualified names, and the lines between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from msgspec import Struct

from dari.knowledge.parse.lines import has_words

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_UNIT_LINES = 200
WHOLE_TYPE_LINES = 40
"""A class of so few lines stays one unit; a longer one is a unit per method."""
_MAX_DEPTH = 12


class Span(Struct, frozen=True):
    """Lines `start` to `end` without it, counted from 0. Without a symbol: what stands between definitions."""

    start: int
    end: int
    symbol: str = ""


class _Grammar(Struct, frozen=True):
    module: str
    function: str
    units: frozenset[str]
    """Definitions: each is a unit."""
    types: frozenset[str]
    """Definitions that hold others."""
    scopes: frozenset[str] = frozenset()
    """What has no name of its own, or only a prefix: looked into."""
    separator: str = "."


def _grammar(
    module: str, units: str, types: str = "", scopes: str = "", separator: str = ".", function: str = "language"
) -> _Grammar:
    return _Grammar(
        module,
        function,
        frozenset(units.split()),
        frozenset(types.split()),
        frozenset((*scopes.split(), "ERROR")),
        separator,
    )


_JS_UNITS = (
    "function_declaration generator_function_declaration method_definition lexical_declaration variable_declaration "
    "public_field_definition field_definition type_alias_declaration enum_declaration abstract_method_signature"
)
_JS_TYPES = "class_declaration abstract_class_declaration interface_declaration internal_module module class"
_C_SCOPES = (
    "preproc_ifdef preproc_if preproc_else preproc_elif linkage_specification declaration_list template_declaration"
)
_C_TYPES = "struct_specifier union_specifier enum_specifier type_definition"
GRAMMARS = {
    "python": _grammar(
        "tree_sitter_python", "function_definition", "class_definition", "decorated_definition block if_statement"
    ),
    "javascript": _grammar(
        "tree_sitter_javascript", _JS_UNITS, _JS_TYPES, "export_statement class_body statement_block"
    ),
    "typescript": _grammar(
        *("tree_sitter_typescript", _JS_UNITS, _JS_TYPES),
        "export_statement expression_statement class_body statement_block",
        function="language_typescript",
    ),
    "tsx": _grammar(
        *("tree_sitter_typescript", _JS_UNITS, _JS_TYPES),
        "export_statement expression_statement class_body statement_block",
        function="language_tsx",
    ),
    "go": _grammar("tree_sitter_go", "function_declaration method_declaration type_declaration"),
    "rust": _grammar(
        *("tree_sitter_rust", "function_item struct_item enum_item union_item macro_definition type_item"),
        *("trait_item impl_item mod_item", "declaration_list", "::"),
    ),
    "java": _grammar(
        "tree_sitter_java",
        "method_declaration constructor_declaration compact_constructor_declaration",
        "class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration",
        "class_body interface_body enum_body enum_body_declarations annotation_type_body",
    ),
    "kotlin": _grammar(
        "tree_sitter_kotlin",
        "function_declaration secondary_constructor type_alias",
        "class_declaration object_declaration companion_object",
        "class_body enum_class_body",
    ),
    "c": _grammar("tree_sitter_c", f"function_definition {_C_TYPES} preproc_function_def", "", _C_SCOPES),
    "cpp": _grammar(
        *("tree_sitter_cpp", "function_definition type_definition enum_specifier preproc_function_def"),
        *("class_specifier struct_specifier union_specifier namespace_definition concept_definition",),
        *(f"{_C_SCOPES} field_declaration_list", "::"),
    ),
    "bash": _grammar("tree_sitter_bash", "function_definition"),
}
# What belongs to the definition after it.
_LEADING = frozenset(("comment", "line_comment", "block_comment", "attribute_item", "decorator", "annotation"))
_NAMES = frozenset(
    (
        *("identifier", "type_identifier", "field_identifier", "property_identifier", "simple_identifier"),
        *("qualified_identifier", "operator_name", "destructor_name", "word", "private_property_identifier"),
    )
)
_FUNCTION_VALUES = frozenset(("arrow_function", "function_expression", "generator_function", "class", "function"))


def code_units(data: bytes, lines: Sequence[str], language: str) -> list[Span]:
    """Spans in order that cover every line with a word in it, none longer than `MAX_UNIT_LINES`."""
    grammar = GRAMMARS[language]
    root = _parser(language).parse(data).root_node
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


def _definitions(node: Node, grammar: _Grammar, prefix: str, depth: int) -> Iterator[Span]:
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
            if name := _name(child):
                yield Span(first, _end(child), _qualified(prefix, name, grammar))
        elif kind in grammar.types:
            yield from _type(child, grammar, prefix, first, depth)
        elif kind in grammar.scopes and depth < _MAX_DEPTH:
            found = list(_definitions(child, grammar, prefix, depth + 1))
            if found and found[0].start - first <= 8 and kind in ("decorated_definition", "export_statement"):
                found[0] = Span(first, found[0].end, found[0].symbol)
            yield from found


def _type(node: Node, grammar: _Grammar, prefix: str, first: int, depth: int) -> Iterator[Span]:
    """A short type whole; of a long one its members, and its own head as a unit of its name."""
    symbol = _qualified(prefix, _name(node) or "", grammar)
    end = _end(node)
    if end - first <= WHOLE_TYPE_LINES or depth >= _MAX_DEPTH:
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


def _qualified(prefix: str, name: str, grammar: _Grammar) -> str:
    return f"{prefix}{grammar.separator}{name}" if prefix and name else name or prefix


def _name(node: Node) -> str:
    """Its name; empty for what has none, such as a variable that is not a function."""
    if node.type in ("lexical_declaration", "variable_declaration", "public_field_definition", "field_definition"):
        declared = next((one for one in node.named_children if one.type == "variable_declarator"), node)
        value = declared.child_by_field_name("value")
        if value is None or value.type not in _FUNCTION_VALUES:
            return ""
        return _text(declared.child_by_field_name("name") or declared.child_by_field_name("property"))
    if node.type == "method_declaration" and (receiver := node.child_by_field_name("receiver")) is not None:
        name = _text(node.child_by_field_name("name"))
        owner = _first(receiver, frozenset(("type_identifier",)))
        return f"{owner}.{name}" if owner else name
    if node.type == "impl_item":
        return _text(node.child_by_field_name("type")).partition("<")[0]
    if node.type == "companion_object":
        return _text(node.child_by_field_name("name")) or "Companion"
    if (name_node := node.child_by_field_name("name")) is not None:
        return _text(name_node)
    if (declarator := node.child_by_field_name("declarator")) is not None:
        return _text(declarator) if declarator.type in _NAMES else _first(declarator, _NAMES)
    return _first(node, _NAMES)


def _first(node: Node, kinds: frozenset[str]) -> str:
    """The first node of these kinds inside, parameters left out. Not recursive: declarators nest."""
    waiting = [node]
    for _ in range(64):
        if not waiting:
            break
        current = waiting.pop()
        if current.type in kinds:
            return _text(current)
        waiting += [
            child
            for child in reversed(current.named_children)
            if child.type not in ("parameter_list", "field_declaration_list", "enumerator_list", "block")
        ]
    return ""


def _text(node: Node | None) -> str:
    raw = node.text if node is not None else None
    return " ".join(raw.decode("utf-8", "replace").split())[:120] if raw else ""


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


@cache
def _parser(language: str) -> Parser:
    from tree_sitter import Language, Parser

    grammar = GRAMMARS[language]
    return Parser(Language(getattr(import_module(grammar.module), grammar.function)()))
