"""Moves a function, class or variable of a Python module into another one, and everything that imports it follows."""

from __future__ import annotations

import ast
import builtins
import os
import re
from collections.abc import Iterator, Sequence

from dari.codetools.edits.undo import hash_content
from dari.codetools.refactor.exports import exported
from dari.codetools.refactor.importers import dynamic_uses, follow_in
from dari.codetools.refactor.jobs import Job, Plan, PlannedFile
from dari.codetools.refactor.mentions import find_dotted
from dari.codetools.refactor.new_imports import Needs, import_lines
from dari.codetools.refactor.python_modules import ModuleMap, find_chain, is_type_checking
from dari.codetools.refactor.python_symbols import Place
from dari.codetools.refactor.scopes import Use, bound_names, global_uses, has_future_annotations
from dari.codetools.refactor.sources import SourceFile, check_parses, language_of, planned
from dari.codetools.refactor.text_edits import EditedModule
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import Conflict, InvalidInput

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign
_MAX_SHOWN = 5


def move_symbol(job: Job, workspace: Workspace, sources: Sequence[SourceFile], place: Place) -> Plan:
    """Raises Conflict where the code could not be loaded afterwards, InvalidInput where it is not such a symbol."""
    return _Move(job, workspace, sources, place).plan()


class _Move:
    def __init__(self, job: Job, workspace: Workspace, sources: Sequence[SourceFile], place: Place) -> None:
        self._workspace = workspace
        self._name = place.name
        self._to = job.to
        self._target = self._check_target(workspace.locate(job.to), place)
        self._old = EditedModule(place.source)
        self._sources = sources
        self._modules: dict[WorkspacePath, EditedModule] = {place.source.path: self._old}
        self._broken: list[str] = []
        for source in sources:
            if source.path not in self._modules:
                try:
                    self._modules[source.path] = EditedModule(source)
                except (SyntaxError, ValueError, RecursionError):
                    self._broken.append(workspace.show(source.path))
        self._map = ModuleMap([*self._modules, self._target], workspace.base)
        self._into = self._modules.get(self._target)
        if self._into is None and self._target.absolute.exists():
            raise Conflict(f"{job.to} does not parse, or is not a file of this workspace", "correct it first")
        self._notes: list[str] = []
        self._nodes = self._definitions(place)

    def _check_target(self, target: WorkspacePath, place: Place) -> WorkspacePath:
        if target.absolute.is_dir() or language_of(target.relative) != "python":
            raise InvalidInput(f"to must be a Python file for a symbol, got {self._to!r}", "for example pkg/new.py")
        if target == place.source.path:
            raise InvalidInput(f"{self._name!r} is in {self._to} already", "name another module")
        return target

    def _definitions(self, place: Place) -> list[_Definition]:
        """Overloads of a function are several."""
        old, name = self._old, self._name
        found = [node for node in old.tree.body if name in _binds(node)]
        inside = [
            node
            for node in found
            if isinstance(node, _Definition)
            and old.line_start(_first_line(node)) <= (place.offset or 0) <= old.end(node)
        ]
        if not inside or not self._is_named_at(inside[0], place):
            raise InvalidInput(
                f"{name!r} of {self._show(old)} is not a function, class or variable of the module itself",
                "a method moves with its class; name the definition: symbol {name: package.module.name}",
            )
        if len(found) > 1 and not all(isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) for one in found):
            raise Conflict(f"{self._show(old)} defines {name!r} {len(found)} times", "move it by hand")
        nodes = [one for one in found if isinstance(one, _Definition)]
        if any(not old.is_alone(one) for one in nodes) or any(len(_binds(one)) > 1 for one in nodes):
            raise Conflict(f"the lines of {name!r} hold other code, too", "put it on lines of its own first")
        for use in self._left_uses(nodes):
            if use.is_store:
                raise Conflict(f"{self._show(old)} assigns {name!r} in other places, too", "move it by hand")
        for node in ast.walk(old.tree):
            if isinstance(node, ast.Global) and name in node.names:
                raise Conflict(
                    f"line {node.lineno} of {self._show(old)} changes the global {name!r}", "move it by hand"
                )
        return nodes

    def _is_named_at(self, node: _Definition, place: Place) -> bool:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            return True
        head = self._old.text[self._old.start(node) : self._old.start(node.body[0])]
        return place.offset is not None and place.offset <= self._old.start(node) + len(head)

    def _left_uses(self, nodes: Sequence[_Definition]) -> list[Use]:
        """Uses of the name in the old module, besides those in what moves."""
        return [
            use
            for use in global_uses(self._old.tree)
            if use.name == self._name and not self._is_moving(use.node, nodes)
        ]

    def _is_moving(self, node: ast.AST, nodes: Sequence[_Definition]) -> bool:
        return any(_first_line(one) <= getattr(node, "lineno", 0) <= (one.end_lineno or 0) for one in nodes)

    def plan(self) -> Plan:
        pieces = list(self._take_out())
        code = "\n\n\n".join(text for text, _ in pieces)
        needs = self._needs(code)
        edges = {path: self._map.edges(one.source, one.tree) for path, one in self._modules.items()}
        known = {path: set(found) for path, found in edges.items()}
        edges.setdefault(self._target, set()).update(needs.modules())
        self._check_globals(needs)
        code = self._keep_old_module(code, needs, edges)
        self._exports()
        self._drop_unused(needs)
        edges[self._old.source.path] = self._map.edges(self._old.source, ast.parse(self._old.result()))
        code = self._avoid_circles(code, needs, edges, known)
        for path, module in self._modules.items():
            if path in (self._old.source.path, self._target):
                continue
            loads = follow_in(module, self._name, self._old.source.path, self._target, self._map)
            for line in dynamic_uses(module, self._name, self._old.source.path, self._map):
                self._notes.append(f"{self._show(module)}:{line} names {self._name!r} in a string: check it")
            if loads:
                edges[path].add(self._target)
                self._check_cycle(path, edges, known)
        new = self._new_text(code, needs)
        return self._to_plan(new)

    def _take_out(self) -> Iterator[tuple[str, _Definition]]:
        old = self._old
        for node in self._nodes:
            first, last = _comment_start(old.rows, _first_line(node)), node.end_lineno or 0
            following = next((one for one in old.tree.body if one.lineno > last), None)
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and _is_docstring(following) and following is not None:
                last = following.end_lineno or last
            text = "\n".join(old.rows[first - 1 : last])
            end = last
            while end < len(old.rows) and not old.rows[end].strip():
                end += 1
            if end >= len(old.rows):  # the last of the file: the blank lines before it go
                while first > 1 and not old.rows[first - 2].strip():
                    first -= 1
                old.replace(old.line_start(first), len(old.text), "")
            else:
                gap = "\n" if first > 1 and old.rows[first - 2].startswith("#") else ""  # after the head of the file
                old.replace(old.line_start(first), old.line_start(end + 1), gap)
            yield text, node

    def _needs(self, code: str) -> Needs:
        """What the code uses of the names of its old module."""
        is_lazy = has_future_annotations(self._old.tree)
        uses = [
            use
            for use in global_uses(ast.parse(code), lazy_annotations=is_lazy)
            if use.name != self._name and not use.is_store
        ]
        needs = Needs(self._old, self._target, self._into, self._map, self._workspace)
        for name in dict.fromkeys(use.name for use in uses):
            if not needs.add(name, {use.when for use in uses if use.name == name}) and not hasattr(builtins, name):
                self._notes.append(f"{name!r} is not defined in {self._show(self._old)}: check it in {self._to}")
        return needs

    def _keep_old_module(self, code: str, needs: Needs, edges: dict[WorkspacePath, set[WorkspacePath]]) -> str:
        """Import the name where the old module still uses it, without a circle of imports; the code that moves."""
        old, path = self._old, self._old.source.path
        uses = self._left_uses(self._nodes)
        is_package = path.names[-1] == "__init__.py" and not self._name.startswith("_")
        if not uses and not is_package:
            return code
        module = self._map.refer(path, self._target, is_relative=needs.is_relative)
        line = f"from {module} import {self._name}"
        chain = find_chain([self._target], path, edges)
        if is_package:
            # Loading the new module loads its package first: there the place of the definition is safe.
            shown = f"{line} as {self._name}" if not uses and not list(exported(old.tree, self._name)) else line
            at = old.line_start(_first_line(self._nodes[0]))
            if chain and any(use.name and not self._is_before(use.name) for use in needs.of_old()):
                raise Conflict(f"{self._to} would need names that {self._show(old)} defines later", "move them, too")
            if chain:
                old.replace_removed(at, shown)
            else:
                _add_import(old, shown)
            return code
        if not chain:
            _add_import(old, line)
            edges[path].add(self._target)
            return code
        if all(use.when != "loading" for use in uses):
            self._import_later(old, uses, line)
            return code
        direct = {one.name for one in needs.of_old()}
        without = edges[self._target] - {path}
        if direct and needs.are_later(direct) and not find_chain(without, path, edges):
            edges[self._target].discard(path)
            _add_import(old, line)
            return needs.import_inside(code, direct)
        raise Conflict(
            f"{self._show(old)} and {self._to} would import each other while they load: {self._shown_chain(chain)}",
            f"move {', '.join(sorted(direct)) or 'what it uses'} first, or choose another module",
        )

    def _check_globals(self, needs: Needs) -> None:
        """A variable that a function changes would have a value in each of the two modules."""
        moving: dict[str, int] = {}
        staying: dict[str, int] = {}
        for node in ast.walk(self._old.tree):
            if isinstance(node, ast.Global):
                (moving if self._is_moving(node, self._nodes) else staying).update(
                    dict.fromkeys(node.names, node.lineno)
                )
        needed = {one.name for one in needs.of_old()} | set(moving)
        uses = [use for use in global_uses(self._old.tree) if not self._is_moving(use.node, self._nodes)]
        read = {use.name for use in uses if not use.is_store}
        shared = {name: line for name, line in staying.items() if name in needed}
        shared |= {name: line for name, line in moving.items() if name in read}
        for name, line in shared.items():
            raise Conflict(
                f"line {line} of {self._show(self._old)} changes the global {name!r}, which code that stays and "
                f"{self._name!r} share",
                "move it by hand, or let functions of one module get and set it",
            )

    def _avoid_circles(
        self,
        code: str,
        needs: Needs,
        edges: dict[WorkspacePath, set[WorkspacePath]],
        known: dict[WorkspacePath, set[WorkspacePath]],
    ) -> str:
        """What the code needs may load the module that it goes to: then functions import it, or this is refused."""
        old, target = self._old.source.path, self._target
        # A package is loaded before the modules in it, whoever imports it.
        packages = {
            one for one in edges if one.names[-1] == "__init__.py" and one.absolute.parent in target.absolute.parents
        }
        loads = {path: found - packages for path, found in edges.items()}
        before = {path: found - packages for path, found in known.items()}
        for module in sorted(edges[target] & needs.modules() - packages):
            chain = find_chain([module], target, loads)
            if not chain or find_chain([target], module, before):
                continue
            names = {one.name for one in needs.of_old()}
            if module == old and needs.are_later(names):
                edges[target].discard(old)
                code = needs.import_inside(code, names)
                continue
            raise Conflict(
                f"{self._to} would import {self._workspace.show(module)}, which loads it: {self._shown_chain(chain)}",
                f"move {', '.join(sorted(names)) if module == old else 'what it uses'} first, or choose another module",
            )
        return code

    def _is_before(self, name: str) -> bool:
        first = self._nodes[0].lineno
        return any(name in _binds(node) and node.lineno < first for node in self._old.tree.body)

    def _import_later(self, old: EditedModule, uses: Sequence[Use], line: str) -> None:
        functions = {use.function for use in uses if use.when == "later" and use.function is not None}
        for function in functions:
            first = function.body[1] if _is_docstring(function.body[0]) and len(function.body) > 1 else function.body[0]
            at = _first_line(first)
            if at <= function.lineno:
                raise Conflict(f"line {at} of {self._show(old)} would need an import inside", "change it by hand")
            indent = old.rows[at - 1][: len(old.rows[at - 1]) - len(old.rows[at - 1].lstrip())]
            old.replace(old.line_start(at), old.line_start(at), f"{indent}{line}\n")
        if any(use.when == "typing" for use in uses):
            block = next((node for node in old.tree.body if isinstance(node, ast.If) and _is_typing(node)), None)
            if block is not None:
                old.add_after(block.body[-1], line)
            else:
                _add_import(old, f"from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    {line}")
        if functions:
            self._notes.append(f"{self._show(old)} imports {self._name!r} inside functions: each would load the other")

    def _exports(self) -> None:
        """`__all__` of the old module, and of a module that exists already."""
        old = self._old
        self._was_exported = False
        if old.source.path.names[-1] == "__init__.py":
            return
        for node in ast.walk(old.tree):
            items = getattr(node, "elts", [])
            for at, item in enumerate(items):
                if item in exported(old.tree, self._name):
                    old.remove_items(items, [at])
                    self._was_exported = True

    def _check_cycle(
        self,
        path: WorkspacePath,
        edges: dict[WorkspacePath, set[WorkspacePath]],
        known: dict[WorkspacePath, set[WorkspacePath]],
    ) -> None:
        chain = find_chain([self._target], path, edges)
        if not chain:
            return
        if find_chain([self._old.source.path], path, known):
            note = f"circular import as before: {self._shown_chain(chain)}; run the tests"
            self._notes += [] if any(one.startswith("circular") for one in self._notes) else [note]
            return
        raise Conflict(
            f"{self._workspace.show(path)} uses {self._name!r}, and {self._to} loads it: {self._shown_chain(chain)}",
            "choose another module for it",
        )

    def _shown_chain(self, chain: Sequence[WorkspacePath]) -> str:
        return " → ".join(self._workspace.show(one) for one in chain)

    def _new_text(self, code: str, needs: Needs) -> str | None:
        """Of a module that is made; None where the code went into one that exists."""
        lines = import_lines(needs)
        if self._into is None:
            head = "from __future__ import annotations\n\n" if has_future_annotations(self._old.tree) else ""
            names = f'__all__ = ["{self._name}"]\n\n' if self._was_exported else ""
            gap = "" if isinstance(self._nodes[0], (ast.Assign, ast.AnnAssign)) or not (lines or names) else "\n"
            return f"{head}{lines}{chr(10) if lines else ''}{names}{gap}{code}\n".replace("\n\n\n\n", "\n\n\n")
        into = self._into
        bound = {name for node in into.tree.body for name in _binds(node)}
        if self._name in bound:
            raise Conflict(f"{self._to} has a {self._name!r} already", "rename one of them first")
        follow_in(into, self._name, self._old.source.path, self._target, self._map, is_target=True)
        if lines:
            _add_import(into, lines.rstrip("\n"))
        if self._was_exported:
            self._export_in(into)
        user = next((node for node in into.tree.body if self._loads(node)), None)
        if user is not None:
            at = into.line_start(_first_line(user))
            into.replace(at, at, f"{code}\n\n\n")
        else:
            end = len(into.text)
            kept = into.text.rstrip("\n")
            into.replace(len(kept), end, f"{chr(10) * 3 if kept else ''}{code}\n")
        return None

    def _loads(self, node: ast.stmt) -> bool:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return False
        uses = global_uses(ast.Module([node], []))
        return any(use.name == self._name and use.when == "loading" for use in uses)

    def _export_in(self, into: EditedModule) -> None:
        for node in into.tree.body:
            is_all = isinstance(node, ast.Assign) and any(getattr(one, "id", "") == "__all__" for one in node.targets)
            items = getattr(getattr(node, "value", None), "elts", None) if is_all else None
            if items:
                indent = into.rows[items[-1].lineno - 1][: items[-1].col_offset]
                gap = f",\n{indent}" if not indent.strip() and items[-1].lineno != node.lineno else ", "
                into.replace(into.end(items[-1]), into.end(items[-1]), f'{gap}"{self._name}"')

    def _drop_unused(self, needs: Needs) -> None:
        """Imports of the old module that only the moved code used, unless another module takes them from here."""
        old = self._old
        if old.source.path.names[-1] == "__init__.py":
            return
        left = {use.name for use in global_uses(ast.parse(old.result()))}
        stem = self._map.name(old.source.path).rpartition(".")[2]
        unused: dict[int, tuple[ast.Import | ast.ImportFrom, list[ast.alias]]] = {}
        for name, statement, alias in needs.imported():
            is_mentioned = re.compile(rf"\b{re.escape(stem)}\s*\.\s*{re.escape(name)}\b")
            if name in left or list(exported(old.tree, name)) or self._is_taken(name):
                continue
            if alias.asname == alias.name or "noqa" in old.rows[alias.lineno - 1]:
                continue
            if not any(is_mentioned.search(source.text) for source in self._sources):
                unused.setdefault(id(statement), (statement, []))[1].append(alias)
        for statement, aliases in unused.values():
            old.remove_names(statement, aliases)

    def _is_taken(self, name: str) -> bool:
        names = {name} if "__all__" in bound_names(self._old.tree.body) or name.startswith("_") else {name, "*"}
        return any(
            isinstance(node, ast.ImportFrom)
            and any(one.name in names for one in node.names)
            and self._map.find(self._map.module_of(path, node)) == self._old.source.path
            for path, module in self._modules.items()
            for node in ast.walk(module.tree)
        )

    def _to_plan(self, new: str | None) -> Plan:
        files, texts = [], {}
        for module in self._modules.values():
            plain = module.result()
            if plain == module.text:
                continue
            text = module.source.with_plain(plain)
            check_parses(module.source, text, self._show(module))
            texts[module.source.path] = text
            files.append(planned(module.source, text))
        if new is not None:
            ast.parse(new)
            texts[self._target] = new
            line_end = "\r\n" if "\r\n" in self._old.source.text else "\n"
            data = new.replace("\n", line_end).encode()  # the coding line stays in the old module
            files.append(PlannedFile(os.fsencode(self._target.absolute), hash_content(None), data))
        names = {self._map.name(self._old.source.path)}
        if mentions := find_dotted(names, self._name, self._workspace, texts):
            shown = ", ".join(mentions[:_MAX_SHOWN]) + (" …" if len(mentions) > _MAX_SHOWN else "")
            self._notes.append(f"{len(mentions)} mentions of its old place in strings and documents are left ({shown})")
        if self._broken:
            self._notes.append(f"files that do not parse were not looked into: {', '.join(self._broken[:_MAX_SHOWN])}")
        return Plan(files, self._notes, "ast", f"move {self._name} to {self._to}")

    def _show(self, module: EditedModule) -> str:
        return self._workspace.show(module.source.path)


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


def _comment_start(rows: Sequence[str], first: int) -> int:
    """The first line of the comment above a definition. One that begins the file is its head, and stays there."""
    start = first
    while start > 1 and rows[start - 2].startswith("#"):
        start -= 1
    return start if any(row.strip() for row in rows[: start - 1]) else first


def _binds(node: ast.stmt) -> set[str]:
    return set() if isinstance(node, (ast.Import, ast.ImportFrom)) else bound_names([node])


def _is_docstring(node: ast.stmt | None) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_typing(node: ast.If) -> bool:
    return is_type_checking(node)


def _add_import(module: EditedModule, lines: str) -> None:
    anchor = _import_anchor(module.tree)
    if anchor is None:
        at = len(module.text) - len(re.sub(r"\A(?:#.*\n)*", "", module.text))
        module.replace(at, at, f"{lines}\n\n")
    else:
        module.add_after(anchor, lines if not _is_docstring(anchor) else f"\n{lines}")


def _import_anchor(tree: ast.Module) -> ast.stmt | None:
    """The last import of the first ones; the docstring where there is none."""
    anchor: ast.stmt | None = None
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)) or (anchor is None and _is_docstring(node)):
            anchor = node
        elif not isinstance(node, (ast.If, ast.Try)):
            break
    return anchor
