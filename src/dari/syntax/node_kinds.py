"""Which nodes of a grammar define what: a table for languages in wide use; for all others by how grammars spell it."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language

VALUES = frozenset(("variable", "constant", "field", "key"))
"""Kinds that count outside of functions only: inside they are local."""
TYPES = frozenset(("class", "struct", "union", "enum", "interface", "trait", "record", "object", "impl", "extension"))
"""Kinds whose functions are methods and whose variables are fields."""
REOPENED = frozenset(("impl", "extension"))
"""Kinds that add to what is defined elsewhere."""
ANONYMOUS = ""
"""A function without a name: nothing is defined by it, and what is inside it is local."""

_JS = """
function: function_declaration generator_function_declaration function_signature
class: class_declaration abstract_class_declaration
method: method_definition abstract_method_signature method_signature
interface: interface_declaration
type: type_alias_declaration
enum: enum_declaration
namespace: internal_module module
variable: variable_declarator assignment_expression
field: public_field_definition field_definition property_signature pair
: arrow_function function_expression generator_function
"""
_C = """
function: function_definition
struct: struct_specifier
union: union_specifier
enum: enum_specifier
type: type_definition
macro: preproc_function_def preproc_def
variable: declaration
field: field_declaration enumerator
"""
_TABLES = {
    "python": """
function: function_definition
class: class_definition
type: type_alias_statement
variable: assignment
: lambda
""",
    "javascript": _JS,
    "typescript": _JS,
    "tsx": _JS,
    "go": """
function: function_declaration
method: method_declaration method_elem method_spec
type: type_spec type_alias
constant: const_spec
variable: var_spec
field: field_declaration
: func_literal
""",
    "rust": """
function: function_item function_signature_item
struct: struct_item
union: union_item
enum: enum_item
trait: trait_item
impl: impl_item
module: mod_item
macro: macro_definition
type: type_item associated_type
constant: const_item static_item
field: field_declaration enum_variant
: closure_expression
""",
    "java": """
class: class_declaration
interface: interface_declaration annotation_type_declaration
enum: enum_declaration
record: record_declaration
method: method_declaration constructor_declaration compact_constructor_declaration
field: field_declaration enum_constant constant_declaration
: lambda_expression
""",
    "kotlin": """
class: class_declaration
object: object_declaration companion_object
function: function_declaration
method: secondary_constructor
type: type_alias
variable: property_declaration
field: enum_entry
: lambda_literal anonymous_function
""",
    "c": _C,
    "cpp": f"""{_C}
class: class_specifier
namespace: namespace_definition
concept: concept_definition
type: alias_declaration
: lambda_expression
""",
    "objc": f"""{_C}
class: class_interface class_implementation protocol_declaration
method: method_definition
""",
    "bash": "function: function_definition\nvariable: variable_assignment",
    "ruby": """
module: module
class: class
method: method singleton_method
variable: assignment
: lambda
""",
    "php": """
namespace: namespace_definition
function: function_definition
class: class_declaration
interface: interface_declaration
trait: trait_declaration
enum: enum_declaration
method: method_declaration
constant: const_element
field: property_element enum_case
: anonymous_function arrow_function
""",
    "csharp": """
namespace: namespace_declaration file_scoped_namespace_declaration
class: class_declaration
struct: struct_declaration
interface: interface_declaration
enum: enum_declaration
record: record_declaration
type: delegate_declaration
method: method_declaration constructor_declaration destructor_declaration
function: local_function_statement
field: property_declaration field_declaration enum_member_declaration event_declaration
: lambda_expression
""",
    "swift": """
class: class_declaration
interface: protocol_declaration
function: function_declaration protocol_function_declaration
type: typealias_declaration
variable: property_declaration
field: enum_entry
: lambda_literal
""",
    "scala": """
class: class_definition
object: object_definition
trait: trait_definition
enum: enum_definition
function: function_definition function_declaration
type: type_definition
variable: val_definition var_definition val_declaration var_declaration
field: simple_enum_case
: lambda_expression
""",
    "lua": "function: function_declaration\nvariable: assignment_statement\n: function_definition",
    "luau": "function: function_declaration\nvariable: assignment_statement\n: function_definition",
    "julia": """
module: module_definition
function: function_definition
macro: macro_definition
struct: struct_definition
variable: assignment const_statement
""",
    "r": "variable: binary_operator\n: function_definition",
    "elixir": "function: call",
    "clojure": "function: list_lit",
    "zig": "function: FnProto\nvariable: VarDecl",
    "dart": """
class: class_definition mixin_declaration
extension: extension_declaration
enum: enum_declaration
function: function_signature getter_signature setter_signature
method: constructor_signature
type: type_alias
field: enum_constant
""",
    "proto": "struct: message\nenum: enum\nclass: service\nmethod: rpc\nfield: field enum_field",
    "graphql": """
type: object_type_definition input_object_type_definition union_type_definition scalar_type_definition
interface: interface_type_definition
enum: enum_type_definition
field: field_definition enum_value_definition
""",
    "make": "target: rule\nvariable: variable_assignment",
    "terraform": "block: block",
    "css": "rule: rule_set",
    "scss": "rule: rule_set\nfunction: function_statement\nmacro: mixin_statement",
    "markdown": "heading: section",
    "yaml": "key: block_mapping_pair",
    "toml": "key: table table_array_element pair",
    "json": "key: pair",
    "nix": "variable: binding",
    "haskell": """
type: data_type newtype type_synomym
class: class
function: function signature bind
""",
    "cmake": "function: function_def\nmacro: macro_def",
    "fortran": "module: module\nfunction: subroutine function",
    "erlang": "function: fun_decl\nrecord: record_decl",
    "sql": "table: create_table\nfunction: create_function\nview: create_view\ntype: create_type",
    "dockerfile": "stage: from_instruction",
    "ocaml": "module: module_definition\nfunction: let_binding\ntype: type_binding\nclass: class_binding",
}
_WORDS = (
    *("function", "method", "class", "struct", "union", "enum", "interface", "trait", "module", "namespace", "macro"),
    *("record", "object", "protocol", "package", "service", "contract", "constructor", "subroutine", "procedure"),
    *("actor", "mixin", "extension", "event", "modifier", "type", "typedef", "constant", "const", "property"),
    *("func", "proc", "theorem", "instance", "task", "entity", "architecture", "component", "table", "view"),
)
_GENERIC = re.compile(
    rf"(?:[a-z]+_){{0,2}}({'|'.join(_WORDS)})(?:_[a-z]+)?_(?:definition|declaration|item|def|decl|statement|specifier)"
)
_NOT_GENERIC = re.compile(
    r"end_|body|param|argument|call|import|list|clause|annotation|forward|empty|anonymous|lambda|pattern|variable|"
    r"(?:type|package|event|module)_statement"
)
_ALIASES = {
    **dict.fromkeys(("func", "proc", "subroutine", "procedure", "task", "theorem"), "function"),
    **dict.fromkeys(("protocol",), "interface"),
    **dict.fromkeys(("actor", "contract", "service", "mixin", "entity", "component", "architecture"), "class"),
    **dict.fromkeys(("const",), "constant"),
    **dict.fromkeys(("typedef",), "type"),
    **dict.fromkeys(("property",), "field"),
    **dict.fromkeys(("constructor", "modifier", "event"), "method"),
    **dict.fromkeys(("package", "namespace"), "namespace"),
    **dict.fromkeys(("instance",), "impl"),
}


@cache
def definition_kinds(language: str, grammar: Language) -> dict[str, str]:
    """Node type → kind of what it defines, `ANONYMOUS` for a function that has no name."""
    if (table := _TABLES.get(language)) is not None:
        named = (line.partition(":") for line in table.strip().splitlines() if line)
        kinds = {node: kind for kind, _, nodes in named for node in nodes.split()}
    else:
        kinds = {}
        for number in range(grammar.node_kind_count):
            name = grammar.node_kind_for_id(number) or ""
            found = _GENERIC.fullmatch(name) if grammar.node_kind_is_named(number) else None
            if found and not _NOT_GENERIC.search(name):
                kinds[name] = _ALIASES.get(found[1], found[1])
    return {node: kind for node, kind in kinds.items() if grammar.id_for_node_kind(node, True) is not None}
