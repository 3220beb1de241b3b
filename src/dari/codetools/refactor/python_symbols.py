"""Definitions of Python files by their dotted names, and the place of a name."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from dari.codetools.refactor.jobs import Symbol
from dari.codetools.refactor.sources import SourceFile
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import Conflict, InvalidInput, NotFound

_WORD = re.compile(r"[^\W\d]\w*")
_HEADER = re.compile(r"(?:async\s+def|def|class)\s+")
_MAX_SHOWN = 8


_Node = ast.expr | ast.stmt | ast.arg
_Named = tuple[str, _Node, bool]


class PythonDefinition(Struct, frozen=True):
    """`offset` is in the text with plain line ends."""

    name: str
    path: WorkspacePath
    line: int
    offset: int
    is_argument: bool = False


class Place(Struct, frozen=True):
    """An identifier of a file; without an offset the module itself."""

    source: SourceFile
    offset: int | None
    name: str


def find_place(symbol: Symbol, sources: Sequence[SourceFile], workspace: Workspace) -> Place:
    if symbol.name:
        return _by_name(symbol.name, sources, workspace)
    path = workspace.locate(symbol.path)
    source = next((one for one in sources if one.path == path), None)
    if source is None:
        raise NotFound(f"{symbol.path} is not a Python file of this workspace", "check the path")
    if not symbol.line:
        return Place(source, None, module_name(path, workspace))
    offset = locate_word(source.plain, symbol.line, symbol.col, lambda: _defined_on(source, symbol.line, workspace))
    return Place(source, offset, _word_at(source.plain, offset))


def locate_word(text: str, line: int, col: int, defined: object, word_of: re.Pattern[str] = _WORD) -> int:
    """The offset of the identifier at a line and column; without a column, of the one that is defined there."""
    lines = text.split("\n")
    if line > len(lines):
        raise InvalidInput(f"line {line} is after the end: the file has {len(lines)} lines", "check the line")
    start = sum(len(row) + 1 for row in lines[: line - 1])
    words = [(found.start(), found.end(), found[0]) for found in word_of.finditer(lines[line - 1])]
    if not col:
        offsets: list[int] = defined() if callable(defined) else []
        if len(offsets) == 1:
            return offsets[0]
        shown = ", ".join(f"{word} at col {first + 1}" for first, _, word in words[:_MAX_SHOWN])
        raise InvalidInput(f"line {line} does not define one symbol", f"name col: {shown or 'the line has no name'}")
    for first, last, _ in words:
        if first <= col - 1 < last or (col - 1 == last):
            return start + first
    raise InvalidInput(f"there is no name at line {line}, col {col}: {lines[line - 1].strip()[:80]!r}", "check col")


def _word_at(text: str, offset: int) -> str:
    found = _WORD.match(text, offset)
    return found[0] if found else ""


def _defined_on(source: SourceFile, line: int, workspace: Workspace) -> list[int]:
    found = [one.offset for one in definitions(source, workspace) if one.line == line and not one.is_argument]
    return sorted(set(found))


def _by_name(name: str, sources: Sequence[SourceFile], workspace: Workspace) -> Place:
    last = name.rpartition(".")[2]
    found: list[tuple[PythonDefinition, SourceFile]] = []
    word = re.compile(rf"\b{re.escape(last)}\b")
    for source in sources:
        if not word.search(source.text):
            continue
        for one in definitions(source, workspace):
            if (one.name == name or one.name.endswith(f".{name}")) and ("." in name or not one.is_argument):
                found.append((one, source))
    exact = [pair for pair in found if pair[0].name == name]
    found = exact or [pair for pair in found if not pair[0].is_argument] or found
    # Overloads, property setters and branches of an `if` are one symbol under one name in one file.
    groups = {(one.path, one.name): (one, source) for one, source in reversed(found)}
    if len(groups) == 1:
        one, source = next(iter(groups.values()))
        return Place(source, one.offset, last)
    if groups:
        shown = ", ".join(
            f"{one.name} ({workspace.show(one.path)}:{one.line})" for one, _ in list(groups.values())[:_MAX_SHOWN]
        )
        raise Conflict(f"{name!r} has {len(groups)} definitions: {shown}", "name it in full, or give path and line")
    modules = [one for one in sources if _is_module(module_name(one.path, workspace), name)]
    if len(modules) == 1:
        return Place(modules[0], None, module_name(modules[0].path, workspace))
    raise NotFound(f"no definition of {name!r} in the Python files of this workspace", "crewx_tools_search finds names")


def _is_module(module: str, name: str) -> bool:
    return module == name or module.endswith(f".{name}")


def module_name(path: WorkspacePath, workspace: Workspace) -> str:
    """As it is imported when `src` and the base are on the path."""
    relative = workspace.show(path)
    relative = relative.removeprefix("src/") if not relative.startswith("/") else path.relative
    return relative.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def definitions(source: SourceFile, workspace: Workspace) -> Iterator[PythonDefinition]:
    """Functions, classes, variables of modules and classes, attributes set on self, and (marked) arguments."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source.plain)
        except (SyntaxError, ValueError, RecursionError):
            return
    text = source.plain
    starts = [0]
    for row in text.split("\n"):
        starts.append(starts[-1] + len(row) + 1)
    lines = text.split("\n")

    def offset_of(line: int, byte: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:byte].decode("utf-8", "ignore"))

    for name, node, is_argument in _walk(tree.body, module_name(source.path, workspace), "", False):
        offset = offset_of(node.lineno, node.col_offset)
        short = name.rpartition(".")[2]
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found = _HEADER.match(text, offset)
            offset = found.end() if found else offset
        elif isinstance(node, ast.Attribute):
            assert node.end_lineno is not None and node.end_col_offset is not None
            offset = offset_of(node.end_lineno, node.end_col_offset) - len(short)
        yield PythonDefinition(name, source.path, text.count("\n", 0, offset) + 1, offset, is_argument)


def _walk(body: Iterable[ast.AST], prefix: str, owner: str, is_local: bool) -> Iterator[_Named]:
    """`owner` is the dotted name of the class whose methods these are, for attributes of self."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            name = f"{prefix}.{node.name}"
            yield name, node, is_local
            arguments = node.args
            for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                if argument.arg not in ("self", "cls"):
                    yield f"{name}.{argument.arg}", argument, True
            if owner:
                yield from _of_self(node, owner)
            yield from _walk(node.body, name, "", True)
        elif isinstance(node, ast.ClassDef):
            name = f"{prefix}.{node.name}"
            yield name, node, is_local
            yield from _walk(node.body, name, name, is_local)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for one in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                    if isinstance(one, ast.Name):
                        yield f"{prefix}.{one.id}", one, is_local
        elif isinstance(node, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
            for part in ("body", "orelse", "finalbody"):
                yield from _walk(getattr(node, part, []), prefix, owner, is_local)
            for handler in getattr(node, "handlers", []):
                yield from _walk(handler.body, prefix, owner, is_local)


def _of_self(function: ast.FunctionDef | ast.AsyncFunctionDef, owner: str) -> Iterator[_Named]:
    for node in ast.walk(function):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        ):
            yield f"{owner}.{node.attr}", node, False
