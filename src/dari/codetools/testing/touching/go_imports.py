"""Packages of Go: a file uses all files of the packages that it imports, and those of its own."""

from __future__ import annotations

import os
import re
from pathlib import Path

from dari.codetools.testing.touching.graph import Edges
from dari.codetools.testing.touching.sources import SourceIndex
from dari.paths import read_regular

_MAX_CONFIG_BYTES = 1 << 20
_IMPORTS = re.compile(r'^import\s+(?:\((?P<many>[^)]*)\)|(?:[\w.]+\s+)?"(?P<one>[^"]+)")', re.MULTILINE)
_MODULE = re.compile(r'^module\s+"?([^\s"]+)', re.MULTILINE)


class GoImports:
    def __init__(self, sources: SourceIndex) -> None:
        self._sources = sources
        self._files = list(sources.files("go"))
        self._folders: dict[str, list[str]] = {}
        for file in self._files:
            self._folders.setdefault(os.path.dirname(file), []).append(file)
        self._modules = self._find_modules()

    def edges(self) -> dict[str, Edges]:
        return {file: Edges(frozenset(self._used_by(file))) for file in self._files}

    def _used_by(self, file: str) -> set[str]:
        folder = os.path.dirname(file)
        # A test is built with its whole package; other tests of it are not what it tests.
        used = {one for one in self._folders[folder] if not one.endswith("_test.go")}
        for name in self._sources.keep("go imports", file, find_imports):
            for module, root in self._modules.items():
                if name == module or name.startswith(f"{module}/"):
                    inside = os.path.normpath(os.path.join(root, name[len(module) :].strip("/")))
                    used.update(one for one in self._folders.get(inside, []) if not one.endswith("_test.go"))
        return used - {file}

    def _find_modules(self) -> dict[str, str]:
        base = str(self._sources.workspace.base)
        folders = set()
        for folder in self._folders:
            while folder not in folders and (folder == base or folder.startswith(os.path.join(base, ""))):
                folders.add(folder)
                folder = os.path.dirname(folder)
        found = {}
        for folder in folders:
            try:
                text = read_regular(Path(folder, "go.mod"), _MAX_CONFIG_BYTES).decode("utf-8", "replace")
            except OSError:
                continue
            if name := _MODULE.search(text):
                found[name[1]] = folder
        return found


def find_imports(text: str) -> list[str]:
    found: list[str] = []
    for match in _IMPORTS.finditer(text):
        found += [match["one"]] if match["one"] else re.findall(r'"([^"\n]+)"', match["many"] or "")
    return found
