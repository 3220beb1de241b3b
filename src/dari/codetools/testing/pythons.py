"""The Python of a project: its virtual environment, else the caller's, else ours."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from dari.codetools.engines.locate import project_folders
from dari.codetools.workspace import Workspace
from dari.paths import read_regular

_VENVS = (".venv", "venv", "env", ".env")
_MAX_READ_BYTES = 1 << 20
_UNSAFE_IN_NAMES = re.compile(r'[ $`!*@"\\\r\n\t]')


class Python(Struct, frozen=True):
    program: str
    origin: Literal["project", "caller", "path", "dari"]

    @property
    def environment(self) -> dict[str, str]:
        """What an activated environment sets, without PATH."""
        prefix = Path(self.program).parent.parent
        return {"VIRTUAL_ENV": str(prefix)} if (prefix / "pyvenv.cfg").is_file() else {}


def find_pythons(workspace: Workspace, folder: Path, environ: Mapping[str, str]) -> Iterator[Python]:
    """Candidates in the order in which they win, each once."""
    seen: set[str] = set()
    for found in _candidates(workspace, folder, environ):
        if found.program not in seen and os.access(found.program, os.X_OK):
            seen.add(found.program)
            yield found


def has_module(python: Python, name: str) -> bool | None:
    """Whether an environment holds a package, by its files; None where only the interpreter itself could tell."""
    prefix = Path(python.program).parent.parent
    settings = prefix / "pyvenv.cfg"
    if any(prefix.glob(f"lib/python3*/site-packages/{name}/__init__.py")):
        return True
    try:
        text = read_regular(settings, _MAX_READ_BYTES).decode("utf-8", "replace").lower()
    except OSError:
        return None
    is_open = re.search(r"include-system-site-packages\s*=\s*true", text)
    return None if is_open or any(prefix.glob("lib/python3*/site-packages/*.pth")) else False


def _candidates(workspace: Workspace, folder: Path, environ: Mapping[str, str]) -> Iterator[Python]:
    for place in project_folders(workspace, folder):
        named = environ.get("UV_PROJECT_ENVIRONMENT")
        for venv in (*((named,) if named else ()), *_VENVS):
            if (place / venv / "pyvenv.cfg").is_file():
                yield from _in(place / venv, "project")
        for venv in _poetry_environments(place, environ):
            yield from _in(venv, "project")
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if prefix := environ.get(name):
            yield from _in(Path(prefix), "caller")
    for name in ("python3", "python"):
        if found := shutil.which(name, path=environ.get("PATH", os.defpath)):
            yield Python(os.path.abspath(found), "path")
    yield Python(sys.executable, "dari")


def _in(prefix: Path, origin: Literal["project", "caller"]) -> Iterator[Python]:
    for name in ("python", "python3"):
        if (prefix / "bin" / name).is_file():
            yield Python(str(prefix / "bin" / name), origin)
            return


def _poetry_environments(folder: Path, environ: Mapping[str, str]) -> list[Path]:
    """Where poetry puts the environment of a project unless it is set to use `.venv`."""
    try:
        project = tomllib.loads(read_regular(folder / "pyproject.toml", _MAX_READ_BYTES).decode())
    except (OSError, ValueError, RecursionError):
        return []
    poetry = _table(_table(project, "tool"), "poetry")
    if not poetry and not (folder / "poetry.lock").is_file():
        return []
    name = poetry.get("name") or _table(project, "project").get("name")
    if not isinstance(name, str):
        return []
    home = environ.get("HOME", str(Path.home()))
    cache = environ.get("POETRY_CACHE_DIR") or os.path.join(
        environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache"), "pypoetry"
    )
    store = Path(environ.get("POETRY_VIRTUALENVS_PATH") or os.path.join(cache, "virtualenvs"))
    digest = base64.urlsafe_b64encode(hashlib.sha256(os.fsencode(folder)).digest()).decode()[:8]
    prefix = f"{_UNSAFE_IN_NAMES.sub('_', name.lower())[:42]}-{digest}-py"
    try:
        return sorted((one for one in store.iterdir() if one.name.startswith(prefix)), reverse=True)
    except OSError:
        return []


def _table(table: dict[str, Any], name: str) -> dict[str, Any]:
    found = table.get(name)
    return found if isinstance(found, dict) else {}
