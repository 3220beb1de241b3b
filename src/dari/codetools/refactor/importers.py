"""What other modules do with a symbol that moved: their imports, and attributes of the module that they import."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from msgspec import Struct

from dari.codetools.refactor.python_modules import ModuleMap, loading_imports
from dari.codetools.refactor.scopes import Function, global_uses
from dari.codetools.refactor.text_edits import EditedModule
from dari.codetools.workspace import WorkspacePath
from dari.errors import Conflict


class _Binding(Struct, frozen=True):
    """`name` of the file means the module or package `dotted`."""

    name: str
    dotted: str
    statement: ast.Import | ast.ImportFrom
    alias: ast.alias
    function: Function | None


class _AttributeUse(Struct, frozen=True):
    node: ast.Attribute
    root: ast.Name
    binding: _Binding
    dotted: str


def follow_in(
    module: EditedModule,
    name: str,
    old: WorkspacePath,
    target: WorkspacePath,
    modules: ModuleMap,
    *,
    is_target: bool = False,
) -> bool:
    """Edit the module; whether it loads the new one with itself now. `is_target`: it is the new one."""
    if name not in module.text and "*" not in module.text:
        return False
    path = module.source.path
    loading = set(loading_imports(module.tree.body))
    changed: set[ast.AST] = set()
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.ImportFrom):
            continue
        written = modules.module_of(path, node)
        if modules.find(written) != old:
            continue
        aliases = [one for one in node.names if one.name == name]
        reference = modules.refer(path, target, is_relative=bool(node.level), like=written)
        if aliases and is_target:
            if any(one.asname not in (None, name) for one in aliases):
                raise Conflict(f"{path.relative} imports {name!r} under another name", "rename it there first")
            module.remove_names(node, aliases)
        elif aliases:
            module.take_from(node, aliases, reference)
        elif node.names[0].name == "*" and not is_target and not name.startswith("_"):
            module.add_after(node, f"from {reference} import {name}")
        else:
            continue
        changed.add(node)
    for statement in _follow_attributes(module, name, old, target, modules, is_target):
        changed.add(statement)
    return bool(changed & loading)


def dynamic_uses(module: EditedModule, name: str, old: WorkspacePath, modules: ModuleMap) -> list[int]:
    """Lines such as `setattr(module, "name", …)`, which no edit can follow safely."""
    if f'"{name}"' not in module.text and f"'{name}'" not in module.text:
        return []
    names = {one.name for one in _bindings(module, modules) if modules.find(one.dotted) == old}
    found = []
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call) or len(node.args) < 2:
            continue
        first, second = node.args[:2]
        is_named = isinstance(second, ast.Constant) and second.value == name
        owner = first.attr if isinstance(first, ast.Attribute) else getattr(first, "id", "")
        if is_named and (owner in names or owner == modules.name(old).rpartition(".")[2]):
            found.append(node.lineno)
    return found


def _follow_attributes(
    module: EditedModule, name: str, old: WorkspacePath, target: WorkspacePath, modules: ModuleMap, is_target: bool
) -> Iterator[ast.stmt]:
    uses = list(_attribute_uses(module, name, old, modules))
    for binding in {id(use.binding.alias): use.binding for use in uses}.values():
        mine = [use for use in uses if use.binding.alias is binding.alias]
        statement = binding.statement
        is_plain = isinstance(statement, ast.Import) and not binding.alias.asname
        if is_target:
            for use in mine:
                module.replace(module.start(use.node), module.end(use.node), name)
            continue
        if is_plain:
            owner = modules.refer(module.source.path, target, is_relative=False, like=mine[0].dotted)
            line = f"import {owner}"
        else:
            level = getattr(statement, "level", 0)
            reference = modules.refer(module.source.path, target, is_relative=bool(level), like=mine[0].dotted)
            owner, line = _module_import(module, reference)
        for use in mine:
            module.replace(module.start(use.node), module.end(use.node.value), owner)
        roots = sum(isinstance(node, ast.Name) and node.id == binding.name for node in ast.walk(module.tree))
        is_whole = len(statement.names) == 1 and module.source.path.names[-1] != "__init__.py"
        is_package = is_plain and "." not in binding.alias.name
        if roots == len(mine) and is_whole and not is_package and binding.alias.asname != binding.alias.name:
            module.replace(module.start(statement), module.end(statement), line)
        elif not re.search(rf"^\s*{re.escape(line)}\s*$", module.text, re.MULTILINE):
            module.add_after(statement, line)
        yield statement


def _module_import(module: EditedModule, reference: str) -> tuple[str, str]:
    """The name of the new module in this file, and the statement that imports it."""
    last = reference.rpartition(".")[2]
    head = reference[: len(reference) - len(last)]
    head = head if not head.strip(".") else head.rstrip(".")
    if not head:
        return last, f"import {last}"
    is_taken = re.search(rf"(?<![\w.]){re.escape(last)}\b(?!\s*import)", module.text)
    is_same = re.search(rf"from {re.escape(head)} import {re.escape(last)}$", module.text, re.MULTILINE)
    if is_taken and not is_same:
        return f"{last}_module", f"from {head} import {last} as {last}_module"
    return last, f"from {head} import {last}"


def _attribute_uses(module: EditedModule, name: str, old: WorkspacePath, modules: ModuleMap) -> Iterator[_AttributeUse]:
    bindings = list(_bindings(module, modules))
    outside = {id(use.node) for use in global_uses(module.tree)}
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Attribute) or node.attr != name:
            continue
        parts: list[str] = []
        value: ast.expr = node.value
        while isinstance(value, ast.Attribute):
            parts.insert(0, value.attr)
            value = value.value
        if not isinstance(value, ast.Name):
            continue
        for one in sorted(bindings, key=lambda binding: binding.function is None):
            dotted = ".".join([one.dotted, *parts])
            if one.name == value.id and _is_visible(one, value, outside) and modules.find(dotted) == old:
                yield _AttributeUse(node, value, one, dotted)
                break


def _is_visible(binding: _Binding, root: ast.Name, outside: set[int]) -> bool:
    if binding.function is None:
        return id(root) in outside
    return binding.function.lineno <= root.lineno <= (binding.function.end_lineno or 0)


def _bindings(module: EditedModule, modules: ModuleMap) -> Iterator[_Binding]:
    functions = [node for node in ast.walk(module.tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    for node in ast.walk(module.tree):
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        around = [one for one in functions if one.lineno <= node.lineno <= (one.end_lineno or 0)]
        function = around[-1] if around else None
        for alias in node.names:
            if isinstance(node, ast.Import):
                name = alias.asname or alias.name.split(".")[0]
                yield _Binding(name, alias.name if alias.asname else name, node, alias, function)
            else:
                dotted = f"{modules.module_of(module.source.path, node)}.{alias.name}"
                if modules.find(dotted) is not None:
                    yield _Binding(alias.asname or alias.name, dotted, node, alias, function)
