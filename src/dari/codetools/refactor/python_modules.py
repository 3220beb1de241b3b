"""Which file an import means, how one module names another, and which modules import each other when they load."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from dari.codetools.refactor.sources import SourceFile
from dari.codetools.workspace import WorkspacePath


class ModuleMap:
    """The Python files of a workspace by their dotted names."""

    def __init__(self, paths: Iterable[WorkspacePath], base: Path) -> None:
        self._paths = list(dict.fromkeys(paths))
        self._packages = {one.absolute.parent for one in self._paths if one.names[-1] == "__init__.py"}
        self._base = base
        roots = {base, base / "src", *(self._root(one) for one in self._paths)}
        self._by_name: dict[str, WorkspacePath] = {}
        for path in self._paths:
            self._by_name.setdefault(self.name(path), path)
        for root in sorted(roots):
            for path in self._paths:
                if root in path.absolute.parents:
                    self._by_name.setdefault(_dotted(path.absolute, root), path)

    def name(self, path: WorkspacePath) -> str:
        """As it is imported from outside of its package."""
        return _dotted(path.absolute, self._root(path))

    def find(self, name: str) -> WorkspacePath | None:
        return self._by_name.get(name) if name else None

    def _root(self, path: WorkspacePath) -> Path:
        """Above the outermost package; without one `src`, or the folder of the file."""
        outermost = None
        for folder in path.absolute.parents:
            if folder == self._base:
                break
            if folder in self._packages:
                outermost = folder
        if outermost is not None:
            return outermost.parent
        source_root = self._base / "src"
        return source_root if source_root in path.absolute.parents else path.absolute.parent

    def _package(self, path: WorkspacePath) -> list[str]:
        parts = self.name(path).split(".")
        return parts if path.names[-1] == "__init__.py" else parts[:-1]

    def module_of(self, importer: WorkspacePath, node: ast.ImportFrom) -> str:
        """The absolute name after `from`; empty where it leads out of the package."""
        if not node.level:
            return node.module or ""
        package = self._package(importer)
        if node.level - 1 > len(package):
            return ""
        above = package[: len(package) - node.level + 1]
        return ".".join([*above, *([node.module] if node.module else [])])

    def refer(self, importer: WorkspacePath, target: WorkspacePath, *, is_relative: bool, like: str = "") -> str:
        """How `importer` writes `target` after `from`; `like` is the absolute name that it wrote for another module."""
        package, parts = self._package(importer), self.name(target).split(".")
        common = 0
        while common < min(len(package), len(parts)) and package[common] == parts[common]:
            common += 1
        if is_relative and common and self._root(importer) == self._root(target):
            return "." * (len(package) - common + 1) + ".".join(parts[common:])
        neighbour = self.find(like)
        if neighbour is not None and like != self.name(neighbour) and like.endswith(self.name(neighbour)):
            return like.removesuffix(self.name(neighbour)) + self.name(target)
        return self.name(target)

    def edges(self, source: SourceFile, tree: ast.Module) -> set[WorkspacePath]:
        """What the module imports while it is loaded."""
        found: set[WorkspacePath] = set()
        for node in loading_imports(tree.body):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                module = self.module_of(source.path, node)
                names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
            found.update(path for name in names if (path := self.find(name)) is not None)
        return found - {source.path}


def _dotted(path: Path, root: Path) -> str:
    relative = path.relative_to(root).with_suffix("")
    parts = relative.parts[:-1] if relative.parts[-1] == "__init__" and len(relative.parts) > 1 else relative.parts
    return ".".join(parts)


def is_type_checking(node: ast.AST) -> bool:
    if not isinstance(node, ast.If):
        return False
    test = node.test
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def loading_imports(body: Sequence[ast.AST]) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif is_type_checking(node):
            assert isinstance(node, ast.If)
            yield from loading_imports(node.orelse)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for part in ("body", "orelse", "finalbody", "handlers"):
                yield from loading_imports(getattr(node, part, []))


def find_chain(
    start: Iterable[WorkspacePath], goal: WorkspacePath, edges: Mapping[WorkspacePath, set[WorkspacePath]]
) -> list[WorkspacePath]:
    """From one of `start` to `goal` by what each imports while it is loaded; empty where nothing leads there."""
    before: dict[WorkspacePath, WorkspacePath | None] = dict.fromkeys(start)
    waiting = list(before)
    while waiting:
        one = waiting.pop(0)
        if one == goal:
            chain = [one]
            while (previous := before[chain[0]]) is not None:
                chain.insert(0, previous)
            return chain
        for after in sorted(edges.get(one, ())):
            if after not in before:
                before[after] = one
                waiting.append(after)
    return []
