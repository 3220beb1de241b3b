"""What an annotation says of a name: rope looks at values, and typed code says more than that."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

_OWNER = re.compile(r"(?:^|[^\w.)\]])(self\.)?([^\W\d]\w*)\s*\.\s*$")


def is_annotated(text: str, start: int, class_name: str) -> bool:
    """Whether the attribute at `start` is of a name that is annotated with the class: `x.attribute` with `x: Class`."""
    found = _OWNER.search(text[max(0, start - 200) : start])
    tree = _parse(text)
    if found is None or tree is None:
        return False
    line = text.count("\n", 0, start) + 1
    names = _of_class(tree, line) if found[1] else _of_scope(tree, line)
    annotation = names.get(found[2])
    return annotation is not None and re.search(rf"\b{re.escape(class_name)}\b", annotation) is not None


@lru_cache(maxsize=8)
def _parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _around(tree: ast.Module, line: int, *kinds: type[ast.AST]) -> list[ast.AST]:
    """Outermost first."""
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, kinds) and getattr(node, "lineno", 0) <= line <= (getattr(node, "end_lineno", 0) or 0)
    ]
    return sorted(found, key=lambda node: getattr(node, "lineno", 0))


def _of_scope(tree: ast.Module, line: int) -> dict[str, str]:
    """Arguments and variables of the functions around; an inner one hides an outer one."""
    names: dict[str, str] = {}
    for function in (tree, *_around(tree, line, ast.FunctionDef, ast.AsyncFunctionDef)):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            arguments = function.args
            for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                names.pop(one.arg, None)
                if one.annotation is not None:
                    names[one.arg] = ast.unparse(one.annotation)
        for node in getattr(function, "body", []):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names[node.target.id] = ast.unparse(node.annotation)
    return names


def _of_class(tree: ast.Module, line: int) -> dict[str, str]:
    """Fields of the class around, and what `__init__` keeps of its annotated arguments."""
    names: dict[str, str] = {}
    for outer in _around(tree, line, ast.ClassDef):
        for node in ast.walk(outer):
            if isinstance(node, ast.AnnAssign):
                target = node.target
                name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
                names[name] = ast.unparse(node.annotation)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                names |= _kept(node)
    return names


def _kept(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
    given = {one.arg: one.annotation for one in (*function.args.args, *function.args.kwonlyargs)}
    names: dict[str, str] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            annotation = given.get(node.value.id)
            for target in node.targets:
                if isinstance(target, ast.Attribute) and annotation is not None:
                    names[target.attr] = ast.unparse(annotation)
    return names
