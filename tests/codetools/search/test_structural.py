"""Mode ast: code by its structure, with what metavariables stand for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dari.codetools.search import structural
from dari.codetools.search.rows import SearchMatch
from dari.errors import InvalidInput
from tests.support.code_searches import ENGINES, PLAIN, search

PYTHON = """\
import os

def run(command, *, timeout=3):
    # print("not me")
    print("é", command)
    return print(
        command,
        timeout,
    )
"""
SCRIPT = "export const run = (a: number) => { console.log(a, 'print(1)'); return fetch(`${a}`) }\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    (root / "src").mkdir()
    (root / "src/run.py").write_text(PYTHON)
    (root / "src/bom.py").write_bytes(b"\xef\xbb\xbf" + b"print(1)\r\nprint(2)\r\n")
    (root / "src/run.ts").write_text(SCRIPT)
    (root / "src/notes.txt").write_text("print(1)\n")
    (root / "src/broken.py").write_text("def (:\n  print(3)\n")
    (root / "src/binary.py").write_bytes(b"print(1)\0\n")
    (root / ".env.py").write_text("print(1)\n")
    return root


def matches(root: Path, pattern: str, **options: Any) -> list[SearchMatch]:
    found = search(root, replace(PLAIN, pattern=pattern, mode="ast", **options)).matches
    assert isinstance(found, list)
    return found


def test_calls_are_found_where_they_are_code(project: Path) -> None:
    found = matches(project, "print($$$ARGS)", paths=("src/run.py",))
    assert [(one.line, one.col) for one in found] == [(5, 5), (6, 12)]
    assert [(one.text.partition("\n")[0], one.meta) for one in found] == [
        ('print("é", command)', {"ARGS": ['"é"', "command"]}),
        ("print(", {"ARGS": ["command", "timeout"]}),
    ]
    assert found[1].end_line == 9


def test_columns_are_characters(project: Path) -> None:
    (found,) = matches(project, "command", paths=("src/run.py",), max_matches=200)[1:2]
    assert (found.line, found.col, found.end_col) == (5, 16, 23)


def test_the_language_is_that_of_the_file_or_the_one_named(project: Path) -> None:
    by_file = {one.path for one in matches(project, "print($A)")}
    assert by_file == {"src/bom.py", "src/broken.py"}
    assert {one.path for one in matches(project, "fetch($URL)", lang="ts")} == {"src/run.ts"}
    assert matches(project, "print($A)", lang="typescript") == []


def test_context_lines_stand_around_a_match(project: Path) -> None:
    (found,) = matches(project, 'print("é", $X)', context=1)
    assert (found.before, found.after) == (['    # print("not me")'], ["    return print("])
    assert found.meta == {"X": "command"}


def test_pages_of_structural_matches_do_not_overlap(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("f(1); f(2); f(f(3))\nf(4)\n")
    (tmp_path / "b.py").write_text("f(5)\n")
    query = replace(PLAIN, pattern="f($A)", mode="ast", max_matches=2)
    texts: list[str] = []
    cursor: str | None = None
    for _ in range(3):
        page = search(tmp_path, query, cursor=cursor)
        assert isinstance(page.matches, list)
        texts += [one.text for one in page.matches]
        cursor = page.cursor if isinstance(page.cursor, str) else None
    assert texts == ["f(1)", "f(2)", "f(f(3))", "f(3)", "f(4)", "f(5)"] and cursor is None


def test_files_and_counts_work_for_structure(project: Path) -> None:
    query = replace(PLAIN, pattern="print($$$)", mode="ast")
    assert search(project, replace(query, output="counts")).counts == {
        "src/bom.py": 2,
        "src/broken.py": 1,
        "src/run.py": 2,
    }


@pytest.mark.parametrize("pattern", ["", "$$$", "a b c", "foo(((", "1 +"])
def test_a_pattern_that_is_no_code_is_refused(project: Path, pattern: str) -> None:
    with pytest.raises(InvalidInput, match="must be code of python"):
        matches(project, pattern, lang="python")


def test_an_unknown_language_is_refused_with_those_there_are(project: Path) -> None:
    with pytest.raises(InvalidInput, match=r"python.*got 'klingon'"):
        matches(project, "x", lang="klingon")


def test_files_too_large_to_parse_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "large.py").write_text("f(1)\n" * 100)
    (tmp_path / "small.py").write_text("f(1)\n")
    monkeypatch.setattr(structural, "MAX_FILE_BYTES", 100)
    found = search(tmp_path, replace(PLAIN, pattern="f($A)", mode="ast"))
    assert isinstance(found.matches, list)
    assert [one.path for one in found.matches] == ["small.py"] and found.stats.skipped == 1


def test_every_language_of_the_table_is_one_that_the_engine_knows(tmp_path: Path) -> None:
    for language, suffixes in structural.LANGUAGES.items():
        (tmp_path / f"file.{suffixes[0]}").write_text("x\n")
        search(tmp_path, replace(PLAIN, pattern="x", mode="ast", lang=language))


@pytest.mark.parametrize(
    "pattern", ["print($$$ARGS)", "$F(command, $$$)", "import os", "$A.$B", "def $NAME($$$): $$$BODY"]
)
def test_structure_is_the_same_with_and_without_ripgrep(project: Path, pattern: str) -> None:
    """With it, only files that hold the longest word of the pattern are read."""
    query = replace(PLAIN, pattern=pattern, mode="ast", include_hidden=True)
    one, other = (search(project, query, engine) for engine in ENGINES)
    assert one.matches == other.matches
