"""What is searched for, and where: names and globs of a caller as folders and files of its workspace."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from dari.codetools.workspace import VERSION_CONTROL, Workspace
from dari.errors import Denied, InvalidInput, NotFound
from dari.files.globs import expand_braces
from dari.files.secrets import is_secret_folder

Mode = Literal["literal", "regex", "ast"]
Case = Literal["smart", "sensitive", "insensitive"]
Output = Literal["matches", "files", "counts"]
_GLOB = frozenset("*?[{")


class CodeQuery(Struct, frozen=True):
    """The arguments of one search. Limits are declared at the tool."""

    pattern: str
    mode: Mode
    case: Case
    output: Output
    paths: tuple[str, ...]
    globs: tuple[str, ...]
    lang: str | None
    include_hidden: bool
    include_ignored: bool
    context: int
    max_matches: int
    max_tokens: int

    def fingerprint(self, base: Path) -> bytes:
        """The same for all pages of one search, however large each is."""
        what = msgspec.structs.replace(self, context=0, max_matches=0, max_tokens=0)
        return hashlib.sha256(msgspec.msgpack.encode((str(base), what))).digest()[:9]


class SearchScope(Struct, frozen=True):
    """One file, or a folder with what its files' paths below it must match. `path` is absolute, without links."""

    path: str
    is_file: bool = False
    globs: tuple[str, ...] = ()
    """Any of them; none: all files."""
    is_secret: bool = False
    """A folder that holds keys, or one inside: its files count only when they are named themselves."""


def find_scopes(workspace: Workspace, paths: Sequence[str]) -> list[SearchScope]:
    """Files, folders and globs as somebody named them, in the order of their paths, each once."""
    found = {scope for path in paths or (".",) for scope in _expand(workspace, path)}
    return sorted(found, key=lambda scope: (path_key(scope.path), scope.globs))


def has_overlap(scopes: Sequence[SearchScope]) -> bool:
    """Whether one is inside another: what is named inside a folder counts even where git ignores it."""
    paths = list(dict.fromkeys(scope.path for scope in scopes))
    return any(is_below(below, above) for above, below in pairwise(paths))


def path_key(path: str) -> bytes:
    """Paths in the order of a walk: folder by folder, names by their bytes, as `rg --sort path` has them."""
    return os.fsencode(path).replace(b"/", b"\0")


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder if folder.endswith("/") else f"{folder}/")


def _expand(workspace: Workspace, path: str) -> Iterable[SearchScope]:
    located = workspace.locate(path)
    _leave_version_control(path, located.names)
    absolute = str(located.absolute)
    try:
        mode = os.lstat(absolute).st_mode
    except OSError:
        mode = 0
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return (SearchScope(absolute, stat.S_ISREG(mode), is_secret=any(map(is_secret_folder, located.names))),)
    if mode:
        raise InvalidInput(f"{path!r} is neither a file nor a folder", "name a regular file or a folder")
    if not _GLOB.intersection(path):
        raise NotFound(f"{path!r} does not exist", "check the path; paths may be globs such as src/**/*.py")
    return [_glob_scope(workspace, one) for one in expand_braces(path)]


def _glob_scope(workspace: Workspace, glob: str) -> SearchScope:
    """The folder before the first star is named, the rest is matched below it."""
    parts = os.path.normpath(glob).split("/")
    first = next((at for at, part in enumerate(parts) if _GLOB.intersection(part)), None)
    if first is None:  # of braces, one without a star
        (scope,) = _expand(workspace, glob)
        return scope
    folder = workspace.locate("/".join(parts[:first]) or ("/" if glob.startswith("/") else "."))
    _leave_version_control(glob, folder.names)
    if not folder.absolute.is_dir():
        raise NotFound(f"no folder {'/'.join(parts[:first])!r} for the glob {glob!r}", "check the path")
    is_secret = any(map(is_secret_folder, folder.names))
    return SearchScope(str(folder.absolute), globs=("/".join(["", *parts[first:]]),), is_secret=is_secret)


def _leave_version_control(path: str, names: Sequence[str]) -> None:
    if inside := VERSION_CONTROL.intersection(names):
        raise Denied(f"{path!r} is inside {min(inside)}, which search leaves alone", "ask git for what it knows")
