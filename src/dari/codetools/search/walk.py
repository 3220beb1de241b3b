"""The files of the scopes in the order of their paths, with the ignore rules that ripgrep has.

`.rgignore` wins over `.ignore`, that over `.gitignore`, that over `.git/info/exclude`; of each, a deeper file wins over
a higher one. Rules of git count inside a repository only, from its top down. A rule with `!` also shows a hidden file.
Links are not followed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from pathlib import Path

from msgspec import Struct

from dari.codetools.search.file_filter import FileFilter
from dari.codetools.search.query import SearchScope, path_key
from dari.codetools.workspace import VERSION_CONTROL
from dari.files.ignore import MAX_IGNORE_BYTES, IgnoreRules
from dari.paths import read_regular

_PLAIN_NAMES = (".rgignore", ".ignore")
_NO_RULES = IgnoreRules(())


class _Level(Struct, frozen=True):
    """The ignore files of one folder, `depth` names below `/`."""

    depth: int
    plain: tuple[IgnoreRules, ...]
    git: tuple[IgnoreRules, ...]
    is_top: bool
    """Whether the folder is the top of a repository."""


def walk(
    scopes: Sequence[SearchScope],
    files: FileFilter,
    *,
    include_hidden: bool,
    include_ignored: bool,
    since: bytes | None,
) -> Iterator[str]:
    """Absolute paths of regular files; with `since`, from that key on. Files that were named come in their place."""
    listings: list[Iterable[str]] = [
        _walk_folder(folder, files, include_hidden, include_ignored, since)
        for folder in dict.fromkeys(scope.path for scope in scopes if not scope.is_file)
    ]
    listings.append([scope.path for scope in scopes if scope.is_file and path_key(scope.path) >= (since or b"")])
    last = ""
    for path in merge(*listings, key=path_key) if len(listings) > 1 else listings[0]:
        if path != last and files.accepts(path):
            yield path
        last = path


def _walk_folder(
    top: str, files: FileFilter, include_hidden: bool, include_ignored: bool, since: bytes | None
) -> Iterator[str]:
    names = [part for part in top.split("/") if part]
    levels = () if include_ignored else _levels_above(top)
    stack: list[Iterator[tuple[str, list[str], bool, tuple[_Level, ...]]]] = [
        _list_folder(top, names, levels, files, include_hidden, include_ignored)
    ]
    while stack:
        entry = next(stack[-1], None)
        if entry is None:
            stack.pop()
            continue
        path, inside, is_folder, above = entry
        key = path_key(path)
        if since is not None and key < since and not (is_folder and since.startswith(key + b"\0")):
            continue
        if is_folder:
            stack.append(_list_folder(path, inside, above, files, include_hidden, include_ignored))
        else:
            yield path


def _list_folder(
    folder: str,
    names: list[str],
    levels: tuple[_Level, ...],
    files: FileFilter,
    include_hidden: bool,
    include_ignored: bool,
) -> Iterator[tuple[str, list[str], bool, tuple[_Level, ...]]]:
    try:
        with os.scandir(folder) as listing:
            entries = sorted(
                ((entry.name, entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False)))
                for entry in listing
            )
    except OSError:
        return  # removed since, or not ours to read
    entries.sort(key=lambda entry: os.fsencode(entry[0]))
    if not include_ignored and (level := _read_level(folder, len(names), entries)) is not None:
        levels = (*levels, level)
    for name, is_folder, is_file in entries:
        if not (is_folder or is_file) or name in VERSION_CONTROL:
            continue
        inside = [*names, name]
        verdict = _decide(levels, inside, is_folder) if levels else None
        if verdict is True:
            continue
        is_hidden = name.startswith(".") and not include_hidden and verdict is None
        if is_hidden and (is_folder or not files.wants_hidden(name)):
            continue
        yield os.path.join(folder, name), inside, is_folder, levels


def _decide(levels: Sequence[_Level], names: Sequence[str], is_folder: bool) -> bool | None:
    """True: ignored; False: taken back in; None: no rule is about it."""
    for kind in range(len(_PLAIN_NAMES)):
        for level in reversed(levels):
            verdict = level.plain[kind].decide(names[level.depth :], is_folder) if level.plain[kind] else None
            if verdict is not None:
                return verdict
    if not any(level.is_top for level in levels):
        return None
    for kind in range(2):
        for level in reversed(levels):
            verdict = level.git[kind].decide(names[level.depth :], is_folder) if level.git[kind] else None
            if verdict is not None:
                return verdict
            if level.is_top:
                break
    return None


def _read_level(folder: str, depth: int, entries: Sequence[tuple[str, bool, bool]] | None) -> _Level | None:
    """None when the folder has neither ignore files nor a repository."""
    present = {".git", ".gitignore", *_PLAIN_NAMES}
    if entries is not None:
        present &= {name for name, _, _ in entries}
        if not present:
            return None
    is_top = ".git" in present and os.path.lexists(os.path.join(folder, ".git"))
    plain = tuple(_read(folder, name) if name in present else _NO_RULES for name in _PLAIN_NAMES)
    gitignore = _read(folder, ".gitignore") if ".gitignore" in present else _NO_RULES
    exclude = _read(folder, ".git/info/exclude") if is_top else _NO_RULES
    if not (is_top or gitignore or any(plain)):
        return None
    return _Level(depth, plain, (gitignore, exclude), is_top)


def _levels_above(folder: str) -> tuple[_Level, ...]:
    levels = []
    for above in reversed(Path(folder).parents):
        depth = len([part for part in str(above).split("/") if part])
        if (level := _read_level(str(above), depth, None)) is not None:
            levels.append(level)
    return tuple(levels)


def _read(folder: str, name: str) -> IgnoreRules:
    try:
        text = read_regular(Path(folder, name), MAX_IGNORE_BYTES).decode("utf-8", "replace")
    except OSError:
        return _NO_RULES
    return IgnoreRules(text.removeprefix("\ufeff").splitlines())
