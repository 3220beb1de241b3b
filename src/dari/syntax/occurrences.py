"""Where a name stands in a file, and what it does there: defined, called, imported, or only mentioned in a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

from dari.syntax.definitions import Definition
from dari.syntax.node_kinds import REOPENED
from dari.syntax.parsing import SourceTree

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_OCCURRENCES = 5_000
MAX_LINE_CHARS = 200
_TEXT_NODES = re.compile(r"comment|string|char|text|content|heredoc|template_literal|scalar|regex|inline|paragraph")
_IMPORT_NODES = re.compile(r"import|use_declaration|using_directive|include|extern_crate|package_(?:clause|header)")
_CALL_NODES = re.compile(r"call|invocation|new_expression|object_creation|^command")
_MEMBER_NODES = frozenset(
    (
        *("attribute", "member_expression", "field_expression", "selector_expression", "scoped_identifier"),
        *(
            "navigation_expression",
            "navigation_suffix",
            "member_access_expression",
            "dot_index_expression",
            "field_access",
        ),
        *("method_index_expression", "scoped_type_identifier", "qualified_identifier", "method_invocation", "call"),
        *("qualified_type", "nested_type_identifier", "scoped_call_expression", "member_call_expression", "dot"),
    )
)
_BINDERS = re.compile(
    r"variable_declarator|let_declaration|short_var_declaration|local_|for_(?:statement|in)|init_declarator"
)
_FUNCTIONS = frozenset(("function", "method"))


class Occurrence(Struct, frozen=True, omit_defaults=True):
    """Line and column are counted from 1, the column in characters."""

    line: int
    col: int
    text: str
    """Its line, without the blanks around it."""
    role: str
    """definition, reference, or text for what stands in a comment or a string."""
    kind: str
    """Of a definition what it is; of a reference what it does: call, import, export, write, type, inherit, use …"""
    symbol: str = ""
    """Of a definition its qualified name; otherwise that of what is around it."""
    end_line: int = 0
    receiver: str = ""
    """What stands before the dot: `self`, `Class`, `module`."""
    is_member: bool = False
    is_local: bool = False
    """The function around it has a parameter or a variable of this name."""


def find_occurrences(tree: SourceTree, name: str, definitions: Sequence[Definition]) -> list[Occurrence]:
    """Each place of the name as a whole word, at most `MAX_OCCURRENCES`."""
    word = re.escape(name.encode())
    pattern = re.compile(rb"(?<![\w$\x80-\xff])" + word + rb"(?![\w\x80-\xff])" if name[:1] != "$" else word)
    defined = {one.name_byte: one for one in definitions if one.kind not in REOPENED}
    functions = [one for one in definitions if one.kind in _FUNCTIONS]
    places = _Lines(tree.data)
    found: list[tuple[int, Occurrence, bool]] = []
    for match in pattern.finditer(tree.data):
        if len(found) >= MAX_OCCURRENCES:
            break
        found.append((match.start(), *_classify(tree, match.start(), match.end(), defined, definitions, places)))
    scopes = [scope for at, _, binds in found if binds and (scope := _innermost(functions, at)) is not None]
    return [
        _local(one) if not one.is_member and any(scope.holds(at) for scope in scopes) else one for at, one, _ in found
    ]


def _local(one: Occurrence) -> Occurrence:
    from msgspec.structs import replace

    return replace(one, is_local=True) if one.role == "reference" else one


def _classify(
    tree: SourceTree,
    start: int,
    end: int,
    defined: dict[int, Definition],
    definitions: Sequence[Definition],
    places: _Lines,
) -> tuple[Occurrence, bool]:
    """What it is, and whether it binds the name locally."""
    line, col, text = places.at(start)
    if (own := defined.get(start)) is not None:
        symbol = own.symbol
        return Occurrence(line, col, text, "definition", own.kind, symbol, own.end_line), False
    around = _innermost(definitions, start)
    symbol = around.symbol if around is not None else ""
    node = tree.root.descendant_for_byte_range(start, end)
    is_exact = node is not None and node.end_byte == end and start - node.start_byte <= 1
    if node is None or not is_exact or _TEXT_NODES.search(node.type):
        return Occurrence(line, col, text, "text", node.type if node is not None else "text", symbol), False
    above: list[Node] = []
    step = node.parent
    while step is not None and len(above) < 7:
        above.append(step)
        step = step.parent
    kind, binds = _kind(tree, node, above)
    is_member = bool(above) and above[0].type in _MEMBER_NODES and node.start_byte > above[0].start_byte
    if is_member and above[0].type == "call" and not _is_field(above[0], node, "method", "name"):
        is_member = False
    receiver = tree.data[above[0].start_byte : start] if is_member else b""
    return (
        Occurrence(
            line,
            col,
            text,
            "reference",
            kind,
            symbol,
            receiver=receiver.decode("utf-8", "replace").strip().rstrip(".:->?!")[-80:],
            is_member=is_member,
        ),
        binds and not is_member,
    )


def _kind(tree: SourceTree, node: Node, above: list[Node]) -> tuple[str, bool]:
    types = [one.type for one in above]
    if any(_IMPORT_NODES.search(kind) for kind in types[:6]):
        return "module" if _is_module_part(tree, node, above) else "import", False
    if any("export_specifier" in kind or "export_clause" in kind for kind in types[:3]):
        return "export", False
    if not above:
        return "use", False
    parent, outer = above[0], above[1] if len(above) > 1 else above[0]
    if types[0] == "keyword_argument" and _is_field(parent, node, "name"):
        return "argument", False
    if "parameter" in types[0] and "type" not in types[0] and not _is_field(parent, node, "type", "value"):
        return "parameter", True
    if types[0] in ("parameters", "lambda_parameters", "formal_parameters", "method_parameters"):
        return "parameter", True
    if "superclass" in types[0] or (outer.type in ("class_definition", "class_declaration") and "list" in types[0]):
        return "inherit", False
    if _CALL_NODES.search(types[0]) and _is_field(
        parent, node, "function", "name", "method", "constructor", "type", ""
    ):
        return "call", False
    is_last = types[0] in _MEMBER_NODES and parent.end_byte == node.end_byte
    if is_last and _CALL_NODES.search(outer.type) and _is_field(outer, parent, "function", "constructor", "name", ""):
        return "call", False
    if "assignment" in types[0] and _is_field(parent, node, "left", "name"):
        return "write", tree.language == "python"
    if _BINDERS.search(types[0]) and _is_field(parent, node, "name", "left", "pattern", "declarator"):
        return "write", True
    if node.type == "type_identifier" or "type" in types[0]:
        return "type", False
    return "use", False


def _is_module_part(tree: SourceTree, node: Node, above: list[Node]) -> bool:
    """Of `from a.b import c` and `use a::b::c` the parts before `c`: names of modules, not of what is in them."""
    if tree.data[node.end_byte : node.end_byte + 2].startswith((b".", b"::")):
        return True
    return any(one.child_by_field_name("module_name") == inner for inner, one in pairwise([node, *above[:3]]))


def _is_field(parent: Node, node: Node, *fields: str) -> bool:
    """Whether the node is in one of these fields; with an empty name also its first child."""
    if "" in fields and parent.named_child_count and parent.named_children[0] == node:
        return True
    return any(parent.child_by_field_name(field) == node for field in fields if field)


def _innermost(definitions: Sequence[Definition], offset: int) -> Definition | None:
    """The last one that begins before the place and ends after it."""
    best = None
    for one in definitions:
        if one.start_byte > offset:
            break
        if one.end_byte > offset:
            best = one
    return best


class _Lines:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._line = 1
        self._counted = 0
        self._start = 0
        self._col = 0

    def at(self, offset: int) -> tuple[int, int, str]:
        """Line, column and text; asked for in order."""
        self._line += self._data.count(b"\n", self._counted, offset)
        start = self._data.rfind(b"\n", self._counted, offset) + 1 or self._start
        if start != self._start:
            self._start, self._col, self._counted = start, 0, start
        # On from the last place: a minified file is one line.
        self._col += len(self._data[self._counted : offset].decode("utf-8", "replace"))
        self._counted = offset
        end = self._data.find(b"\n", offset, offset + 4 * MAX_LINE_CHARS)
        near = max(start, offset - MAX_LINE_CHARS // 2) if offset - start > MAX_LINE_CHARS else start
        text = self._data[near : min(end if end >= 0 else len(self._data), near + 4 * MAX_LINE_CHARS)]
        return self._line, self._col + 1, text.decode("utf-8", "replace").strip()[:MAX_LINE_CHARS]
