"""What a search refuses, and says."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from msgspec.structs import replace

from dari.codetools.search.ripgrep import explain
from dari.errors import DariError, Denied, InvalidInput, NotFound
from tests.support.code_searches import ENGINES, PLAIN, EngineName, rows, search

# pattern, the character that is wrong (from 1), a word of the reason
WRONG = [
    ("foo(", 4, "unclosed group"),
    ("(?:a", 1, "unclosed group"),
    ("a)", 2, "unopened group"),
    ("*a", 1, "repetition operator missing expression"),
    ("a|*", 3, "repetition operator missing expression"),
    ("{", 1, "repetition operator missing expression"),
    ("a{2", 2, "unclosed counted repetition"),
    ("a{2,1}", 2, "invalid repetition count range"),
    ("[z-a]", 2, "invalid character class range"),
    ("[a", 1, "unclosed character class"),
    (r"\q", 1, "unrecognized escape sequence"),
    (r"x\p{Foo}", 2, "Unicode property not found"),
    ("(?=x)", 1, "look-around"),
    ("(?<!x)y", 1, "look-around"),
    (r"(a)\1", 4, "backreference"),
    (r"a\nb", 2, "not allowed"),
    ("(?z)", 3, "unrecognized flag"),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("pattern", "place", "reason"), WRONG)
def test_a_wrong_expression_is_refused_with_its_place(
    tmp_path: Path, engine: EngineName, pattern: str, place: int, reason: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        search(tmp_path, replace(PLAIN, pattern=pattern, mode="regex"), engine)
    assert f"at character {place}:" in refused.value.message
    assert reason in refused.value.message and refused.value.hint
    # As plain text it is a pattern like any other.
    assert rows(tmp_path, replace(PLAIN, pattern=pattern), engine) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("pattern", ["two\nlines", "carriage\rreturn"])
def test_a_pattern_of_two_lines_is_refused(tmp_path: Path, engine: EngineName, pattern: str) -> None:
    with pytest.raises(InvalidInput, match="line by line"):
        search(tmp_path, replace(PLAIN, pattern=pattern), engine)


@pytest.mark.parametrize("pattern", ["(?x)a b", "(?U)a+", "(?-u)a", "a{2000}"])
def test_what_only_ripgrep_knows_is_refused_without_it(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(InvalidInput, match="needs ripgrep"):
        search(tmp_path, replace(PLAIN, pattern=pattern, mode="regex"), "python")
    assert search(tmp_path, replace(PLAIN, pattern=pattern, mode="regex"), "ripgrep").matches == []


def test_a_pattern_that_takes_for_ever_is_stopped_without_ripgrep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("x" * 5000 + "\n")
    monkeypatch.setattr("dari.codetools.search.line_search.SEARCH_S", 0.2)
    query = replace(PLAIN, pattern="(x+x+)+y", mode="regex")
    with pytest.raises(InvalidInput, match="too slow"):
        search(tmp_path, query, "python")
    assert search(tmp_path, query, "ripgrep").matches == []


def test_an_expression_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="size limit"):
        search(tmp_path, replace(PLAIN, pattern=r"\w{9000}{9000}", mode="regex"))


def test_a_nul_in_the_pattern_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="NUL"):
        search(tmp_path, replace(PLAIN, pattern="a\0b"))


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("missing", NotFound),
        ("missing/*.py", NotFound),
        ("../outside", Denied),
        ("/etc/passwd", Denied),
        ("link", Denied),
        (".git", Denied),
        (".git/config", Denied),
        (".git/*", Denied),
        ("a\0b", InvalidInput),
        ("*.{" + ",".join(map(str, range(300))) + "}", InvalidInput),
    ],
)
def test_paths_outside_and_paths_of_git_are_refused(tmp_path: Path, path: str, error: type[DariError]) -> None:
    root = tmp_path / "root"
    (root / ".git").mkdir(parents=True)
    (root / ".git/config").write_text("needle")
    (tmp_path / "outside").mkdir()
    (root / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(error):
        search(root, replace(PLAIN, pattern="needle", paths=(path,)))


@pytest.mark.parametrize("engine", ENGINES)
def test_names_and_patterns_like_options_are_data(tmp_path: Path, engine: EngineName) -> None:
    (tmp_path / "--pre=touch").write_text("--files\n-rf\n")
    (tmp_path / "-rf").mkdir()
    (tmp_path / "-rf/x.txt").write_text("--files\n")
    for paths in ((".",), ("--pre=touch", "-rf"), ("-rf/*", "--pre=touch")):
        found = rows(tmp_path, replace(PLAIN, pattern="--files", paths=paths), engine)
        assert [row[0] for row in found] == ["--pre=touch", "-rf/x.txt"]
    globs = replace(PLAIN, pattern="-rf", globs=("--pre=*", "!-x"))
    assert [row[0] for row in rows(tmp_path, globs, engine)] == ["--pre=touch"]


def test_settings_of_ripgrep_do_not_change_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("needle\n")
    config = tmp_path / "config"
    config.write_text("--invert-match\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(config))
    assert [row[0] for row in rows(tmp_path, replace(PLAIN, pattern="needle"))] == ["a.txt"]


def test_a_ripgrep_of_the_project_is_not_run(tmp_path: Path) -> None:
    for folder in (".venv/bin", "node_modules/.bin"):
        program = tmp_path / folder / "rg"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\ntouch ran\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "a.txt").write_text("needle\n")
    assert len(rows(tmp_path, replace(PLAIN, pattern="needle"))) == 1
    assert not list(tmp_path.rglob("ran"))


def test_other_faults_of_ripgrep_keep_their_words() -> None:
    assert "something odd" in explain("x", "rg: something odd\n").message
