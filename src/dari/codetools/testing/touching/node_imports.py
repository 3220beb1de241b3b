"""Imports of JavaScript and TypeScript files, resolved to files of the workspace as bundlers do."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from dari.codetools.testing.projects import SUFFIXES, read_package
from dari.codetools.testing.touching.graph import Edges
from dari.codetools.testing.touching.sources import SourceIndex
from dari.paths import read_regular

_MAX_CONFIG_BYTES = 1 << 20
_IMPORT = re.compile(
    r"""(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire(?:\.resolve)?\s*\(\s*|\b(?:jest|vi)\.\w*[mM]ock\s*\(\s*(?:import\(\s*)?)"""
    r"""(?P<quote>['"`])(?P<name>[^'"`\n]+)(?P=quote)"""
)
_SUFFIXES = tuple(suffix for suffix, language in SUFFIXES.items() if language == "node")
_TYPED = {".js": (".ts", ".tsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
_COMMENTS = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])', re.DOTALL)
_CONFIGS = ("tsconfig.json", "tsconfig.base.json", "jsconfig.json")


class NodeImports:
    def __init__(self, sources: SourceIndex) -> None:
        self._sources = sources
        self._files = list(sources.files("node"))
        folders = {parent for file in self._files for parent in _parents(file, str(sources.workspace.base))}
        self._aliases = [alias for folder in sorted(folders) for alias in _aliases_in(folder)]
        self._packages = {
            str(name): folder for folder in sorted(folders) if (name := read_package(Path(folder)).get("name"))
        }

    def edges(self) -> dict[str, Edges]:
        return {file: Edges(frozenset(self._used_by(file))) for file in self._files}

    def _used_by(self, file: str) -> set[str]:
        names = self._sources.keep("node imports", file, lambda text: [one["name"] for one in _IMPORT.finditer(text)])
        found = {target for name in names for target in self._resolve(name, file)}
        return found - {file}

    def _resolve(self, name: str, user: str) -> list[str]:
        if name.startswith("."):
            return self._file(os.path.normpath(os.path.join(os.path.dirname(user), name)))
        for prefix, suffix, folder in self._aliases:
            if name.startswith(prefix) and name.endswith(suffix) and len(name) >= len(prefix) + len(suffix):
                middle = name[len(prefix) : len(name) - len(suffix) or None]
                if found := self._file(os.path.normpath(folder.replace("*", middle, 1))):
                    return found
        for package, folder in self._packages.items():
            if name == package or name.startswith(f"{package}/"):
                rest = name[len(package) :].strip("/")
                for inside in (rest, f"src/{rest}") if rest else ("", "src", "lib"):
                    if found := self._file(os.path.join(folder, inside).rstrip("/")):
                        return found
        return []

    def _file(self, path: str) -> list[str]:
        stem, suffix = os.path.splitext(path)
        candidates = [path, *(stem + one for one in _TYPED.get(suffix, ()))]
        candidates += [path + one for one in _SUFFIXES]
        candidates += [os.path.join(path, f"index{one}") for one in _SUFFIXES]
        return next(([one] for one in candidates if one in self._sources), [])


def _aliases_in(folder: str) -> list[tuple[str, str, str]]:
    """`paths` of a tsconfig: what stands before and after the star, and the path it stands for."""
    found = []
    for name in _CONFIGS:
        try:
            text = read_regular(Path(folder, name), _MAX_CONFIG_BYTES).decode("utf-8", "replace")
            options = json.loads(_COMMENTS.sub(lambda one: one[1] or "", text)).get("compilerOptions") or {}
            base = os.path.join(folder, options.get("baseUrl") or ".")
            for pattern, targets in (options.get("paths") or {}).items():
                prefix, _, suffix = str(pattern).partition("*")
                found += [(prefix, suffix, os.path.join(base, str(target))) for target in targets]
        except (OSError, ValueError, AttributeError, TypeError, RecursionError):
            continue
    return found


def _parents(file: str, base: str) -> list[str]:
    folders = []
    folder = os.path.dirname(file)
    while folder == base or folder.startswith(os.path.join(base, "")):
        folders.append(folder)
        folder = os.path.dirname(folder)
    return folders
