"""What is to be run: one framework in one folder of the project."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from dari.codetools.session import CodeSession
from dari.codetools.testing.launch import TestLaunch
from dari.codetools.workspace import Workspace

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
