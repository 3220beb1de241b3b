"""What a node that defines something is called."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

    from dari.syntax.parsing import SourceTree

Named = tuple["Node", str, "Node | None"]
"""The node of the name, the name, and the value that it is given where there is one."""
_MAX_NAME_CHARS = 120
_WORD = re.compile(r"[\w+\-*/<>=!&|^~%$.]")
_NAME_TYPES = frozenset(
    (
        *("identifier", "type_identifier", "field_identifier", "property_identifier", "simple_identifier", "constant"),
        *("operator_name", "destructor_name", "word", "private_property_identifier", "name", "variable_name", "atom"),
        *("simple_name", "function_name", "type_constructor", "value_name", "module_name", "class_name", "bare_key"),
        *("message_name", "enum_name", "service_name", "rpc_name", "IDENTIFIER", "alias", "sym_name", "variable"),
        *("unquoted_argument", "value_pattern", "module_id"),
        *("enum_value", "bareword", "symbol", "dotted_key", "quoted_key", "id_name", "tag_name"),
    )
)
_SKIPPED = frozenset(
    (
        *("parameter_list", "parameters", "formal_parameters", "field_declaration_list", "enumerator_list", "block"),
        *("modifiers", "attribute_list", "annotation", "type", "modifier", "visibility_modifier", "superclass", "body"),
        *("declaration_list", "class_body", "attribute_item", "type_parameters", "method_type", "arguments"),
        *("type_literal", "type_spec", "type_name", "base_clause", "class_parameters"),
    )
)
_DEFINERS = frozenset(
    (
        "def",
        "defp",
        "defmodule",
        "defmacro",
        "defmacrop",
        "defprotocol",
        "defimpl",
        "defstruct",
        "defguard",
        "defdelegate",
    )
)


def names_of(node: Node, tree: SourceTree) -> list[Named]:
    """Each name that the node defines; mostly one, several in `int a, b;`."""
    special = _SPECIAL.get(tree.language)
    if special is not None and (found := special(node, tree)) is not None:
        return found
    kind = node.type
    if kind == "impl_item":
        return _one(node.child_by_field_name("type"), tree, cut="<")
    if kind == "method_declaration" and (receiver := node.child_by_field_name("receiver")) is not None:
        name = node.child_by_field_name("name")
        owner = _first(receiver, frozenset(("type_identifier",)))
        if name is None:
            return []
        return [(name, f"{tree.text(owner)}.{tree.text(name)}" if owner is not None else tree.text(name), None)]
    if kind == "companion_object" and node.child_by_field_name("name") is None:
        return [(node, "Companion", None)]
    if kind in ("assignment", "assignment_expression"):
        return _assigned(node, tree)
    if tree.language == "haskell":
        return _one(node.child_by_field_name("name"), tree)
    value = node.child_by_field_name("value")
    for field in ("name", "property", "key", "pattern"):
        if named := node.children_by_field_name(field):
            several = kind in ("var_spec", "const_spec", "field_declaration")
            return [one for each in (named if several else named[:1]) for one in _one(each, tree, value=value)]
    if declarators := node.children_by_field_name("declarator"):
        return [one for each in declarators for one in _declared(each, tree, value)]
    first = _first(node, _NAME_TYPES)
    return _one(first, tree, value=value)


def _one(node: Node | None, tree: SourceTree, *, cut: str = "", value: Node | None = None) -> list[Named]:
    """A name on one line, or nothing: patterns such as `{a, b}` name several things and are left to the references."""
    if node is None or (node.type.endswith(("_pattern", "_pattern_list")) and node.type != "identifier_pattern"):
        return []
    text = tree.text(node)
    if cut:
        text = text.partition(cut)[0]
    text = " ".join(text.split()).strip("\"'")
    return [(_leaf(node), text[:_MAX_NAME_CHARS], value)] if _WORD.search(text) else []


def _leaf(node: Node) -> Node:
    """The last part of a path of names: of `A::b` and `M.b` it is `b`."""
    for _ in range(16):
        for field in ("name", "field", "method", "property", "attribute"):
            if (inner := node.child_by_field_name(field)) is not None:
                node = inner
                break
        else:
            named = node.named_children
            if len(named) == 1 and named[0].end_byte == node.end_byte:
                node = named[0]
                continue
            return node
    return node


def _declared(node: Node, tree: SourceTree, value: Node | None) -> list[Named]:
    found = (
        node
        if node.type in _NAME_TYPES or node.type == "qualified_identifier"
        else _first(node, _NAME_TYPES | {"qualified_identifier"})
    )
    return _one(found, tree, value=node.child_by_field_name("value") or value)


def _assigned(node: Node, tree: SourceTree) -> list[Named]:
    left = node.child_by_field_name("left")
    right = node.child_by_field_name("right")
    if left is None:
        left = node.named_children[0] if node.named_children else None
        right = None
    if left is None:
        return []
    if left.type in ("identifier", "constant", "member_expression"):
        return _one(left, tree, value=right)
    if left.type in ("pattern_list", "tuple_pattern"):
        return [one for each in left.named_children if each.type == "identifier" for one in _one(each, tree)]
    if tree.language == "julia" and left.type == "call_expression" and left.named_children:
        return [(name, text, node) for name, text, _ in _one(left.named_children[0], tree)]
    return []


def _first(node: Node, kinds: frozenset[str]) -> Node | None:
    """The first node of these kinds inside, parameters left out. Not recursive: declarators nest."""
    waiting = [node]
    for _ in range(64):
        if not waiting:
            break
        current = waiting.pop()
        if current.type in kinds and current is not node:
            return current
        waiting += [child for child in reversed(current.named_children) if child.type not in _SKIPPED]
    return None


def _elixir(node: Node, tree: SourceTree) -> list[Named] | None:
    target = node.child_by_field_name("target")
    if target is None or tree.text(target) not in _DEFINERS:
        return []
    given = next((child for child in node.named_children if child.type == "arguments"), None)
    if given is None or not given.named_children:
        return []
    head = given.named_children[0]
    if head.type == "binary_operator" and head.named_children:
        head = head.named_children[0]
    inner = head.child_by_field_name("target") if head.type == "call" else head
    return _one(inner, tree)


def _clojure(node: Node, tree: SourceTree) -> list[Named] | None:
    parts = node.named_children
    if len(parts) < 2 or not tree.text(parts[0]).startswith(("def", "ns")) or parts[1].type != "sym_lit":
        return []
    return _one(parts[1], tree)


def _r(node: Node, tree: SourceTree) -> list[Named] | None:
    left, right = node.child_by_field_name("lhs"), node.child_by_field_name("rhs")
    if left is None or left.type != "identifier" or right is None:
        return []
    between = tree.data[left.end_byte : right.start_byte].strip()
    return _one(left, tree, value=right) if between in (b"<-", b"<<-", b"=") else []


def _lua(node: Node, tree: SourceTree) -> list[Named] | None:
    if node.type != "assignment_statement":
        return None
    names = next((child for child in node.named_children if child.type == "variable_list"), None)
    values = next((child for child in node.named_children if child.type == "expression_list"), None)
    if names is None or not names.named_children:
        return []
    return _one(
        names.named_children[0], tree, value=values.named_children[0] if values and values.named_children else None
    )


def _markdown(node: Node, tree: SourceTree) -> list[Named] | None:
    heading = node.named_children[0] if node.named_children else None
    content = heading.child_by_field_name("heading_content") if heading is not None else None
    return _one(content, tree)


def _terraform(node: Node, tree: SourceTree) -> list[Named] | None:
    words = [child for child in node.named_children if child.type in ("identifier", "string_lit")]
    return [(words[0], ".".join(tree.text(word).strip('"') for word in words), None)] if words else []


def _selector(node: Node, tree: SourceTree) -> list[Named] | None:
    return _one(node.named_children[0], tree) if node.named_children else []


def _zig(node: Node, tree: SourceTree) -> list[Named] | None:
    return _one(node.child_by_field_name("function") or node.child_by_field_name("variable_type_function"), tree)


def _make(node: Node, tree: SourceTree) -> list[Named] | None:
    return _one(node.named_children[0], tree) if node.type == "rule" and node.named_children else None


_SPECIAL = {
    "elixir": _elixir,
    "clojure": _clojure,
    "r": _r,
    "lua": _lua,
    "luau": _lua,
    "markdown": _markdown,
    "terraform": _terraform,
    "hcl": _terraform,
    "css": _selector,
    "scss": _selector,
    "zig": _zig,
    "make": _make,
}
