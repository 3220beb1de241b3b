"""The code of a workspace by language; what was found in a file is kept while the file is unchanged."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from dari.codetools.testing.projects import SUFFIXES, Language
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import DariError, Failed

MAX_FILES = 50_000
MAX_SOURCE_BYTES = 2 << 20
_MAX_KEPT = 100_000

Found = TypeVar("Found")
_kept: dict[tuple[str, str], tuple[int, int, object]] = {}


class SourceIndex:
    """Keys are absolute paths. `stop` ends a search that nobody waits for any more."""

    def __init__(self, workspace: Workspace, stop: threading.Event) -> None:
        self.workspace = workspace
        self._stop = stop
        self._paths: dict[str, WorkspacePath] = {}
        self.is_complete = True
        for path in workspace.files([str(workspace.base)], wants=_is_code):
            if stop.is_set():
                raise Failed("the search for tests was cancelled", "call again")
            if len(self._paths) >= MAX_FILES:
                self.is_complete = False
                break
            self._paths[str(path.absolute)] = path

    def files(self, language: Language | None = None) -> Iterator[str]:
        for path in self._paths:
            if self._stop.is_set():
                raise Failed("the search for tests was cancelled", "call again")
            if language is None or SUFFIXES[os.path.splitext(path)[1]] == language:
                yield path

    def __contains__(self, path: object) -> bool:
        return path in self._paths

    def read(self, path: str) -> str:
        """Empty where it cannot be read."""
        try:
            return self.workspace.read(self._paths[path], MAX_SOURCE_BYTES).decode("utf-8", "replace")
        except (DariError, OSError, KeyError):
            return ""

    def keep(self, kind: str, path: str, find: Callable[[str], Found]) -> Found:
        """What `find` makes of the text of a file, made again when the file changed."""
        try:
            status = os.stat(path, follow_symlinks=False)
        except OSError:
            return find("")
        known = _kept.get((kind, path))
        if known is not None and known[:2] == (status.st_mtime_ns, status.st_size):
            return known[2]  # type: ignore[return-value]
        found = find(self.read(path))
        if len(_kept) >= _MAX_KEPT:
            _kept.clear()
        _kept[kind, path] = (status.st_mtime_ns, status.st_size, found)
        return found

    def show(self, path: str) -> str:
        base = os.path.join(self.workspace.base, "")
        return path[len(base) :] if path.startswith(base) else path


def _is_code(name: str) -> bool:
    return os.path.splitext(name)[1] in SUFFIXES
