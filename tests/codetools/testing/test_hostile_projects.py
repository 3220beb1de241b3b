"""Files of a project and words of its tests that would stop the server: pipes, huge texts, slow patterns."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dari.codetools.edits.undo import UndoStore
from dari.codetools.roots import fixed_roots
from dari.codetools.session import CodeSession
from dari.codetools.testing.go_run import _module_name, _names_of
from dari.codetools.testing.node_run import _NodeRun
from dari.codetools.testing.projects import read_package
from dari.codetools.testing.pythons import Python, find_pythons, has_module
from dari.codetools.testing.report import MAX_ALL_ID_CHARS, MAX_ID_CHARS, RunLog
from dari.codetools.testing.request import Framework, RunRequest, Target
from dari.codetools.testing.touching.imports import _aliases_in
from dari.codetools.workspace import Workspace
from dari.errors import InvalidInput
from dari.process.children import Children
from tests.support.codetools import code_tools


def request(folder: Path, framework: Framework, *targets: Target, keyword: str = "") -> RunRequest:
    session = CodeSession(fixed_roots([folder]), {}, Children(), UndoStore())
    return RunRequest(session, Workspace([folder]), framework, folder, 10.0, targets, keyword=keyword)


def make_pipes(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(folder / name)
    return folder


def test_nobody_waits_at_a_pipe_that_has_the_name_of_a_projects_file(tmp_path: Path) -> None:
    names = ("pyproject.toml", "setup.cfg", "tox.ini", "package.json", "go.mod", "tsconfig.json", "pyvenv.cfg")
    make_pipes(tmp_path, *names)
    assert read_package(tmp_path) == {}
    assert _module_name(tmp_path) == ""
    assert _aliases_in(str(tmp_path)) == []
    assert has_module(Python(str(tmp_path / "bin/python"), "project"), "pytest") is None
    assert list(find_pythons(Workspace([tmp_path]), tmp_path, {"PATH": ""}))


@pytest.mark.parametrize("text", ["tool = 1\n", "project = 1\n[tool]\npoetry = 1\n", "x = " + "[" * 100_000])
def test_a_pyproject_of_another_shape_is_not_poetrys(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    (tmp_path / "poetry.lock").touch()
    assert list(find_pythons(Workspace([tmp_path]), tmp_path, {"PATH": ""}))


def test_a_failure_of_a_megabyte_of_line_ends_is_read_at_once(tmp_path: Path) -> None:
    log = RunLog()
    text = "\n" * 1_000_000 + "end"
    event = {"event": "end", "outcome": "failed", "path": "a.test.js", "name": "x", "messages": [text]}
    _NodeRun(request(tmp_path, "jest"), log)._event(event)
    assert [one.message for one in log.failures.values()] == ["failed"]


@pytest.mark.parametrize("framework", ["go", "jest"])
def test_a_keyword_that_backtracks_for_ever_stops_nothing(tmp_path: Path, framework: Framework) -> None:
    name = "Test" + "a" * 60 + "!"
    asked = request(tmp_path, framework, Target(tmp_path, name), keyword="(a+a+)+$")
    if framework == "go":
        assert _names_of(asked)
    else:
        log = RunLog()
        _NodeRun(asked, log)._event({"event": "end", "outcome": "skipped", "path": "a.test.js", "name": name})
        assert not log.has_failed


def test_names_without_end_are_counted_and_not_all_remembered() -> None:
    log = RunLog()
    for number in range(2 * MAX_ALL_ID_CHARS // 9000):
        log.start(f"{number}:" + "x" * 9000)
        log.finish(f"{number}:" + "x" * 9000, "passed")
    log.start("y" * (MAX_ID_CHARS + 1))
    assert sum(map(len, log.seen_ids)) <= MAX_ALL_ID_CHARS
    assert log.report(max_failures=1, max_tokens=100).passed == 2 * MAX_ALL_ID_CHARS // 9000


async def test_a_keyword_with_nul_is_refused(tmp_path: Path) -> None:
    async with code_tools(tmp_path) as tools:
        with pytest.raises(InvalidInput):
            await tools.call("test", keyword="a\0")
