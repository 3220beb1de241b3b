"""crewx_tools_check: one call that says what to do first."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from dari.codetools.check.steps import order_steps
from dari.codetools.lint.diagnostic import Diagnostic
from dari.codetools.testing.report import FailedTest
from dari.errors import InvalidInput
from tests.support.code_engines import python_project
from tests.support.codetools import code_tools

SETTINGS = """\
[tool.ruff.lint]
select = ["E", "F"]
[tool.mypy]
files = ["shop.py"]
[tool.pytest.ini_options]
testpaths = ["."]
"""
SHOP = "def price(count: int) -> int:\n    return count * 3\n"
TEST = "from shop import price\n\n\ndef test_price() -> None:\n    assert price(2) == 6\n"


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def git(root: Path, *arguments: str) -> None:
    names = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *names, *arguments], cwd=root, check=True, capture_output=True, timeout=30)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A committed project with ruff, mypy and pytest that has nothing to complain about."""
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    root = tmp_path / "project"
    root.mkdir()
    python_project(root, "ruff", "mypy", "python", "pytest")
    write(root, {"pyproject.toml": SETTINGS, "shop.py": SHOP, "test_shop.py": TEST, ".gitignore": ".venv\n"})
    git(root, "init", "-q", ".")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return root


async def test_an_unchanged_tree_has_nothing_to_do(project: Path) -> None:
    async with code_tools(project) as tools:
        result = await tools.call("check")
    assert result == {
        "ok": True,
        "next": [],
        "counts": {},
        "files": 0,
        "engines": [],
        "notes": ["no file changed since HEAD"],
    }


async def test_a_good_change_is_ok_with_all_engines_named(project: Path) -> None:
    write(project, {"shop.py": SHOP + "\n\ndef total(count: int) -> int:\n    return price(count)\n"})
    async with code_tools(project) as tools:
        result = await tools.call("check")
    assert result["ok"] and result["next"] == [] and "errors" not in result, result
    assert {use["name"] for use in result["engines"]} == {"ruff", "mypy"}
    assert (result["tests"]["passed"], result["tests"]["failed"]) == (1, 0)


async def test_only_the_tests_that_touch_the_change_run(project: Path) -> None:
    write(
        project, {"other.py": "X = 1\n", "test_other.py": "import other\n\n\ndef test_x():\n    assert other.X == 2\n"}
    )
    git(project, "add", ".")
    git(project, "commit", "-qm", "a failing test of something else")
    write(project, {"shop.py": SHOP + "\n\nCURRENCY = 'EUR'\n"})
    async with code_tools(project) as tools:
        result = await tools.call("check", only=["tests"])
    assert result["ok"] and result["tests"]["passed"] == 1, result


async def test_not_all_tests_run_where_none_touches_the_change(project: Path) -> None:
    write(project, {"alone.py": "X = 1\n", "README.md": "# Shop\n"})
    async with code_tools(project) as tools:
        alone = await tools.call("check", paths=["alone.py"], only=["tests"])
        words = await tools.call("check", paths=["README.md"], only=["tests"])
    for result in (alone, words):
        assert result["ok"] and "tests" not in result
        assert result["notes"][0].startswith("tests were not run: no ")


async def test_what_is_wrong_comes_in_the_order_in_which_to_repair_it(project: Path) -> None:
    bad = "import os\nfrom math import *\n\ndef price(count: int) -> int:\n  return str(count * 4)\n"
    write(project, {"shop.py": bad})
    async with code_tools(project) as tools:
        result = await tools.call("check")
    kinds = [step["kind"] for step in result["next"]]
    assert not result["ok"] and kinds == sorted(kinds, key=["syntax", "type", "test", "lint", "format"].index)
    assert result["counts"] == {"type": 1, "test": 1, "lint": 2, "format": 1}, result["next"]
    by_kind = {step["kind"]: step for step in result["next"]}
    assert (by_kind["type"]["path"], by_kind["type"]["line"]) == ("shop.py", 5)
    assert "test_price" in by_kind["test"]["message"] and "assert" in by_kind["test"]["detail"]
    (fixes,) = [step for step in result["next"] if step["kind"] == "lint" and "do" in step]
    assert fixes["do"] == 'crewx_tools_lint {"paths":["shop.py"],"fix":"safe","dryRun":false}'
    assert by_kind["format"]["do"] == 'crewx_tools_format {"paths":["shop.py"],"dryRun":false}'


async def test_a_file_that_does_not_parse_comes_alone_and_once(project: Path) -> None:
    write(project, {"shop.py": "def price(:\n    pass\n"})
    async with code_tools(project) as tools:
        result = await tools.call("check")
    assert [(step["kind"], step["path"], step["line"]) for step in result["next"]][:1] == [("syntax", "shop.py", 1)]
    assert [step["line"] for step in result["next"] if step["kind"] == "syntax"].count(1) == 1
    assert "tests were not run: a file does not parse" in result.get("notes", []) or "tests" in result


async def test_what_could_not_be_run_is_not_ok_where_the_project_asks_for_it(project: Path, tmp_path: Path) -> None:
    write(project, {"a.ts": "", "b.js": "let a;\n"})
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").symlink_to(shutil.which("git") or "git")
    async with code_tools(project, environ={**os.environ, "PATH": str(tmp_path / "bin")}) as tools:
        stray = await tools.call("check", only=["format"])
        write(project, {"tsconfig.json": "{}"})
        asked = await tools.call("check", paths=["a.ts"], only=["types"])
        assert {message for _, _, message in tools.caller.told} >= {"format done", "types done"}
    assert stray["ok"] and stray["errors"][0]["optional"]
    assert not asked["ok"] and "tsc is not installed" in asked["errors"][0]["message"]


async def test_new_files_count_as_changed_and_ignored_ones_do_not(project: Path) -> None:
    write(project, {"extra.py": "import os\n", "left.py": "import os\n", ".gitignore": ".venv\nleft.py\n"})
    async with code_tools(project) as tools:
        result = await tools.call("check", only=["lint"])
        named = await tools.call("check", paths=["left.py"], only=["lint"])
    assert result["files"] == 2 and "extra.py" in result["next"][0]["do"]
    assert "left.py" in named["next"][0]["do"]
    assert "tests" not in result


async def test_since_names_a_commit_and_nothing_else(project: Path) -> None:
    write(project, {"shop.py": SHOP + "import os\n"})
    git(project, "commit", "-qam", "second")
    async with code_tools(project) as tools:
        now = await tools.call("check", only=["lint"])
        before = await tools.call("check", only=["lint"], since="HEAD~1")
        assert (now["files"], before["files"]) == (0, 1)
        recent = await tools.call("check", only=["lint"], since="1 hour ago")
        assert recent["files"] >= 1
        for wrong in ("--output=x", "nonsense", " ", "HEAD --output=x"):
            with pytest.raises(InvalidInput):
                await tools.call("check", since=wrong)
        with pytest.raises(InvalidInput):
            await tools.call("check", since="HEAD", paths=["."])
    assert not (project / "x").exists()


async def test_a_folder_without_git_needs_paths(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    async with code_tools(
        tmp_path / "project", environ={**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path)}
    ) as tools:
        with pytest.raises(InvalidInput, match="no git repository"):
            await tools.call("check")


async def test_programs_that_a_repository_configures_for_git_are_not_run(project: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    for name in ("core.fsmonitor", "diff.external", "core.pager"):
        git(project, "config", name, str(trap))
    write(project, {"shop.py": SHOP + "\n"})
    async with code_tools(project) as tools:
        await tools.call("check", only=["lint"])
    assert not (tmp_path / "sprung").exists()


def test_steps_in_changed_files_come_first_and_errors_before_warnings() -> None:
    def one(path: str, line: int, rule: str, severity: str = "error") -> Diagnostic:
        return Diagnostic(path, line, 1, rule, severity, f"{rule} in {path}")  # type: ignore[arg-type]

    steps = order_steps(
        {"b.py"},
        lint=[
            one("a.go", 3, "compile"),
            one("b.py", 1, "W1", "warning"),
            one("b.py", 2, "E1"),
            one("c.py", 1, "syntax"),
        ],
        types=[one("a.py", 1, "arg-type"), one("b.py", 9, "arg-type"), one("c.py", 1, "syntax")],
        failures=[FailedTest("test_b.py::test_x", "no", "test_b.py", 4)],
        unformatted=["b.py"],
    )
    assert [(step.kind, step.path, step.line) for step in steps] == [
        ("syntax", "c.py", 1),
        ("type", "b.py", 9),
        ("type", "a.go", 3),
        ("type", "a.py", 1),
        ("test", "test_b.py", 4),
        ("lint", "b.py", 2),
        ("lint", "b.py", 1),
        ("format", "", 0),
    ]
