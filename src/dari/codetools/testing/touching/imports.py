"""Who imports what: edges from a file to those that it uses, and the way back from a change to the tests."""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from dari.codetools.testing.projects import SUFFIXES, read_package
from dari.codetools.testing.touching.sources import SourceIndex
from dari.paths import read_regular


class Edges(Struct, frozen=True):
    """`weak`: it is run by the import, but nothing of it is named (`__init__.py` of a package)."""

    strong: frozenset[str]
    weak: frozenset[str] = frozenset()


class ImportGraph:
    def __init__(self, edges: Mapping[str, Edges]) -> None:
        self._users: dict[str, list[str]] = {}
        self._weak_users: dict[str, list[str]] = {}
        for file, used in edges.items():
            for target in used.strong:
                self._users.setdefault(target, []).append(file)
            for target in used.weak - used.strong:
                self._weak_users.setdefault(target, []).append(file)

    def walk_back(self, changed: Iterable[str]) -> dict[str, list[str]]:
        """Every file that reaches a change, with the way to it: [file, …, change]. The shortest one is taken."""
        ways: dict[str, list[str]] = {file: [file] for file in changed}
        waiting = deque(ways)
        while waiting:
            file = waiting.popleft()
            way = ways[file]
            near = self._users.get(file, [])
            for user in [*near, *self._weak_users.get(file, [])] if len(way) == 1 else near:
                if user not in ways:
                    ways[user] = [user, *way]
                    waiting.append(user)
        return ways


_WORD = re.compile(r"[^\W\d]\w*")
_HAS_TESTS = re.compile(r"#\[(?:\w+::)?test\b|#\[cfg\(test\)\]|#\[rstest")
_NAMED_BY_FOLDER = frozenset({"mod", "lib", "main"})


class RustModules:
    """Modules of Rust: a file uses those of its crate whose names it writes."""

    def __init__(self, sources: SourceIndex) -> None:
        self._sources = sources
        self._files = list(sources.files("rust"))
        self._crates: dict[str, list[str]] = {}
        for file in self._files:
            self._crates.setdefault(crate_of(file, str(sources.workspace.base)), []).append(file)

    def edges(self) -> dict[str, Edges]:
        found: dict[str, Edges] = {}
        for files in self._crates.values():
            named = {file: module_name(file) for file in files if "/src/" in file}
            for file in files:
                words = self._sources.keep("rust words", file, lambda text: frozenset(_WORD.findall(text)))
                used = {target for target, name in named.items() if target != file and name and name in words}
                found[file] = Edges(frozenset(used))
        return found

    def has_tests(self, file: str) -> bool:
        return self._sources.keep("rust tests", file, lambda text: _HAS_TESTS.search(text) is not None)


def module_name(file: str) -> str:
    """`src/a/b.rs` is b, `src/a/mod.rs` is a; the root of a crate has the crate's, which its tests write."""
    stem = os.path.splitext(os.path.basename(file))[0]
    folder = os.path.basename(os.path.dirname(file))
    if stem not in _NAMED_BY_FOLDER:
        return stem
    return "" if folder == "src" else folder


def crate_of(file: str, base: str) -> str:
    """The folder with Cargo.toml."""
    folder = os.path.dirname(file)
    while folder.startswith(os.path.join(base, "")) and not Path(folder, "Cargo.toml").is_file():
        folder = os.path.dirname(folder)
    return folder


_MAX_CONFIG_BYTES = 1 << 20
_IMPORTS = re.compile(r'^import\s+(?:\((?P<many>[^)]*)\)|(?:[\w.]+\s+)?"(?P<one>[^"]+)")', re.MULTILINE)
_MODULE = re.compile(r'^module\s+"?([^\s"]+)', re.MULTILINE)


class GoImports:
    """Packages of Go: a file uses all files of the packages that it imports, and those of its own."""

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


_IMPORT = re.compile(
    r"""(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire(?:\.resolve)?\s*\(\s*|\b(?:jest|vi)\.\w*[mM]ock\s*\(\s*(?:import\(\s*)?)"""
    r"""(?P<quote>['"`])(?P<name>[^'"`\n]+)(?P=quote)"""
)
_SUFFIXES = tuple(suffix for suffix, language in SUFFIXES.items() if language == "node")
_TYPED = {".js": (".ts", ".tsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
_COMMENTS = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])', re.DOTALL)
_CONFIGS = ("tsconfig.json", "tsconfig.base.json", "jsconfig.json")


class NodeImports:
    """Imports of JavaScript and TypeScript files, resolved to files of the workspace as bundlers do."""

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
