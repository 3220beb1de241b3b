"""Imports of a renamed name, by what they say: `from module import name` is that name, whatever rope makes of it."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from dari.codetools.refactor.sources import python_lines

Edit = tuple[int, int, str]
"""Line from 1, column in bytes, and what stands there instead of the old name."""


def rename_imported(text: str, module: str, is_package: bool, target: str, old: str, new: str) -> tuple[str, list[int]]:
    """The text of a module with every import of `old` from the module `target` renamed, and the lines that changed.

    The names that such an import binds follow, and so do `target.old` and `alias.old`. Where the file binds the old
    name in another way too, the import keeps it: `from target import new as old`.
    """
    if old not in text:
        return text, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            return text, []
    edits = list(_edits(tree, module, is_package, target, old, new))
    lines = python_lines(text)
    for line, column, instead in sorted(set(edits), reverse=True):
        row = lines[line - 1].encode()
        if row[column : column + len(old.encode())] == old.encode():
            lines[line - 1] = (row[:column] + instead.encode() + row[column + len(old.encode()) :]).decode()
    return "".join(lines), sorted({line for line, _, _ in edits})


def _edits(tree: ast.Module, module: str, is_package: bool, target: str, old: str, new: str) -> Iterator[Edit]:
    binds_name = False
    modules: set[str] = set()
    is_shadowed = _binds(tree, old)
    # Uses that rope has renamed already need the new name.
    has_new = any(isinstance(node, ast.Name) and node.id == new for node in ast.walk(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules.update(one.asname or one.name for one in node.names if one.name == target)
        elif isinstance(node, ast.ImportFrom):
            source = _absolute(node, module, is_package)
            for one in node.names:
                if source == target and one.name == old:
                    keeps = is_shadowed and not has_new and one.asname is None
                    binds_name = binds_name or (one.asname is None and not is_shadowed)
                    yield one.lineno, one.col_offset, f"{new} as {old}" if keeps else new
                elif f"{source}.{one.name}" == target:
                    modules.add(one.asname or one.name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == old and binds_name:
            yield node.lineno, node.col_offset, new
        elif isinstance(node, ast.Attribute) and node.attr == old and _dotted(node.value) in modules:
            assert node.end_lineno is not None and node.end_col_offset is not None
            yield node.end_lineno, node.end_col_offset - len(old.encode()), new


def _binds(tree: ast.Module, name: str) -> bool:
    """Whether something other than an import gives the name a value."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, ast.arg) and node.arg == name:
            return True
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name:
            return True
    return False


def _absolute(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    """The module that `from …` names, from the top."""
    if not node.level:
        return node.module or ""
    package = module.split(".") if is_package else module.split(".")[:-1]
    above = package[: len(package) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return f"{_dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""
