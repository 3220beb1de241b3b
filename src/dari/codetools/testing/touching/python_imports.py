"""Imports of Python files, resolved to files of the workspace without running anything."""

from __future__ import annotations

import os
import re

from msgspec import Struct

from dari.codetools.testing.touching.imports import Edges
from dari.codetools.testing.touching.sources import SourceIndex

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<dots>\.*)(?P<module>[\w.]*)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n#;]*)"
    r"|import[ \t]+(?P<plain>[^\n#;]+))",
    re.MULTILINE,
)
_SOURCE_FOLDERS = frozenset({"src", "lib", "python"})
_MAX_FOLLOWED = 5
_INIT = "__init__.py"


class Import(Struct, frozen=True):
    dots: int
    module: str
    names: tuple[tuple[str, str], ...]
    """What is named of it, and how it is called here; empty for a module that is used as a whole."""


class PythonImports:
    """Regular expressions instead of a parser: 20 times faster, and an import in a docstring only adds a test."""

    def __init__(self, sources: SourceIndex) -> None:
        self._sources = sources
        self._files: set[str] = set(sources.files("python"))
        self._modules: dict[str, list[str]] = {}
        self._names: dict[str, str] = {}
        for file in self._files:
            for name in self._names_of(file):
                self._modules.setdefault(name, []).append(file)

    def edges(self) -> dict[str, Edges]:
        return {file: self._edges_of(file) for file in self._files}

    def _edges_of(self, file: str) -> Edges:
        strong: set[str] = set()
        weak: set[str] = set()
        for one in self._imports_of(file):
            base = self._absolute(file, one)
            if base is None:
                continue
            found = self._find(base, file)
            weak.update(self._packages_above(base, file))
            if not one.names:
                strong.update(found)
            for name, _ in one.names:
                inner = self._find(f"{base}.{name}", file)
                # What a package hands on is defined elsewhere: the package itself is only passed through.
                followed = inner or self._follow(found, name, _MAX_FOLLOWED)
                strong.update(followed or found)
                if followed:
                    weak.update(found)
        strong.discard(file)
        return Edges(frozenset(strong), frozenset(weak))

    def _follow(self, files: list[str], name: str, left: int) -> list[str]:
        """Where `name` of a package's __init__ comes from; nothing where it is defined there, or not to be seen."""
        for file in files:
            if os.path.basename(file) != _INIT or not left:
                continue
            for one in self._imports_of(file):
                for original, called in one.names:
                    if called != name:
                        continue
                    base = self._absolute(file, one)
                    if base is None:
                        continue
                    found = self._find(base, file)
                    return self._find(f"{base}.{original}", file) or self._follow(found, original, left - 1) or found
        return []

    def _imports_of(self, file: str) -> list[Import]:
        return self._sources.keep("python imports", file, find_imports)

    def _absolute(self, file: str, one: Import) -> str | None:
        if not one.dots:
            return one.module or None
        package = self._names[file].split(".")[:-1]
        kept = package[: len(package) - (one.dots - 1)] if one.dots > 1 else package
        return ".".join([*kept, *([one.module] if one.module else [])]) or None

    def _find(self, module: str, user: str) -> list[str]:
        """Of several files with this name those nearest to the user: monorepos have many `tests.conftest`."""
        found = self._modules.get(module, [])
        if len(found) < 2:
            return found
        best = max(len(os.path.commonpath([one, user])) for one in found)
        return [one for one in found if len(os.path.commonpath([one, user])) == best]

    def _packages_above(self, module: str, user: str) -> list[str]:
        parts = module.split(".")
        above = [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
        return [file for name in above for file in self._find(name, user) if os.path.basename(file) == _INIT]

    def _names_of(self, file: str) -> list[str]:
        """By its packages, by its path from the base, and from a source folder on; alone where it is in no package."""
        folder, parts = os.path.dirname(file), [os.path.splitext(os.path.basename(file))[0]]
        while os.path.join(folder, _INIT) in self._files:
            parts.insert(0, os.path.basename(folder))
            folder = os.path.dirname(folder)
        shown = self._sources.show(file).removesuffix(".py").removesuffix(".pyi").split("/")
        names = [parts, shown]
        for at, part in enumerate(shown[:-1]):
            if part in _SOURCE_FOLDERS:
                names.append(shown[at + 1 :])
        dotted = [".".join(one[:-1] if one[-1] == "__init__" and len(one) > 1 else one) for one in names]
        # In a namespace package relative imports need its path.
        is_alone = len(parts) == 1 and "/" in self._sources.show(file)
        self._names[file] = ".".join(names[-1] if is_alone else parts)
        return list(dict.fromkeys(dotted))


def find_imports(text: str) -> list[Import]:
    """What a text imports, wherever in it."""
    text = text.replace("\\\n", " ")
    found: list[Import] = []
    for match in _IMPORT.finditer(text):
        if match["plain"] is not None:
            found += [one for part in match["plain"].split(",") for one in _plain(part, text)]
            continue
        names = re.sub(r"#[^\n]*", "", match["names"]).strip("() \t\n")
        pairs = tuple(_pair(part) for part in names.split(",") if part.strip())
        is_all = any(name == "*" for name, _ in pairs)
        found.append(Import(len(match["dots"]), match["module"], () if is_all else pairs))
    return found


def _plain(part: str, text: str) -> list[Import]:
    """`import a.b as c`, with what is named of it: `c.name`."""
    module, called = _pair(part)
    if not re.fullmatch(r"[\w.]+", module):
        return []
    used = set(re.findall(rf"\b{re.escape(called)}\.([^\W\d]\w*)", text))
    own = {(name, name) for name in used}
    return [Import(0, module, tuple(sorted(own)))]


def _pair(part: str) -> tuple[str, str]:
    name, _, called = part.strip().partition(" as ")
    return name.strip(), (called or name).strip()
