"""Rename by syntax, for languages other than Python: identifiers and their scopes, but no types.

What the syntax does not show is refused: several definitions of a name, a new name that is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from dari.codetools.engines.select import own_files
from dari.codetools.refactor.jobs import Job, Plan, PlannedFile
from dari.codetools.refactor.mentions import count_mentions
from dari.codetools.refactor.python_symbols import locate_word
from dari.codetools.refactor.sources import (
    STRUCTURAL,
    SourceFile,
    check_parses,
    language_of,
    planned,
    read_sources,
    structural_engine,
)
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import Conflict, InvalidInput, NotFound

if TYPE_CHECKING:
    from ast_grep_py import SgNode

Level = Literal["top", "member", "local"]
_FAMILIES = (frozenset({"javascript", "typescript", "tsx"}), frozenset({"c", "cpp"}))
_NAME = re.compile(r"[A-Za-z_$][\w$]*[?!]?")
_IDENTIFIER = re.compile(r"identifier|^(?:constant|name|word|variable_name|simple_identifier)$")
_PROPERTY = frozenset({"property_identifier", "field_identifier", "private_property_identifier"})
_SHORTHAND = frozenset({"shorthand_property_identifier", "shorthand_property_identifier_pattern"})
_DEFINES = re.compile(
    r"declar|definition|_item$|_spec$|_specifier$|signature|parameter|^(?:class|function|method|interface|enum|struct"
    r"|module|object_pattern|variable_declarator|enumerator|enum_variant|field_definition|required_parameter)"
)
_DEFINES_NOT = re.compile(
    r"import|export_specifier|invocation|call|access|argument|attribute|qualified|scoped|jsx|generic_type|reference"
)
_NAME_FIELDS = ("name", "declarator", "pattern", "left", "parameter", "key")
_MEMBERS = re.compile(
    r"class_body|class_declaration$|interface_body|interface_declaration|object_type|struct_type|field_declaration_list"
    r"|enum_body|impl_item|trait_item|declaration_list|class_definition|enum_class_body|object_declaration"
)
_SCOPE = re.compile(
    r"function|method|arrow|lambda|closure|block|for_|catch|constructor|do_statement|while|if_|loop|body$"
)
_MODULES = re.compile(
    r"^(?:program|source_file|translation_unit|compilation_unit|source|chunk|config_file|namespace|mod_item)"
)
_NAMES_MEMBER = frozenset({"literal_element", "qualified_identifier", "field_initializer", "field_designator"})
"""Where a member is named by a plain identifier: `T{Name: 1}` of Go, `A::name` of C++."""
_FROM = r"from\s*['\"]([^'\"]+)['\"]"
_MAX_SHOWN = 8


class IdentifierUse(Struct, frozen=True):
    source: SourceFile
    start: int
    end: int
    line: int
    kind: str
    level: Level | None
    """Where it is defined, if this is a definition."""
    scope: tuple[int, int]
    """Of a local definition: where it counts."""
    owner: str = ""
    """The object in `owner.name`."""
    parent: str = ""


def rename(job: Job, workspace: Workspace) -> Plan:
    """By place or by name; `paths` narrows where definitions and uses are looked for."""
    if not _NAME.fullmatch(job.new_name):
        raise InvalidInput(f"newName must be an identifier, got {job.new_name!r}", "letters, digits and _")
    notes: list[str] = []
    source: SourceFile | None = None
    if job.symbol.path:
        source = next(read_sources([workspace.locate(job.symbol.path)], workspace), None)
        if source is None or source.language not in STRUCTURAL:
            raise InvalidInput(f"rename does not support the language of {job.symbol.path}", "rewrite it by pattern")
        at = _offset(source, job)
        found = _NAME.match(source.text, at)
        old = found[0] if found else ""
        family = _family(source.language)
    else:
        at, old = None, job.symbol.name.rpartition(".")[2]
        family = STRUCTURAL - {"python"}
    uses = _all_uses(old, family, job, workspace)
    chosen = next((one for one in uses if source and one.start == at and one.source.path == source.path), None)
    if at is not None and chosen is None:
        raise InvalidInput(f"there is no identifier at line {job.symbol.line}", "check line and col")
    target = _definition(old, uses, chosen, workspace)
    if job.symbol.path == "" and target.level == "local":
        raise NotFound(f"no definition of {old!r} outside of functions", "give path, line and col for a local name")
    places, left = _select(target, uses)
    _check_free(job.new_name, target, places, job, workspace)
    files = [_replace(source, places, old, job.new_name, workspace) for source in _sources_of(places)]
    kinds = {"top": "by name and scope", "member": "by name on any object", "local": "in its scope"}
    notes.append(f"structural rename {kinds[target.level or 'top']}: types are not checked")
    if left:
        shown = ", ".join(f"{workspace.show(one.source.path)}:{one.line}" for one in left[:_MAX_SHOWN])
        notes.append(f"{len(left)} uses of {old!r} that may be something else are left ({shown})")
    notes += count_mentions(old, workspace, job.include_ignored) if target.level != "local" else []
    return Plan(files, notes, structural_engine(), f"rename {old} to {job.new_name}")


def _offset(source: SourceFile, job: Job) -> int:
    line, text = job.symbol.line, source.text
    if not line:
        raise InvalidInput("symbol needs line", "symbol {path, line, col}, or {name}")

    def defined() -> list[int]:
        words = {found[0] for found in _NAME.finditer(text.split("\n")[line - 1])}
        uses = [one for word in words for one in _uses(source, word) if one.level and one.line == line]
        return [one.start for one in uses if one.level != "local"] or [one.start for one in uses]

    return locate_word(text, line, job.symbol.col, defined, _NAME)


def _family(language: str) -> frozenset[str]:
    return next((family for family in _FAMILIES if language in family), frozenset({language}))


def _all_uses(old: str, family: frozenset[str], job: Job, workspace: Workspace) -> list[IdentifierUse]:
    def wants(name: str) -> bool:
        return language_of(name) in family

    paths: dict[WorkspacePath, None] = {}
    if job.symbol.path:
        paths[workspace.locate(job.symbol.path)] = None
    for path in own_files(workspace, job.paths or ["."], wants=wants, include_ignored=job.include_ignored):
        paths[path] = None
    return [use for source in read_sources(paths, workspace, old) for use in _uses(source, old)]


def _uses(source: SourceFile, name: str) -> Iterator[IdentifierUse]:
    from ast_grep_py import SgRoot

    if source.language not in STRUCTURAL:
        return
    root = SgRoot(source.text, source.language).root()
    for node in root.find_all(regex=f"^{re.escape(name)}$"):
        if not node.is_leaf() or not _IDENTIFIER.search(node.kind()):
            continue
        span = node.range()
        parent = node.parent()
        level, scope = _level(node) if _is_definition(node) else (None, (0, 0))
        owner = _owner(node)
        yield IdentifierUse(
            source,
            span.start.index,
            span.end.index,
            span.start.line + 1,
            node.kind(),
            level,
            scope,
            owner,
            parent.kind() if parent is not None else "",
        )


def _is_definition(node: SgNode) -> bool:
    parent = node.parent()
    if parent is None:
        return False
    kind = parent.kind()
    if kind == "object_pattern" and _is_loaded(parent):
        return False  # the name of an export of another file
    if kind in ("formal_parameters", "array_pattern", "object_pattern", "lambda_parameters", "closure_parameters"):
        return True
    if kind == "expression_list":
        above = parent.parent()
        if above is None or above.kind() not in ("short_var_declaration", "range_clause"):
            return False
        left = above.field("left")
        return left is not None and _same(left, parent)
    if _DEFINES_NOT.search(kind) or not (_DEFINES.search(kind) or kind in ("catch_clause", "arrow_function")):
        return False
    if any((found := parent.field(field)) is not None and _same(found, node) for field in _NAME_FIELDS):
        return True
    # Kotlin's grammar has no fields: the name comes first.
    first = next((child for child in parent.children() if child.kind() == "simple_identifier"), None)
    return first is not None and _same(first, node)


def _is_loaded(pattern: SgNode) -> bool:
    """`const { name } = require('./file')`."""
    parent = pattern.parent()
    value = parent.field("value") if parent is not None else None
    return value is not None and re.match(r"(?:await\s+import|require)\s*\(", value.text()) is not None


def _same(one: SgNode, other: SgNode) -> bool:
    a, b = one.range(), other.range()
    return (a.start.index, a.end.index) == (b.start.index, b.end.index)


def _level(node: SgNode) -> tuple[Level, tuple[int, int]]:
    """Where a definition counts. A function's own name belongs to what is around the function."""
    if node.kind() in _PROPERTY:
        return "member", (0, 0)
    above = list(node.ancestors())
    owner = above[0] if above else node
    is_parameter = "param" in owner.kind() or owner.kind() in ("catch_clause", "arrow_function")
    for at, ancestor in enumerate(above):
        kind = ancestor.kind()
        if at == 0 and not is_parameter and kind not in ("formal_parameters",):
            continue
        if _MODULES.search(kind):
            return "top", (0, 0)
        if kind in ("template_body", "body_statement") and _is_type_body(ancestor):
            return "member", (0, 0)
        if _MEMBERS.search(kind):
            return ("top", (0, 0)) if kind == "declaration_list" and _is_module_body(ancestor) else ("member", (0, 0))
        if _SCOPE.search(kind) and not (is_parameter and kind == "formal_parameters"):
            if at <= 1 and not is_parameter and "declarator" in kind:
                continue  # C: the declarator of the function whose name this is
            if at <= 2 and not is_parameter and kind == "function_definition":
                continue
            span = ancestor.range()
            return "local", (span.start.index, span.end.index)
    return "top", (0, 0)


def _is_type_body(node: SgNode) -> bool:
    """Of Scala and Ruby, where bodies of types and of methods are of one kind."""
    parent = node.parent()
    return parent is not None and bool(re.search(r"class|module|object|trait", parent.kind()))


def _is_module_body(node: SgNode) -> bool:
    parent = node.parent()
    return parent is not None and bool(re.search(r"namespace|mod_item|linkage|internal_module", parent.kind()))


def _owner(node: SgNode) -> str:
    """The text before the dot, for a name after one."""
    parent = node.parent()
    if parent is None or not re.search(
        r"member|selector|field_expression|field_access|method_invocation|navigation", parent.kind()
    ):
        return ""
    for field in ("object", "operand", "value", "argument", "expression"):
        found = parent.field(field)
        if found is not None and not _same(found, node):
            return found.text()
    return ""


def _definition(
    old: str, uses: Sequence[IdentifierUse], chosen: IdentifierUse | None, workspace: Workspace
) -> IdentifierUse:
    if chosen is not None:
        local = [
            one
            for one in uses
            if one.level == "local"
            and one.source.path == chosen.source.path
            and one.scope[0] <= chosen.start < one.scope[1]
        ]
        if chosen.level == "local" or (local and chosen.kind not in _PROPERTY):
            return min([chosen] if chosen.level == "local" else local, key=lambda one: one.scope[1] - one.scope[0])
    outer = [one for one in uses if one.level in ("top", "member")]
    if chosen is not None and chosen.kind in _PROPERTY and not chosen.level:
        outer = [one for one in outer if one.level == "member"] or outer
    if not outer:
        raise NotFound(f"no definition of {old!r} in the files that were looked at", "check the name, or widen paths")
    groups: dict[tuple[str, str, str], IdentifierUse] = {}
    for one in outer:
        is_c = one.source.language in ("c", "cpp") and one.level == "top"
        where = "" if is_c else f"{one.source.path.absolute}:{one.level}"
        groups.setdefault((where, one.level or "", "" if is_c else _kind_of(one)), one)
    if len(groups) > 1 or _has_twins(outer):
        shown = ", ".join(f"{workspace.show(one.source.path)}:{one.line}" for one in outer[:_MAX_SHOWN])
        raise Conflict(f"{old!r} has several definitions: {shown}", "narrow it with paths, or rewrite by pattern")
    return next(iter(groups.values()))


def _kind_of(use: IdentifierUse) -> str:
    return "overload" if re.search(r"signature|function_declaration|declarator", use.parent) else use.parent


def _has_twins(outer: Sequence[IdentifierUse]) -> bool:
    """Two members of one file may be of two classes; overloads of a function are one."""
    members = [one for one in outer if one.level == "member"]
    return len(members) > 1


def _select(target: IdentifierUse, uses: Sequence[IdentifierUse]) -> tuple[list[IdentifierUse], list[IdentifierUse]]:
    """The places to rename, and those that look alike but may be something else."""
    if target.level == "local":
        start, end = target.scope
        inner = [
            one
            for one in uses
            if one.source.path == target.source.path and start <= one.start < end and one.kind not in _PROPERTY
        ]
        return [one for one in inner if not _is_shadowed(one, inner, target)], []
    has_properties = target.kind in _PROPERTY
    places, left = [], []
    for one in uses:
        if target.level == "member" and has_properties:
            wanted = one.kind in _PROPERTY or one.parent in _NAMES_MEMBER
            left += [] if wanted or _is_shadowed(one, uses, target) else [one]
        elif target.level == "member":
            wanted = True
        elif one.kind in _PROPERTY:
            wanted = _is_namespace(one)
            left += [] if wanted else [one]
        else:
            wanted = not _is_foreign(one, target)
        if wanted and not _is_shadowed(one, uses, target):
            places.append(one)
    return places, left


def _is_shadowed(use: IdentifierUse, uses: Sequence[IdentifierUse], target: IdentifierUse) -> bool:
    """A local definition of the same name is nearer."""
    if use.kind in _PROPERTY:
        return False
    size = target.scope[1] - target.scope[0] if target.level == "local" else None
    return any(
        one.level == "local"
        and one.source.path == use.source.path
        and one.scope[0] <= use.start < one.scope[1]
        and (size is None or (one.scope[1] - one.scope[0] < size and one.scope != target.scope))
        for one in uses
    )


def _is_namespace(use: IdentifierUse) -> bool:
    """`module.name`, where the file imports the module as a whole (JavaScript), or it is a package (Go)."""
    owner = re.escape(use.owner)
    if not re.fullmatch(r"[\w$]+", use.owner):
        return False
    if use.source.language == "go":
        return re.search(rf'import[^"]*(?:\([^)]*)?(?:{owner}\s+"|"(?:[^"]*/)?{owner}")', use.source.text) is not None
    relative = r"""['"]\.{1,2}/"""
    return (
        re.search(rf"import\s+\*\s+as\s+{owner}\s+from\s+{relative}", use.source.text) is not None
        or re.search(rf"\b{owner}\s*=\s*(?:await\s+import|require)\(\s*{relative}", use.source.text) is not None
    )


def _is_foreign(use: IdentifierUse, target: IdentifierUse) -> bool:
    """JavaScript: the file has this name from a package, which is another symbol."""
    if use.source.path == target.source.path or use.source.language not in _FAMILIES[0]:
        return False
    name = re.escape(use.source.text[use.start : use.end])
    text, near = use.source.text, (".", "@/", "~/", "#")
    for passed in re.finditer(rf"\bexport\s+(?:type\s+)?\{{[^}}]*\b{name}\b[^}}]*\}}\s*{_FROM}", text):
        if passed.start() <= use.start < passed.end():  # what a file passes on is not a name in it
            return not passed[1].startswith(near) or re.search(r"\bas\s+$", text[: use.start]) is not None
    found = re.search(rf"import\s+[^;'\"]*\b{name}\b[^;'\"]*{_FROM}", text)
    return found is None or not found[1].startswith(near)


def _check_free(
    new: str, target: IdentifierUse, places: Sequence[IdentifierUse], job: Job, workspace: Workspace
) -> None:
    """Conflict where the new name is defined beside the target, or one of the two would hide the other."""
    for source in _sources_of(places):
        here = [one.start for one in places if one.source.path == source.path and one.kind not in _PROPERTY]
        others = list(_uses(source, new))
        for one in others:
            if target.level == "local":
                is_taken = target.scope[0] <= one.start < target.scope[1] and (bool(one.level) or _is_plain(one))
            elif one.level == "local":
                is_taken = any(one.scope[0] <= start < one.scope[1] for start in here)
            elif one.level is None and target.level == "top" and source.language in _FAMILIES[0]:
                is_taken = _is_plain(one) and not _is_shadowed(one, others, target)  # imported, or the platform's
            else:
                is_taken = one.level is not None
            if is_taken:
                raise Conflict(
                    f"{workspace.show(source.path)}:{one.line} has a {new!r} already", "choose another newName"
                )


def _is_plain(use: IdentifierUse) -> bool:
    """The name of a variable, not of a member, nor of what another file exports: `import { name as other }`."""
    if use.kind in _PROPERTY or use.owner or use.parent in _NAMES_MEMBER or "scoped" in use.parent:
        return False
    is_renamed = use.parent.endswith("port_specifier") and re.match(r"\s+as\b", use.source.text[use.end :])
    is_passed_on = use.parent == "export_specifier"
    return not is_renamed and not is_passed_on


def _sources_of(places: Sequence[IdentifierUse]) -> list[SourceFile]:
    return list({one.source.path: one.source for one in places}.values())


def _replace(
    source: SourceFile, places: Sequence[IdentifierUse], old: str, new: str, workspace: Workspace
) -> PlannedFile:
    text = source.text
    for one in sorted((one for one in places if one.source.path == source.path), key=lambda one: -one.start):
        named = f"{old}: {new}" if one.kind in _SHORTHAND else new
        text = text[: one.start] + named + text[one.end :]
    check_parses(source, text, workspace.show(source.path))
    return planned(source, text)
