"""What a source file defines: functions, types, fields, constants, with qualified names and lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from dari.syntax.grammars import GRAMMARS, grammar_of
from dari.syntax.naming import names_of
from dari.syntax.node_kinds import ANONYMOUS, TYPES, VALUES, definition_kinds
from dari.syntax.parsing import SourceTree

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_DEFINITIONS = 50_000
_MAX_DEPTH = 2000
_WRAPPERS = frozenset(
    (
        *("decorated_definition", "export_statement", "template_declaration", "ambient_declaration"),
        *("lexical_declaration", "variable_declaration", "type_declaration", "const_declaration", "var_declaration"),
        *("expression_statement", "value_definition", "const_statement"),
    )
)
_UPPER_IS_CONSTANT = frozenset(("python", "javascript", "typescript", "tsx", "bash", "ruby", "lua", "kotlin", "php"))
_FUNCTIONS = frozenset(
    (
        "arrow_function",
        "function_expression",
        "generator_function",
        "function_definition",
        "lambda",
        "class",
        "function",
    )
)


class Definition(Struct, frozen=True):
    """Lines are counted from 1, `end_line` is within; bytes are offsets. `depth` 1 is the top of the file."""

    kind: str
    name: str
    symbol: str
    """With the names around it: `Class.method`."""
    line: int
    end_line: int
    depth: int
    start_byte: int
    end_byte: int
    name_byte: int
    name_line: int
    body_byte: int
    """Where its body begins; the end of it where there is none."""

    def holds(self, offset: int) -> bool:
        return self.start_byte <= offset < self.end_byte


class _Open(Struct):
    """A node that what follows may be inside of."""

    end_byte: int
    kind: str
    symbol: str
    depth: int


def find_definitions(tree: SourceTree) -> list[Definition]:
    """In the order of the file, at most `MAX_DEFINITIONS`."""
    kinds = definition_kinds(tree.language, grammar_of(tree.language))
    grammar = GRAMMARS.get(tree.language)
    separator = grammar.separator if grammar else "."
    found: list[Definition] = []
    around: list[_Open] = []
    for node, above in _candidates(tree, kinds):
        while around and around[-1].end_byte <= node.start_byte:
            around.pop()
        parent = around[-1] if around else _Open(len(tree.data), "", "", 0)
        kind = kinds[node.type]
        named = names_of(node, tree) if kind != ANONYMOUS else []
        for name_node, name, value in named:
            exact = _refine(kind, node, name, value, parent, tree)
            if exact is None or (found and found[-1].name_byte == name_node.start_byte):
                continue  # local; or a node around it was taken for the same definition
            symbol = f"{parent.symbol}{separator}{name}" if parent.symbol else name
            found.append(_definition(exact, name, symbol, parent.depth + 1, node, name_node, above, tree))
            around.append(_Open(node.end_byte, exact, symbol, parent.depth + 1))
        if kind == ANONYMOUS and parent.kind not in ("function", "method"):
            around.append(_Open(node.end_byte, "function", parent.symbol, parent.depth))
        if len(found) >= MAX_DEFINITIONS:
            break
    return found


def _definition(
    kind: str, name: str, symbol: str, depth: int, node: Node, name_node: Node, above: list[Node], tree: SourceTree
) -> Definition:
    outer = node
    for around in reversed(above[-4:]):
        if around.type not in _WRAPPERS or (around.named_child_count > 1 and "decl" in around.type):
            break
        if around.start_point.row < outer.start_point.row and "decl" in around.type:
            break  # one of several in parentheses
        outer = around
    body = node.child_by_field_name("body")
    end = outer.end_point
    if body is None:
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        body = value.child_by_field_name("body") if value is not None and value.type in _FUNCTIONS else None
    return Definition(
        kind=kind,
        name=last if name.endswith(last := tree.text(name_node)) else name,
        symbol=symbol,
        line=outer.start_point.row + 1,
        end_line=max(outer.start_point.row + 1, end.row + (end.column > 0)),
        depth=depth,
        start_byte=outer.start_byte,
        end_byte=outer.end_byte,
        name_byte=name_node.start_byte + (tree.data[name_node.start_byte : name_node.start_byte + 1] in (b'"', b"'")),
        name_line=name_node.start_point.row + 1,
        body_byte=body.start_byte if body is not None else outer.end_byte,
    )


def _refine(kind: str, node: Node, name: str, value: Node | None, parent: _Open, tree: SourceTree) -> str | None:
    """The kind in its place; None for what is local to a function, or only a mention of a type."""
    language = tree.language
    is_local = parent.kind in ("function", "method")
    if kind in VALUES and value is not None and value.type in _FUNCTIONS:
        if value.type == "class":
            return "class"
        return "method" if parent.kind in TYPES or node.type in ("pair", "public_field_definition") else "function"
    if value is not None and value == node:
        return "function"  # Julia's f(x) = …
    if node.type == "assignment_expression":
        return None
    if language == "elixir":
        return {"defmodule": "module", "defmacro": "macro"}.get(tree.text(node.named_children[0]), kind)
    if kind in VALUES:
        if is_local:
            return None
        if node.type == "declaration" and _is_prototype(node):
            return "method" if parent.kind in TYPES else "declaration"
        if node.type == "field_declaration" and language == "cpp" and _is_prototype(node):
            return "method"
        if node.type == "pair" and language in ("javascript", "typescript", "tsx"):
            return None
        if kind == "key":
            return kind
        if parent.kind in TYPES or (parent.kind == "type" and kind == "field"):
            return "field"
        return (
            "constant"
            if kind == "constant" or (name.isupper() and kind == "variable" and language in _UPPER_IS_CONSTANT)
            else kind
        )
    if node.type.endswith("_specifier") and node.child_by_field_name("body") is None:
        return None
    if kind == "function" and parent.kind in TYPES:
        return "method"
    if node.type == "class_declaration" and language in ("swift", "kotlin"):
        return next((word for word in ("struct", "enum", "extension", "interface") if _has_word(node, word)), kind)
    if node.type == "type_spec" and (given := node.child_by_field_name("type")) is not None:
        return {"struct_type": "struct", "interface_type": "interface"}.get(given.type, kind)
    return kind


def _is_prototype(node: Node) -> bool:
    inner = node.child_by_field_name("declarator")
    for _ in range(8):
        if inner is None:
            return False
        if inner.type == "function_declarator":
            return True
        inner = inner.child_by_field_name("declarator")
    return False


def _has_word(node: Node, word: str) -> bool:
    return any(child.type == word for child in node.children[:8])


def _candidates(tree: SourceTree, kinds: dict[str, str]) -> Iterator[tuple[Node, list[Node]]]:
    """Nodes of these types in order, each with the nodes above it.

    By a cursor, not by a query: of 200,000 unbalanced brackets, which are one node with as many children, a query
    takes 37 s, and it keeps the interpreter's lock meanwhile. `Node.parent` looks from the root down each time.
    """
    grammar = grammar_of(tree.language)
    wanted = {grammar.id_for_node_kind(kind, True) for kind in kinds}
    cursor = tree.root.walk()
    above: list[Node] = []
    while wanted:
        node = cursor.node
        if node is None:
            return
        if node.kind_id in wanted:
            yield node, above
        if len(above) < _MAX_DEPTH and cursor.goto_first_child():
            above.append(node)
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return
            above.pop()
