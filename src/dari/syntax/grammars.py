"""Grammars of tree-sitter: which nodes define something, what it is called, and the parsers."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

from msgspec import Struct

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser, Tree
    from tree_sitter_language_pack import SupportedLanguage


class Grammar(Struct, frozen=True):
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
) -> Grammar:
    return Grammar(
        module,
        function,
        frozenset(units.split()),
        frozenset(types.split()),
        frozenset((*scopes.split(), "ERROR")),
        separator,
    )


# Names of ours that tree-sitter-language-pack spells otherwise.
_PACK_NAMES = {"go-mod": "gomod", "hcl": "terraform"}
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
    "go": _grammar(
        *("tree_sitter_go", "function_declaration method_declaration type_spec type_alias", "", "type_declaration")
    ),
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
_NAMES = frozenset(
    (
        *("identifier", "type_identifier", "field_identifier", "property_identifier", "simple_identifier"),
        *("qualified_identifier", "operator_name", "destructor_name", "word", "private_property_identifier"),
    )
)
# What stands inside has names of its own.
_BODIES = frozenset(
    (
        *("parameter_list", "formal_parameters", "field_declaration_list", "enumerator_list", "declaration_list"),
        *("class_body", "block", "compound_statement", "statement_block"),
    )
)
_FUNCTION_VALUES = frozenset(("arrow_function", "function_expression", "generator_function", "class", "function"))


class UnknownLanguage(ImportError):
    """There is no grammar of it, or none is installed."""


@cache
def parser_of(language: str) -> Parser:
    """One per language, for callers that parse in one thread."""
    return new_parser(language)


def new_parser(language: str) -> Parser:
    from tree_sitter import Parser

    return Parser(grammar_of(language))


@cache
def parse(parser: Parser, data: bytes) -> Tree:
    """The tree of `data` as if its last line ended like the others: at an annotation on a line without an end Kotlin's
    scanner goes on looking for that end for ever."""
    return parser.parse(data if data.endswith(b"\n") else data + b"\n")


def grammar_of(language: str) -> Language:
    """The wheel of the language where it is installed, then the pack of many; UnknownLanguage without either."""
    try:
        from tree_sitter import Language
    except ImportError as error:
        raise UnknownLanguage("tree-sitter is not installed") from error

    if (grammar := GRAMMARS.get(language)) is not None:
        try:
            return Language(getattr(import_module(grammar.module), grammar.function)())
        except ImportError:
            pass
    try:
        from tree_sitter_language_pack import get_language
    except ImportError:
        raise UnknownLanguage(f"no grammar of {language} is installed") from None
    try:
        return get_language(cast("SupportedLanguage", _PACK_NAMES.get(language, language)))
    except (LookupError, ImportError, AttributeError):
        raise UnknownLanguage(f"there is no grammar of {language}") from None


def qualified_name(prefix: str, name: str, grammar: Grammar) -> str:
    return f"{prefix}{grammar.separator}{name}" if prefix and name else name or prefix


def definition_name(node: Node) -> str:
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
    """The first node of these kinds inside, parameters and bodies left out. Not recursive: declarators nest."""
    waiting = [node]
    for _ in range(64):
        if not waiting:
            break
        current = waiting.pop()
        if current.type in kinds:
            return _text(current)
        waiting += [child for child in reversed(current.named_children) if child.type not in _BODIES]
    return ""


def _text(node: Node | None) -> str:
    raw = node.text if node is not None else None
    return " ".join(raw.decode("utf-8", "replace").split())[:120] if raw else ""
