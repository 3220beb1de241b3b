"""Where an engine is: the project's own first, then the caller's PATH, then what was installed with Dari."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from dari.codetools.workspace import Workspace
from dari.errors import Unavailable

Origin = Literal["project", "path", "dari"]
_VENVS = (".venv", "venv")
_STARTERS = frozenset({"go", "cargo", "rustfmt"})
"""Programs for the machine that start others: `go vet` a compiler, rustup's `rustfmt` the real one."""


class EngineProgram(Struct, frozen=True):
    """A program to run, as `command` and the arguments after it."""

    name: str
    command: tuple[str, ...]
    origin: Origin
    env: Mapping[str, str] = {}
    is_single: bool = False
    """It starts no other program: it is one file for the machine, not a script that starts another."""


def find_engine(
    name: str,
    workspace: Workspace,
    folder: Path,
    environ: Mapping[str, str],
    *,
    origins: tuple[Origin, ...] = ("project", "path", "dari"),
) -> EngineProgram | None:
    """The program `name` for files in `folder`; None when it is nowhere.

    A project's own virtual environment and `node_modules` win, looked for from `folder` up to the root of the
    workspace: they are code of the project, as its tests are.
    """
    if "project" in origins:
        for place in project_folders(workspace, folder):
            for below in (*(Path(venv, "bin") for venv in _VENVS), Path("node_modules", ".bin")):
                if _is_program(found := place / below / name):
                    env = {"VIRTUAL_ENV": str(found.parent.parent)} if below.name == "bin" else {}
                    return _to_engine(name, _native(found) or found, "project", env)
    if "path" in origins and (on_path := shutil.which(name, path=environ.get("PATH", os.defpath))):
        return _to_engine(name, Path(os.path.abspath(on_path)), "path")
    if "dari" in origins and _is_program(ours := Path(sys.executable).parent / name):
        return _to_engine(name, ours, "dari")
    return None


def need_engine(
    name: str, workspace: Workspace, folder: Path, environ: Mapping[str, str], install: str
) -> EngineProgram:
    """`find_engine`; Unavailable with the install command when it is nowhere."""
    found = find_engine(name, workspace, folder, environ)
    if found is None:
        raise Unavailable(f"{name} is not installed", f"install it: {install}")
    return found


def project_folders(workspace: Workspace, folder: Path) -> list[Path]:
    """`folder` and those above it, up to and with the root of the workspace that holds it."""
    root = next((root for root in workspace.roots if folder == root or root in folder.parents), folder)
    return [folder, *(above for above in folder.parents if above == root or root in above.parents)]


def _to_engine(name: str, program: Path, origin: Origin, env: Mapping[str, str] | None = None) -> EngineProgram:
    return EngineProgram(
        name, (str(program),), origin, env or {}, is_single=name not in _STARTERS and not _is_script(program)
    )


def _native(program: Path) -> Path | None:
    """The program behind biome's script: the script starts node (0.1–0.4 s) only to start this."""
    if program.name != "biome":
        return None
    system, machine = os.uname().sysname.lower(), os.uname().machine
    kind = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(machine.lower(), machine)
    package = Path(os.path.realpath(program)).parent.parent  # node_modules/@biomejs/biome
    found = package.parent / f"cli-{system}-{kind}" / "biome"
    return found if _is_program(found) else None


def _is_script(program: Path) -> bool:
    try:
        with open(program, "rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return True


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
