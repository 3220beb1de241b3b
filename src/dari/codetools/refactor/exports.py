"""`__all__` and the names of a module: strings that rope does not know to be names."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dari.codetools.refactor.sources import python_lines


def module_names(text: str) -> set[str]:
    """What the module binds at its top level, as far as it can be read."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return set()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update((one.asname or one.name).split(".")[0] for one in node.names)
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found.update(one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


def rename_in_all(text: str, old: str, new: str) -> str:
    """The text with the name in `__all__` renamed, where the module has the new name now and no longer the old one."""
    if "__all__" not in text:
        return text
    names = module_names(text)
    if new not in names or old in names:
        return text
    lines = python_lines(text)
    for node in sorted(exported(ast.parse(text), old), key=lambda one: (one.lineno, one.col_offset), reverse=True):
        row = lines[node.lineno - 1].encode()
        assert node.end_col_offset is not None
        literal = row[node.col_offset : node.end_col_offset].decode()
        if node.end_lineno == node.lineno and literal.count(old) == 1:
            changed = literal.replace(old, new).encode()
            lines[node.lineno - 1] = (row[: node.col_offset] + changed + row[node.end_col_offset :]).decode()
    return "".join(lines)


def exported(tree: ast.Module, name: str) -> Iterator[ast.Constant]:
    """The name as it is written in `__all__`, wherever the module adds to it."""
    for node in tree.body:
        value: ast.AST | None = None
        if isinstance(node, ast.Assign):
            value = node.value if any(_is_all(target) for target in node.targets) else None
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            value = node.value if _is_all(node.target) else None
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function = node.value.func
            value = node.value if isinstance(function, ast.Attribute) and _is_all(function.value) else None
        for one in ast.walk(value) if value is not None else ():
            if isinstance(one, ast.Constant) and one.value == name:
                yield one


def _is_all(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "__all__"
