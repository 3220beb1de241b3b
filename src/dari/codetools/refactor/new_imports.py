"""The imports that moved code needs in its new module, taken from those of its old one."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from dari.codetools.refactor.python_modules import ModuleMap, is_type_checking
from dari.codetools.refactor.scopes import When, bound_names, global_uses
from dari.codetools.refactor.text_edits import EditedModule
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import Conflict

MAX_LINE_CHARS = 88
Origin = Literal["import", "typing", "branch", "old"]


class Needed(Struct, frozen=True):
    name: str
    origin: Origin
    """An import, one for type checkers alone, one in an `if` or `try`, or the old module itself."""
    when: frozenset[When]
    statement: ast.stmt
    alias: ast.alias | None = None


class Needs:
    def __init__(
        self,
        old: EditedModule,
        target: WorkspacePath,
        into: EditedModule | None,
        modules: ModuleMap,
        workspace: Workspace,
    ) -> None:
        self.old, self.target, self.into, self.map = old, target, into, modules
        self._workspace = workspace
        self._bound = _bindings(old.tree)
        self._known = _bindings(into.tree) if into is not None else {}
        self.items: dict[str, Needed] = {}
        self._in_target: list[Needed] = []
        """What the new module has already."""
        self.typing_test = ""
        self.is_relative = self._uses_relative_imports()

    def _uses_relative_imports(self) -> bool:
        """Whether the old module names its neighbours by dots."""
        top = self.map.name(self.old.source.path).split(".")[0]
        found = [node for node in ast.walk(self.old.tree) if isinstance(node, ast.ImportFrom)]
        if any(node.level for node in found):
            return True
        return not any((node.module or "").split(".")[0] == top for node in found)

    def add(self, name: str, when: Iterable[When]) -> bool:
        """False where the old module does not bind it."""
        binding = self._bound.get(name)
        if binding is None:
            return False
        origin, statement, alias = binding
        if name in self._known:
            if not self._is_same(binding, self._known[name]):
                shown = self._workspace.show(self.target)
                raise Conflict(f"{shown} has another {name!r} than the moved code uses", "rename one of them first")
            if self._known[name][0] != "typing" or origin == "typing":
                self._in_target.append(Needed(name, origin, frozenset(when), statement, alias))
                return True
        if origin == "branch" and not _is_pure(statement):
            origin = "old"
        self.items[name] = Needed(name, origin, frozenset(when), statement, alias)
        if origin == "typing" and isinstance(statement, ast.If):
            self.typing_test = self.old.segment(statement.test)
        if origin in ("typing", "branch") and isinstance(statement, (ast.If, ast.Try)):
            tests = [statement.test] if isinstance(statement, ast.If) else []
            for use in global_uses(ast.Module([ast.Expr(one) for one in tests], [])):
                if use.name not in self.items:
                    self.add(use.name, ["loading"])
        return True

    def _is_same(self, one: _Binding, other: _Binding) -> bool:
        def meaning(binding: _Binding, path: WorkspacePath) -> tuple[str, str]:
            _, statement, alias = binding
            node = _import_of(statement, alias)
            if alias is None:
                return self.map.name(path), ""
            if isinstance(node, ast.ImportFrom):
                return self.map.module_of(path, node), alias.name
            return alias.name, ""

        mine = meaning(one, self.old.source.path)
        theirs = meaning(other, self.target)
        if other[2] is None:  # the new module defines what the old one imports
            return mine[0] == self.map.name(self.target)
        return mine == theirs or (one[2] is None and theirs[0] == self.map.name(self.old.source.path))

    def of_old(self) -> list[Needed]:
        return [one for one in self.items.values() if one.origin == "old"]

    def imported(self) -> list[tuple[str, ast.Import | ast.ImportFrom, ast.alias]]:
        """Imports of the old module that the code uses, whether the new one needs or has them."""
        found = []
        for one in (*self.items.values(), *self._in_target):
            node = _import_of(one.statement, one.alias) if one.origin in ("import", "typing") else None
            if node is not None and one.alias is not None:
                found.append((one.name, node, one.alias))
        return found

    def are_later(self, names: Iterable[str]) -> bool:
        return all("loading" not in self.items[name].when for name in names)

    def modules(self) -> set[WorkspacePath]:
        """What the new module loads for it."""
        found = set()
        for one in self.items.values():
            node = _import_of(one.statement, one.alias)
            if one.origin == "old":
                found.add(self.old.source.path)
            elif one.origin != "typing" and node is not None and one.alias is not None:
                name = one.alias.name
                if isinstance(node, ast.ImportFrom):
                    module = self.map.module_of(self.old.source.path, node)
                    name = f"{module}.{name}" if self.map.find(f"{module}.{name}") else module
                path = self.map.find(name)
                found |= {path} if path is not None else set()
        return found - {self.target}

    def import_inside(self, code: str, names: Iterable[str]) -> str:
        """The code with these names of the old module imported in the functions that use them."""
        rows = code.split("\n")
        wanted = set(names)
        places: dict[int, set[str]] = {}
        for use in global_uses(ast.parse(code)):
            if use.name in wanted and use.function is not None:
                body = use.function.body
                is_documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
                first = body[1] if is_documented and len(body) > 1 else body[0]
                if first.lineno == use.function.lineno:
                    raise Conflict("a function on one line would need an import inside", "write it on lines of its own")
                places.setdefault(first.lineno, set()).add(use.name)
        module = self.map.refer(self.target, self.old.source.path, is_relative=self.is_relative)
        for line in sorted(places, reverse=True):
            indent = rows[line - 1][: len(rows[line - 1]) - len(rows[line - 1].lstrip())]
            rows.insert(line - 1, f"{indent}from {module} import {', '.join(sorted(places[line]))}")
        for name in wanted:
            if self.items[name].when <= {"later"}:
                del self.items[name]
        return "\n".join(rows)


_Binding = tuple[Origin, ast.stmt, ast.alias | None]


def _bindings(tree: ast.Module) -> dict[str, _Binding]:
    found: dict[str, _Binding] = {}

    def add_imports(node: ast.stmt, origin: Origin, owner: ast.stmt) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom)) and getattr(node, "module", "") != "__future__":
            for alias in node.names:
                found.setdefault(alias.asname or alias.name.split(".")[0], (origin, owner, alias))

    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            add_imports(node, "import", node)
            continue
        if is_type_checking(node):
            assert isinstance(node, ast.If)
            for one in node.body:
                add_imports(one, "typing", node)
        elif isinstance(node, (ast.If, ast.Try)):
            for inner in ast.walk(node):
                if isinstance(inner, (ast.Import, ast.ImportFrom)):
                    add_imports(inner, "branch", node)
        for name in bound_names([node]):
            found.setdefault(name, ("old", node, None))
    return found


def _import_of(statement: ast.stmt, alias: ast.alias | None) -> ast.Import | ast.ImportFrom | None:
    for node in ast.walk(statement):
        if isinstance(node, (ast.Import, ast.ImportFrom)) and alias in node.names:
            return node
    return None


def _is_pure(statement: ast.AST) -> bool:
    """Imports alone, in all branches, none of them relative."""
    for part in ("body", "orelse", "finalbody"):
        for node in getattr(statement, part, []):
            if isinstance(node, (ast.If, ast.Try)):
                if not _is_pure(node):
                    return False
            elif not isinstance(node, (ast.Import, ast.ImportFrom)) or bool(getattr(node, "level", False)):
                return False
    return all(_is_pure(handler) for handler in getattr(statement, "handlers", []))


def import_lines(needs: Needs) -> str:
    """In the order and the style of the old module; its neighbours last, those for type checkers after them."""
    old = needs.old
    outer: list[tuple[int, str, str]] = []
    own: dict[str, list[str]] = {}
    typing: list[str] = []
    blocks: dict[int, str] = {}
    for one in needs.items.values():
        node = _import_of(one.statement, one.alias)
        if one.origin == "old" or one.alias is None or node is None:
            module = needs.map.refer(needs.target, old.source.path, is_relative=needs.is_relative)
            own.setdefault(module, []).append(one.name)
        elif one.origin == "branch":
            blocks[one.statement.lineno] = old.segment(one.statement)
        else:
            written = old.segment(one.alias)
            module = _module(needs, node)
            if one.origin == "typing":
                typing.append(f"from {module} import {written}" if module else f"import {written}")
            elif isinstance(node, ast.ImportFrom) and node.level:
                own.setdefault(module, []).append(written)
            else:
                outer.append((node.lineno, module, written))
    is_single = _is_single_line(old.tree)
    text, last = "", 0
    lines: dict[tuple[int, str], list[str]] = {}
    for line, module, written in sorted(outer):
        lines.setdefault((line, module), []).append(written)
    for (line, module), names in lines.items():
        is_apart = last and any(not row.strip() for row in old.rows[last - 1 : line - 1])
        text += ("\n" if is_apart else "") + _write(module, names, is_single)
        last = line
    for line in sorted(blocks):
        text += f"\n{blocks[line]}\n" if text else f"{blocks[line]}\n"
    if own:
        text += "\n" if text else ""
        text += "".join(_write(module, own[module], is_single) for module in sorted(own, key=_by_depth))
    if typing:
        text += "\n" if text else ""
        text += f"if {needs.typing_test}:\n" + "".join(f"    {one}\n" for one in sorted(typing))
    return text


def _module(needs: Needs, node: ast.Import | ast.ImportFrom) -> str:
    if isinstance(node, ast.Import):
        return ""
    if not node.level:
        return node.module or ""
    name = needs.map.module_of(needs.old.source.path, node)
    path = needs.map.find(name)
    return name if path is None else needs.map.refer(needs.target, path, is_relative=True)


def _by_depth(module: str) -> tuple[int, str]:
    return -(len(module) - len(module.lstrip("."))), module


def _is_single_line(tree: ast.Module) -> bool:
    """One name a line, as `force-single-line` of isort writes them."""
    modules = [(one.level, one.module) for one in tree.body if isinstance(one, ast.ImportFrom)]
    is_joined = any(isinstance(one, ast.ImportFrom) and len(one.names) > 1 for one in tree.body)
    return not is_joined and len(set(modules)) < len(modules)


def _write(module: str, names: list[str], is_single: bool) -> str:
    if not module:
        return "".join(f"import {one}\n" for one in names)
    if is_single:
        return "".join(f"from {module} import {one}\n" for one in sorted(names))
    line = f"from {module} import {', '.join(sorted(names))}\n"
    if len(line) <= MAX_LINE_CHARS:
        return line
    return f"from {module} import (\n" + "".join(f"    {one},\n" for one in sorted(names)) + ")\n"
