"""Targets as callers write them: files, folders, globs, ids of tests (`path::name`), names of tests and of symbols."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from dari.codetools.testing.request import Target
from dari.codetools.workspace import Workspace
from dari.errors import InvalidInput, NotFound

_SYMBOL = re.compile(r"[^\W\d]\w*(?:(?:\.|::)[^\W\d]\w*)*")
_GLOB = frozenset("*?[")
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
