"""Modules of Rust: a file uses those of its crate whose names it writes."""

from __future__ import annotations

import os
import re
from pathlib import Path

from dari.codetools.testing.touching.graph import Edges
from dari.codetools.testing.touching.sources import SourceIndex

_WORD = re.compile(r"[^\W\d]\w*")
_HAS_TESTS = re.compile(r"#\[(?:\w+::)?test\b|#\[cfg\(test\)\]|#\[rstest")
_NAMED_BY_FOLDER = frozenset({"mod", "lib", "main"})


class RustModules:
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
