"""Which framework runs where: project files, environments, several projects in one workspace."""

from __future__ import annotations

import base64
import hashlib
import os
import sys
from pathlib import Path

import pytest

from dari.codetools.testing.projects import find_others, group_targets
from dari.codetools.testing.pythons import find_pythons
from dari.codetools.testing.request import Target
from dari.codetools.workspace import Workspace
from dari.errors import Denied, Unavailable
from tests.support.code_engines import with_node
from tests.support.tested_projects import run, write

PASSING = "def test_one():\n    pass\n"


def groups(folder: Path, *names: str) -> list[tuple[str, str, list[str]]]:
    """Language, project and targets, relative to the folder."""

    def relative(path: Path) -> str:
        return os.path.relpath(path, folder)

    found = group_targets(Workspace([folder]), [Target(folder / name) for name in names], None)
    return [(one.language, relative(one.project), [relative(target.path) for target in one.targets]) for one in found]


def test_the_nearest_project_file_decides(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": "",
        "tests/test_a.py": PASSING,
        "packages/b/pyproject.toml": "",
        "packages/b/tests/test_b.py": PASSING,
        "web/package.json": '{"devDependencies": {"vitest": "1"}}',
        "web/src/a.test.ts": "",
        "tools/go.mod": "module x\n",
        "tools/a_test.go": "",
        "native/Cargo.toml": "",
        "native/src/lib.rs": "",
    }
    write(tmp_path, files)
    assert groups(tmp_path) == [("python", ".", [])]
    assert groups(tmp_path, "tests/test_a.py") == [("python", ".", ["tests/test_a.py"])]
    assert groups(tmp_path, "packages/b") == [("python", "packages/b", [])]
    assert groups(tmp_path, "web/src/a.test.ts", "tools", "native/src/lib.rs", "tests") == [
        ("node", "web", ["web/src/a.test.ts"]),
        ("go", "tools", []),
        ("rust", "native", ["native/src/lib.rs"]),
        ("python", ".", ["tests"]),
    ]
    workspace = Workspace([tmp_path])
    others = find_others(workspace, group_targets(workspace, [], None))
    assert [one.name for one in others] == ["native", "tools", "web"]


def test_without_a_project_file_above_each_project_below_is_run(tmp_path: Path) -> None:
    write(tmp_path, {"a/pyproject.toml": "", "a/test_a.py": PASSING, "b/setup.py": "", "b/t/test_b.py": PASSING})
    assert groups(tmp_path) == [("python", "a", []), ("python", "b", [])]
    report = run(tmp_path)
    assert (report["framework"], report["passed"], report["collected"]) == ("pytest", 2, 2)


def test_a_package_file_for_a_formatter_makes_no_javascript_project(tmp_path: Path) -> None:
    write(tmp_path, {"package.json": '{"devDependencies": {"prettier": "3"}}', "setup.cfg": "", "test_a.py": PASSING})
    assert groups(tmp_path) == [("python", ".", [])]


def test_a_project_with_another_runner_says_which(tmp_path: Path) -> None:
    write(tmp_path, {"package.json": '{"scripts": {"test": "mocha"}}', "a.test.js": ""})
    with pytest.raises(Unavailable, match="mocha"):
        run(tmp_path, targets=["a.test.js"], environ=with_node())


def test_a_folder_of_a_project_as_root_runs_only_its_tests(tmp_path: Path) -> None:
    write(tmp_path, {"pyproject.toml": "", "tests/a/test_a.py": PASSING, "tests/b/test_b.py": PASSING})
    assert run(tmp_path, root="tests/a")["collected"] == 1


@pytest.mark.parametrize("target", ["../other", "/etc", "link"])
def test_what_is_outside_of_the_workspace_is_refused(tmp_path: Path, target: str) -> None:
    write(tmp_path, {"project/test_a.py": PASSING, "other/test_b.py": PASSING})
    (tmp_path / "project" / "link").symlink_to(tmp_path / "other")
    with pytest.raises(Denied):
        run(tmp_path / "project", targets=[target])


def test_two_frameworks_in_one_call_are_one_result(tmp_path: Path) -> None:
    write(tmp_path, {"test_a.py": PASSING, "more/test_b.py": "def test_b():\n    assert 0\n"})
    write(tmp_path, {"pyproject.toml": "", "more/setup.py": ""})
    report = run(tmp_path, targets=["test_a.py", "more"])
    assert (report["passed"], report["failed"], report["collected"]) == (1, 1, 2)


def make_environment(folder: Path) -> Path:
    """What a virtual environment looks like: its Python is ours."""
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text("include-system-site-packages = false\n")
    (folder / "bin" / "python").symlink_to(sys.executable)
    return folder


def found_in(folder: Path, **environ: str) -> list[tuple[str, str]]:
    found = find_pythons(Workspace([folder]), folder, {"PATH": "/nowhere", "HOME": "/nowhere", **environ})
    return [(str(Path(one.program).parent.parent), one.origin) for one in found]


def test_the_projects_environment_wins_over_the_callers(tmp_path: Path) -> None:
    project = write(tmp_path / "project", {"pyproject.toml": '[tool.poetry]\nname = "My App"\n'})
    own, caller = make_environment(project / ".venv"), make_environment(tmp_path / "caller")
    digest = base64.urlsafe_b64encode(hashlib.sha256(os.fsencode(project)).digest()).decode()[:8]
    poetry = make_environment(tmp_path / "cache" / "virtualenvs" / f"my_app-{digest}-py3.11")
    found = found_in(project, VIRTUAL_ENV=str(caller), POETRY_CACHE_DIR=str(tmp_path / "cache"))
    assert found[:3] == [(str(own), "project"), (str(poetry), "project"), (str(caller), "caller")]
    assert found[-1][1] == "dari"


def test_an_environment_that_uv_is_told_to_use_is_found(tmp_path: Path) -> None:
    named = make_environment(tmp_path / "elsewhere")
    assert found_in(tmp_path, UV_PROJECT_ENVIRONMENT="elsewhere")[0] == (str(named), "project")


def test_a_run_whose_imports_fail_says_whose_python_it_was_where_the_project_has_none(tmp_path: Path) -> None:
    environ = {"PATH": "/usr/bin:/bin", "HOME": os.environ["HOME"]}
    write(tmp_path, {"pytest.ini": "[pytest]\n", "test_a.py": PASSING})
    report = run(tmp_path, environ=environ)
    assert (report["passed"], report.get("notes")) == (1, None)
    write(tmp_path, {"test_b.py": "import a_dependency_of_the_project\n"})
    report = run(tmp_path, environ=environ)
    assert "no virtual environment with pytest" in " ".join(report["notes"])
