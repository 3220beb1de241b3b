"""Equal to `rg --json`: on this project's own tree, and on three large packages of its environment."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dari.codetools.search.query import CodeQuery, path_key
from dari.codetools.search.rows import MAX_CONTEXT_CHARS, MAX_LINE_CHARS, MAX_SPANS
from tests.support.code_searches import ENGINES, PLAIN, EngineName, search

RIPGREP = Path(sys.executable).parent / "rg"
PACKAGES = ("mypy", "numpy", "pip")
CASES: list[dict[str, Any]] = [
    {"pattern": "import os"},
    {"pattern": "Error(", "case": "sensitive"},
    {"pattern": "unicode", "case": "insensitive"},
    {"pattern": r"def (test|visit)_\w+\(self", "mode": "regex"},
    {"pattern": r"^\s*(class|def) _?[A-Z]\w+", "mode": "regex"},
    {"pattern": r"\b[A-Z]{12,}\b", "mode": "regex", "case": "sensitive"},
    {"pattern": "raise NotImplementedError", "context": 2},
    {"pattern": "é", "context": 1},
    {"pattern": r"[^\x00-\x7f]", "mode": "regex"},
]


def place_of(name: str) -> Path:
    if name == "this project":
        return Path(__file__).parents[3]
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def by_ripgrep(root: Path, query: CodeQuery) -> tuple[list[tuple[Any, ...]], int]:
    """Rows as ours, made of `rg --json` by another road: json, no limit, sorted afterwards."""
    case = {"smart": "-S", "sensitive": "-s", "insensitive": "-i"}[query.case]
    literal = ["-F"] if query.mode == "literal" else []
    command = [RIPGREP, "--json", "--crlf", case, *literal, f"-C{query.context}", "-e", query.pattern, str(root)]
    printed = subprocess.run(command, capture_output=True, timeout=60)
    assert printed.returncode in (0, 1), printed.stderr
    files: dict[str, list[tuple[Any, ...]]] = {}
    for line in printed.stdout.splitlines():
        event = json.loads(line)
        if event["type"] in ("match", "context"):
            data = event["data"]
            raw = _raw(data["lines"]).removesuffix(b"\n").removesuffix(b"\r")
            spans = [(_chars(raw, one["start"]), _chars(raw, one["end"])) for one in data["submatches"]]
            text = raw.decode("utf-8", "replace")
            files.setdefault(data["path"]["text"], []).append((event["type"], data["line_number"], text, spans))
    rows = [(str(Path(path).relative_to(root)), *row) for path in sorted(files, key=path_key) for row in files[path]]
    return rows, len(files)


def by_us(root: Path, query: CodeQuery, engine: EngineName) -> tuple[list[tuple[Any, ...]], int]:
    rows: list[tuple[Any, ...]] = []
    files: set[str] = set()
    cursor: str | None = None
    while True:
        page = search(root, query, engine, cursor)
        assert isinstance(page.matches, list)
        for one in page.matches:
            files.add(one.path)
            first = one.line - len(one.before)
            rows += [(one.path, "context", first + at, text, []) for at, text in enumerate(one.before)]
            spans = [(one.col, one.end_col), *one.more]
            rows.append((one.path, "match", one.line, one.text, spans))
            rows += [(one.path, "context", one.line + 1 + at, text, []) for at, text in enumerate(one.after)]
        if not page.truncated:
            return rows, len(files)
        assert isinstance(page.cursor, str)
        cursor = page.cursor


def _raw(text: dict[str, str]) -> bytes:
    return text["text"].encode() if "text" in text else b64decode(text["bytes"])


def _chars(raw: bytes, offset: int) -> int:
    return len(raw[:offset].decode("utf-8", "surrogateescape")) + 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["pattern"]))
@pytest.mark.parametrize("place", ["this project", *PACKAGES])
def test_a_search_finds_what_ripgrep_finds(place: str, case: dict[str, Any], engine: EngineName) -> None:
    root = place_of(place)
    query = replace(PLAIN, max_matches=2000, **case)
    expected, expected_files = by_ripgrep(root, query)
    found, files = by_us(root, query, engine)
    assert files == expected_files
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine[:3] == theirs[:3]
        limit = MAX_LINE_CHARS if mine[1] == "match" else MAX_CONTEXT_CHARS
        if len(theirs[3]) <= limit and "\ufffd" not in theirs[3]:
            assert mine[3] == theirs[3]
            if len(theirs[4]) <= MAX_SPANS:
                assert mine[4] == theirs[4]
        elif mine[1] == "match":
            assert mine[4][0] == theirs[4][0]
