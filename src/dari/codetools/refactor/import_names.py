"""Imports of a renamed name, by what they say: `from module import name` is that name, whatever rope makes of it."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator, Sequence

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
    return _apply(text, edits, old), sorted({line for line, _, _ in edits})


def restore_foreign(
    before: str, after: str, module: str, is_package: bool, old: str, new: str, has_new: Callable[[str], bool]
) -> str:
    """The new text, where `from other import old` was renamed and `other` has no such name: `old as new` again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            trees = ast.parse(before), ast.parse(after)
        except (SyntaxError, ValueError, RecursionError):
            return after
    was, now = ([node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)] for tree in trees)
    if len(was) != len(now):
        return after
    edits = [
        (two.lineno, two.col_offset, old if two.asname else f"{old} as {new}")
        for first, second in zip(was, now, strict=True)
        if not has_new(_absolute(second, module, is_package))
        for one, two in zip(first.names, second.names, strict=False)
        if one.name == old and two.name == new
    ]
    return _apply(after, edits, new)


def _apply(text: str, edits: Sequence[Edit], word: str) -> str:
    lines, size = python_lines(text), len(word.encode())
    for line, column, instead in sorted(set(edits), reverse=True):
        row = lines[line - 1].encode()
        if row[column : column + size] == word.encode():
            lines[line - 1] = (row[:column] + instead.encode() + row[column + size :]).decode()
    return "".join(lines)


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
    yield from _fallbacks(tree, module, is_package, target, old, new)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == old and binds_name:
            yield node.lineno, node.col_offset, new
        elif isinstance(node, ast.Attribute) and node.attr == old and _dotted(node.value) in modules:
            assert node.end_lineno is not None and node.end_col_offset is not None
            yield node.end_lineno, node.end_col_offset - len(old.encode()), new


def _fallbacks(tree: ast.Module, module: str, is_package: bool, target: str, old: str, new: str) -> Iterator[Edit]:
    """`except ImportError: from other import old`: the file knows it by the new name, too."""
    for attempt in (node for node in ast.walk(tree) if isinstance(node, ast.Try)):
        tried = [node for node in attempt.body if isinstance(node, ast.ImportFrom)]
        instead = [node for handler in attempt.handlers for node in handler.body if isinstance(node, ast.ImportFrom)]
        for these, those in ((tried, instead), (instead, tried)):
            is_renamed = any(
                _absolute(node, module, is_package) == target and one.asname is None and one.name in (old, new)
                for node in these
                for one in node.names
            )
            for node in those if is_renamed else ():
                if _absolute(node, module, is_package) != target:
                    found = [one for one in node.names if one.name == old and one.asname is None]
                    yield from ((one.lineno, one.col_offset, f"{old} as {new}") for one in found)


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
