"""Against Python's own parser and tokenizer, on the source of Dari."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from dari.syntax.analysis import AnalysisRequest, analyse

SOURCES = sorted((Path(__file__).parents[2] / "src" / "dari").rglob("*.py"))
NAMES = ("self", "Path", "Workspace", "run", "path", "data", "name", "Struct", "errors", "_", "close", "get", "line")


def defined(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, int, int]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name = f"{prefix}.{node.name}" if prefix else node.name
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            yield name, first, node.end_lineno or 0
            yield from defined(node, name)
        else:
            yield from defined(node, prefix)


@pytest.mark.parametrize("part", range(4))
def test_functions_and_classes_are_those_of_the_ast_with_their_lines(part: int) -> None:
    for path in SOURCES[part::4]:
        data = path.read_bytes()
        lines = data.decode().splitlines()
        found = sorted(
            (one.symbol, one.line, _without_comments(lines, one.end_line))
            for one in analyse(AnalysisRequest(data, "python")).symbols
            if one.kind in ("function", "method", "class") and "lambda" not in one.signature.partition("(")[0]
        )
        assert found == sorted(defined(ast.parse(data))), path


def _without_comments(lines: list[str], end: int) -> int:
    """A comment at the end of a body is part of it here, and nothing to the ast."""
    while not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#"):
        end -= 1
    return end


@pytest.mark.parametrize("name", NAMES)
def test_places_of_a_name_are_those_of_the_tokenizer(name: str) -> None:
    for path in SOURCES[::7]:
        data = path.read_bytes()
        if name.encode() not in data:
            continue
        tokens = tokenize.generate_tokens(io.StringIO(data.decode()).readline)
        expected = {
            (one.start[0], one.start[1] + 1) for one in tokens if one.type == tokenize.NAME and one.string == name
        }
        occurrences = analyse(AnalysisRequest(data, "python", name, wants_symbols=False)).occurrences
        found = {(one.line, one.col) for one in occurrences if one.role != "text"}
        # Before Python 3.12 the tokenizer does not look into f-strings.
        inside = {(one.line, one.col) for one in occurrences if one.role != "text" and "{" in one.text}
        assert expected <= found, path
        assert found - expected <= inside, path
