"""Formatters and linters that the tests of code tools run; where one is missing they say so, and fail in CI."""

from __future__ import annotations

import os
import pwd
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.requirements import missing, require_node

ROOT = Path(__file__).parent.parent.parent
_BESIDE = Path(sys.executable).parent


def require_engine(name: str, package: str) -> str:
    """The path of a program of the machine or of our virtual environment."""
    found = shutil.which(name, path=f"{_BESIDE}{os.pathsep}{os.environ.get('PATH', os.defpath)}")
    return found or missing(f"{name.upper()} WAS NOT TESTED: there is none; install {package}")


def require_npm(*names: str) -> Path:
    """The node_modules that `./dev test` fills, with these programs in it."""
    require_node()
    folder = Path(os.environ.get("DARI_NPM_DIR") or ROOT / ".dev" / "npm", "node_modules")
    for name in names:
        if not (folder / ".bin" / name).exists():
            missing(f"{name.upper()} WAS NOT TESTED: DARI_NPM_DIR has none; ./dev test fetches it")
    return folder


def node_project(folder: Path, *names: str) -> Path:
    """A project whose node_modules has exactly these programs."""
    modules = require_npm(*names)
    programs = folder / "node_modules" / ".bin"
    programs.mkdir(parents=True)
    for name in names:
        (programs / name).symlink_to((modules / ".bin" / name).resolve())
    for package in modules.iterdir():
        if package.name != ".bin":
            (folder / "node_modules" / package.name).symlink_to(package)
    return folder


def python_project(folder: Path, *names: str) -> Path:
    """A project whose virtual environment has exactly these programs."""
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in names:
        (programs / name).symlink_to(require_engine(name, f"pip install {name}"))
    return folder


def with_toolchains() -> dict[str, str]:
    """The tests have a home of their own; rustup's toolchains are in the person's."""
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    return {"RUSTUP_HOME": str(home / ".rustup"), "CARGO_HOME": str(home / ".cargo"), **os.environ}


def with_node(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment in which `#!/usr/bin/env node` finds the node of the tests, and no engine but the project's."""
    return {**os.environ, **(environ or {}), "PATH": f"{Path(require_node()).parent}{os.pathsep}/usr/bin:/bin"}
