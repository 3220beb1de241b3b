"""What is to be run: one framework in one folder of the project; and the targets and ids that name its tests."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from dari.codetools.session import CodeSession
from dari.codetools.testing.launch import TestLaunch
from dari.codetools.workspace import Workspace
from dari.errors import InvalidInput, NotFound

Framework = Literal["pytest", "unittest", "vitest", "jest", "go", "cargo"]


class Target(Struct, frozen=True, order=True):
    """A file or a folder, and the name of a test inside it as the framework spells it."""

    path: Path
    test: str = ""


class RunRequest(Struct, frozen=True):
    session: CodeSession
    workspace: Workspace
    framework: Framework
    project: Path
    """Where the framework is started: the folder with the project's file."""
    timeout_s: float
    targets: tuple[Target, ...] = ()
    """None: everything."""
    may_be_gone: bool = False
    """Targets are tests of an earlier run: those that are no longer there are left out, without an error."""
    keyword: str = ""
    fail_fast: bool = False
    env: Mapping[str, str] = {}

    def launch(self, env: Mapping[str, str] | None = None) -> TestLaunch:
        return TestLaunch(self.session, self.project, self.timeout_s, {**self.env, **(env or {})})

    def show(self, path: str | Path) -> str:
        """A path of the framework as the caller names it; as it is where it is outside of the workspace."""
        absolute = os.path.normpath(os.path.join(self.project, path))
        base = os.path.join(self.workspace.base, "")
        return absolute[len(base) :] if absolute.startswith(base) else absolute

    def is_inside(self, path: str | Path) -> bool:
        """Whether it is a file of the project, and not of an environment below it."""
        absolute = os.path.normpath(os.path.join(self.project, path))
        if not any(absolute.startswith(os.path.join(root, "")) for root in self.workspace.roots):
            return False
        return not {"site-packages", "node_modules", "dist-packages"}.intersection(absolute.split(os.sep))


_SYMBOL = re.compile(r"[^\W\d]\w*(?:(?:\.|::)[^\W\d]\w*)*")
_GLOB = frozenset("*?[{")
SEPARATOR = "::"


def split_targets(workspace: Workspace, targets: Sequence[str]) -> tuple[list[Target], list[str]]:
    """Files, folders and single tests; and what can only be a symbol. A file wins over a symbol of its name."""
    found: list[Target] = []
    symbols: list[str] = []
    for target in targets:
        if not target or "\0" in target:
            raise InvalidInput(
                f"a target is a path, a test id or a symbol, got {target!r}", "leave it out for all tests"
            )
        path, separator, test = target.partition(SEPARATOR)
        if path and workspace.locate(path).absolute.exists():
            found.append(Target(workspace.locate(path).absolute, test if separator else ""))
        elif _GLOB.intersection(path) and not separator:
            found += [Target(one.absolute) for one in workspace.files([path])]
        elif _SYMBOL.fullmatch(target):
            symbols.append(target)
        else:
            raise NotFound(
                f"there is no {path!r} in the workspace", "a target is a file, a folder, path::test or a symbol"
            )
    return list(dict.fromkeys(found)), symbols


def to_id(path: str, test: str) -> str:
    return f"{path}{SEPARATOR}{test}" if test else path


def from_id(project: Path, test_id: str) -> Target | None:
    """A test of an earlier run, with its path relative to the project; None when its file is gone."""
    path, _, test = test_id.partition(SEPARATOR)
    absolute = project / path
    return Target(absolute, test) if absolute.exists() else None
