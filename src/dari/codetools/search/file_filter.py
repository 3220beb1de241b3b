"""Which files of the scopes count. Both engines ask it about every file with a match, so they agree by construction."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from dari.codetools.search.query import CodeQuery, SearchScope, is_below
from dari.codetools.workspace import VERSION_CONTROL
from dari.errors import InvalidInput
from dari.files.globs import Words, compile_parts, expand_braces, glob_matches
from dari.files.ignore import IgnoreRules
from dari.files.secrets import is_secret_folder, is_secret_name

_PLAIN = re.compile(r"[\w.*?+-]+", re.ASCII)


class FileFilter:
    """Version control and names of secrets never count, unless the file itself was named; globs only narrow."""

    def __init__(self, query: CodeQuery, scopes: Sequence[SearchScope], base: str) -> None:
        globs = [one for glob in query.globs for one in expand_braces(glob)]
        self._wanted = [(_glob_words(glob), _last_name(glob) == "*") for glob in globs if not glob.startswith("!")]
        self.left_out = [glob[1:] for glob in globs if glob.startswith("!")]
        self._left_out = IgnoreRules(self.left_out)
        self._base = base
        self._files = {scope.path for scope in scopes if scope.is_file}
        self._folders = [
            (scope.path, [_glob_words(glob) for glob in scope.globs])
            for scope in scopes
            if not scope.is_file and not scope.is_secret
        ]
        self._include_hidden = query.include_hidden
        names = [_last_name(glob) for scope in scopes for glob in scope.globs if not scope.is_file]
        every_scope_has_globs = all(scope.globs for scope in scopes if not scope.is_file)
        positive = [_last_name(glob) for glob in globs if not glob.startswith("!")]
        hints = positive or (names if every_scope_has_globs else [])
        self.names = [] if "*" in hints else hints
        """What the name of every wanted file matches one of; empty: no file is left out by its name."""
        self._asks_hidden = [compile_parts([name])[0] for name in self.names if name.startswith(".")]
        self._folder_is_secret = lru_cache(maxsize=4096)(_has_secret_folder)

    def name_globs(self) -> list[str]:
        """The same for ripgrep; nothing when it may read one of them in another way than we do."""
        return self.names if all(_PLAIN.fullmatch(name) for name in self.names) else []

    def wants_hidden(self, name: str) -> bool:
        """Whether a glob that begins with a dot asks for this hidden name."""
        return any(one is not None and one.match(name) for one in self._asks_hidden)

    def is_named(self, path: str) -> bool:
        return path in self._files

    def accepts(self, path: str) -> bool:
        if path in self._files:
            return True
        return any(is_below(path, folder) and self._is_wanted(path, folder, words) for folder, words in self._folders)

    def _is_wanted(self, path: str, folder: str, words: list[Words]) -> bool:
        below = path[len(folder) :].lstrip("/")
        above, _, name = below.rpartition("/")
        if is_secret_name(name) or name in VERSION_CONTROL or (above and self._folder_is_secret(above)):
            return False
        if self.names and not self._include_hidden and name.startswith(".") and not self.wants_hidden(name):
            return False
        names = below.split("/")
        if words and not any(glob_matches(one, names) for one in words):
            return False
        if not self._wanted and not self._left_out:
            return True
        if is_below(path, self._base):
            names = path[len(self._base) :].lstrip("/").split("/")
        if self._wanted and not any(_matches(*one, names) for one in self._wanted):
            return False
        return not self._left_out or not any(
            self._left_out.decide(names[:depth], depth < len(names)) for depth in range(1, len(names) + 1)
        )


def _glob_words(glob: str) -> Words:
    """With a `/` from the top, without at any depth; a `/` at the end is all below the folder."""
    if not glob.strip("/"):
        raise InvalidInput(f"globs must name files, got {glob!r}", "for instance *.py or src/**/*.ts")
    text = f"{glob}**" if glob.endswith("/") else glob
    text = text.removeprefix("./")
    parts = text.removeprefix("/").split("/")
    return compile_parts(parts if "/" in text.rstrip("/") else ["**", *parts])


def _matches(words: Words, may_be_folder: bool, names: Sequence[str]) -> bool:
    """The file, or a folder above it: `src` is all that is in src, while `*.py` is of files."""
    if not may_be_folder:
        return glob_matches(words, names)
    return any(glob_matches(words, names[:depth]) for depth in range(len(names), 0, -1))


def _last_name(glob: str) -> str:
    """What the last name must match; `*` where a folder may be meant."""
    name = glob.rstrip("/").rpartition("/")[2]
    return name if "." in name and not glob.endswith("/") and "**" not in name else "*"


def _has_secret_folder(above: str) -> bool:
    return any(is_secret_folder(name) or name in VERSION_CONTROL for name in above.split("/"))
