"""Type checkers, really run, where the project asks for them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from dari.codetools.lint.diagnostic import Diagnostic
from dari.codetools.types import TypesFound, check_types
from dari.codetools.workspace import Workspace
from tests.support.code_engines import node_project, python_project, require_engine, with_node, with_toolchains
from tests.support.codetools import code_tools


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    yield


async def check(root: Path, files: Mapping[str, str], *paths: str, environ: Mapping[str, str]) -> TypesFound:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    workspace = Workspace([root])
    async with code_tools(root, environ=environ) as tools:
        return await check_types(tools.session, workspace, list(workspace.files(paths)))


def rows(found: list[Diagnostic]) -> list[tuple[str, int, str]]:
    return [(one.path, one.line, one.rule) for one in found]


MYPY = {
    "pyproject.toml": "[tool.mypy]\nstrict = true\nfiles = ['src']\n",
    "src/a.py": "def f(x: int) -> str:\n    return str(x)\n",
    "src/b.py": "from a import f\n\nf('x')\n",
}


async def test_mypy_finds_the_caller_that_a_change_broke(tmp_path: Path) -> None:
    root = python_project(tmp_path / "project", "mypy")
    settings = {**MYPY, "pyproject.toml": MYPY["pyproject.toml"] + "mypy_path = 'src'\n"}
    found = await check(root, settings, "src/a.py", environ=os.environ)
    assert rows(found.diagnostics) == [("src/b.py", 3, "arg-type")]
    assert not found.errors and [use.name for use in found.engines] == ["mypy"]
    assert sorted(os.listdir(root)) == [".venv", "pyproject.toml", "src"], "no cache in the project"


async def test_mypy_without_a_list_of_files_gets_those_that_were_named(tmp_path: Path) -> None:
    root = python_project(tmp_path / "project", "mypy")
    files = {"mypy.ini": "[mypy]\n", "a.py": "x: int = 'a'\n", "b.py": "y: int = 'b'\n", "bad.py": "def (:\n"}
    assert rows((await check(root, files, "a.py", environ=os.environ)).diagnostics) == [("a.py", 1, "assignment")]
    assert ("bad.py", 1, "syntax") in rows((await check(root, {}, "bad.py", environ=os.environ)).diagnostics)


async def test_a_project_that_asks_for_no_checker_has_none(tmp_path: Path) -> None:
    found = await check(tmp_path, {"a.py": "x: int = 'a'\n"}, "a.py", environ=os.environ)
    assert found == TypesFound([], [], [])


async def test_tsc_checks_the_project_and_writes_nothing_into_it(tmp_path: Path) -> None:
    root = tmp_path / "web"
    root.mkdir()
    node_project(root, "tsc")
    files = {
        "tsconfig.json": '{"compilerOptions": {"strict": true, "composite": true, "types": []}, "include": ["*.ts"]}',
        "a.ts": "export const x: number = 1;\n",
        "b.ts": 'import { x } from "./a";\nexport const y: string = x;\n',
    }
    found = await check(root, files, "a.ts", environ=with_node())
    assert rows(found.diagnostics) == [("b.ts", 2, "TS2322")], found.errors
    assert sorted(os.listdir(root)) == ["a.ts", "b.ts", "node_modules", "tsconfig.json"]


async def test_pyright_runs_where_it_is_configured(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    node_project(root, "pyright")
    files = {"pyrightconfig.json": '{"include": ["a.py"]}', "a.py": "x: int = 'a'\n"}
    found = await check(root, files, "a.py", environ=with_node())
    assert rows(found.diagnostics) == [("a.py", 1, "reportAssignmentType")], found.errors


async def test_cargo_check_leaves_the_crate_as_it_is(tmp_path: Path) -> None:
    require_engine("cargo", "cargo")
    files = {
        "Cargo.toml": '[package]\nname = "crate-a"\nversion = "0.1.0"\nedition = "2021"\n',
        "Cargo.lock": 'version = 3\n\n[[package]]\nname = "crate-a"\nversion = "0.1.0"\n',
        "src/lib.rs": 'pub fn f() -> u32 {\n    "a"\n}\n',
    }
    root = tmp_path / "crate"
    root.mkdir()
    found = await check(root, files, "src/lib.rs", environ=with_toolchains())
    assert rows(found.diagnostics) == [("src/lib.rs", 2, "E0308")], found
    assert sorted(os.listdir(root)) == ["Cargo.lock", "Cargo.toml", "src"]


async def test_a_missing_checker_and_one_that_fails_are_said(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / ".venv" / "bin").mkdir(parents=True)
    mypy = root / ".venv" / "bin" / "mypy"
    mypy.write_text("#!/bin/sh\necho no such plugin >&2\nexit 2\n")
    mypy.chmod(0o755)
    files = {"mypy.ini": "", "tsconfig.json": "{}", "a.py": "", "a.ts": ""}
    found = await check(root, files, "a.py", "a.ts", environ={"PATH": "/usr/bin:/bin"})
    said = sorted(error.message for error in found.errors)
    assert said[0] == "mypy: no such plugin"
    assert said[1].startswith("tsc is not installed") and "npm install --save-dev typescript" in said[1]


async def test_reports_that_mypy_is_asked_for_are_not_written_into_the_project(tmp_path: Path) -> None:
    root = python_project(tmp_path / "project", "mypy")
    asked = "junit_xml = 'junit.xml'\nlinecount_report = 'lines'\nany_exprs_report = 'any'\nlineprecision_report='p'\n"
    settings = {**MYPY, "pyproject.toml": f"{MYPY['pyproject.toml']}mypy_path = 'src'\n{asked}"}
    found = await check(root, settings, "src/a.py", environ=os.environ)
    assert rows(found.diagnostics) == [("src/b.py", 3, "arg-type")] and not found.errors
    assert sorted(os.listdir(root)) == [".venv", "pyproject.toml", "src"]
