"""The frameworks, by name: which one a project uses, and the function that runs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from dari.codetools.engines.locate import find_engine, project_folders
from dari.codetools.session import CodeSession
from dari.codetools.testing.cargo_run import run_cargo
from dari.codetools.testing.go_run import run_go
from dari.codetools.testing.node_run import run_jest, run_vitest
from dari.codetools.testing.projects import ProjectTargets, node_frameworks, read_package
from dari.codetools.testing.pytest_run import has_pytest, run_pytest
from dari.codetools.testing.pythons import find_pythons
from dari.codetools.testing.report import RunLog
from dari.codetools.testing.request import Framework, RunRequest
from dari.codetools.testing.unittest_run import run_unittest
from dari.codetools.workspace import Workspace
from dari.errors import Unavailable
from dari.paths import read_regular

_MAX_READ_BYTES = 1 << 20
_RUNNERS: Mapping[Framework, Callable[[RunRequest, RunLog], Awaitable[None]]] = {
    "pytest": run_pytest,
    "vitest": run_vitest,
    "jest": run_jest,
    "go": run_go,
    "cargo": run_cargo,
    "unittest": run_unittest,
}


async def run_framework(request: RunRequest, log: RunLog) -> None:
    """Unavailable with the install command where the framework is missing."""
    await _RUNNERS[request.framework](request, log)


async def choose_framework(
    session: CodeSession, workspace: Workspace, group: ProjectTargets, wanted: Framework | None
) -> Framework:
    if wanted is not None:
        return wanted
    match group.language:
        case "go":
            return "go"
        case "rust":
            return "cargo"
        case "node":
            return _choose_node(session, workspace, group)
        case "python":
            return await _choose_python(session, workspace, group)


async def _choose_python(session: CodeSession, workspace: Workspace, group: ProjectTargets) -> Framework:
    """pytest, unless the project's own environment does without it and none of its files speaks of it."""
    if _speaks_of_pytest(group.project):
        return "pytest"
    for python in find_pythons(workspace, group.project, session.environ):
        has_it = await has_pytest(session, group.project, python)
        if has_it or python.origin == "project":
            return "pytest" if has_it else "unittest"
    return "unittest"


def _speaks_of_pytest(project: Path) -> bool:
    if any((project / name).is_file() for name in ("pytest.ini", "conftest.py", "tests/conftest.py")):
        return True
    for name in ("pyproject.toml", "setup.cfg", "tox.ini", "setup.py", "requirements.txt", "requirements-dev.txt"):
        try:
            if b"pytest" in read_regular(project / name, _MAX_READ_BYTES):
                return True
        except OSError:
            continue
    return False


def _choose_node(session: CodeSession, workspace: Workspace, group: ProjectTargets) -> Framework:
    """What the nearest package.json says, or one above it, or what is installed."""
    for folder in project_folders(workspace, group.project):
        if found := node_frameworks(read_package(folder), folder):
            return found[0]
    names: tuple[Framework, ...] = ("vitest", "jest")
    for name in names:
        if find_engine(name, workspace, group.project, session.environ, origins=("project",)) is not None:
            return name
    scripts = read_package(group.project).get("scripts")
    script = scripts.get("test") if isinstance(scripts, dict) else None
    own = f"; its test script is {str(script)[:100]!r}, which only a shell can run" if script else ""
    raise Unavailable(
        f"{group.project} uses neither vitest nor jest{own}", "install one: npm install --save-dev vitest"
    )
