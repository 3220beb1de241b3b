"""The files of a source, in order; those that are ignored, secret, foreign or too large are counted by kind instead."""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

from msgspec import Struct

from dari.files.globs import Words, compile_glob, glob_matches
from dari.files.ignore import NO_RULES, IgnoredBy, IgnoreLevel, IgnoreRules, ignored_by, read_level
from dari.files.secrets import is_secret_folder, is_secret_name
from dari.knowledge.config import IngestSettings, Source
from dari.knowledge.document import Media
from dari.knowledge.parse import HEAD_BYTES, media_of

SkipKind = Literal[
    "gitignore",
    "kebabignore",
    "builtin_blacklist",
    "secret",
    "generated",
    "size_exceeded",
    "extension",
    "excluded",
    "too_deep",
    "symlink",
    "special",
    "name_not_utf8",
    "binary",
    "ocr_unavailable",
]
MAX_EXAMPLES = 5
MAX_DEPTH = 100
MAX_EXTENSIONS = 200
NO_EXTENSION = "(none)"
OTHER_EXTENSIONS = "(other)"
_FOLDERS = frozenset(
    (
        *(".git", ".hg", ".svn", ".jj", ".bzr", "CVS", "_darcs", "node_modules", "bower_components", "__pycache__"),
        *(".venv", "venv", ".tox", ".nox", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".cache"),
        *(".gradle", ".idea", ".vscode-server", ".terraform", ".next", ".nuxt", ".svelte-kit", ".parcel-cache"),
        *(".Trash", ".Trashes", "$RECYCLE.BIN", "System Volume Information", ".Spotlight-V100", ".fseventsd"),
        *(".ipynb_checkpoints", ".eggs", ".direnv", ".stversions", ".obsidian", "lost+found"),
    )
)
KEBABIGNORE = ".kebabignore"
_NAMES = frozenset(
    (".DS_Store", "Thumbs.db", "desktop.ini", ".gitignore", KEBABIGNORE, ".gitattributes", ".gitmodules")
)
_SUFFIXES = ("~", ".swp", ".swo", ".pyc", ".pyo", ".min.js", ".min.css", ".map")
_CACHE_TAG = "CACHEDIR.TAG"
_SKIPS: dict[IgnoredBy, SkipKind] = {"git": "gitignore", "own": "kebabignore"}


class FoundFile(Struct, frozen=True, gc=False):
    """A file that may be indexed; `relative` is its path below the source's root."""

    relative: str
    size: int
    mtime_ns: int
    media: Media
    repo: str


@dataclass(slots=True)
class Skips:
    """What was left out: numbers by kind, and some names of each."""

    counts: Counter[SkipKind] = field(default_factory=Counter)
    extensions: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kind: SkipKind, path: str) -> None:
        self.counts[kind] += 1
        self.name(kind, path)

    def name(self, kind: str, path: str) -> None:
        """As an example, without counting it."""
        if len(named := self.examples.setdefault(kind, [])) < MAX_EXAMPLES:
            named.append(path)

    def add_extension(self, path: str) -> None:
        extension = PurePosixPath(path).suffix.lower().removeprefix(".") or NO_EXTENSION
        if extension not in self.extensions and len(self.extensions) >= MAX_EXTENSIONS:
            extension = OTHER_EXTENSIONS
        self.extensions[extension] += 1
        self.add("extension", path)

    @property
    def total(self) -> int:
        return self.counts.total()


@dataclass(slots=True)
class Walk:
    """One walk over a source. `unreadable` are files and folders that could not be looked at, with the reason: whether
    they are there, and what they hold, is not known."""

    source: Source
    settings: IngestSettings
    skips: Skips = field(default_factory=Skips)
    below: tuple[str, ...] = ()
    """Only these files and folders, as paths below the root; empty: all."""
    forbidden: tuple[str, ...] = ()
    """Real paths that are never entered: kebab's own data."""
    is_cancelled: Callable[[], bool] = lambda: False
    unreadable: dict[str, str] = field(default_factory=dict)
    entries: int = 0
    _excluded: IgnoreRules = NO_RULES
    _included: tuple[Words, ...] = ()

    def files(self) -> Iterator[FoundFile]:
        """In the order of their paths. Raises OSError when the root cannot be read."""
        root = os.path.realpath(self.source.root)
        self._excluded = IgnoreRules(self.source.exclude)
        self._included = tuple(compile_glob(pattern) for pattern in self.source.include)
        above, repo = _levels_above(root) if self.settings.gitignore else ((), "")
        top = self._read_level(root, "", len(_names(root)))
        for level in (*above, *([top] if top else [])):
            if level.unreadable:
                folder = "/" + "/".join(_names(root)[: level.depth])
                raise PermissionError(errno.EACCES, "its ignore file cannot be read", f"{folder}/{level.unreadable[0]}")
        repo = Path(root).name if os.path.exists(os.path.join(root, ".git")) else repo
        yield from self._folder(root, "", (*above, *([top] if top else [])), _names(root), repo, is_root=True)

    def _folder(
        self, folder: str, relative: str, levels: tuple[IgnoreLevel, ...], names: list[str], repo: str, is_root: bool
    ) -> Iterator[FoundFile]:
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            if is_root:
                raise
            self._note_unreadable(relative, error)
            return
        for entry in entries:
            if self.is_cancelled():
                return
            path = f"{relative}/{entry.name}" if relative else entry.name
            if not self._is_wanted(path):
                continue
            self.entries += 1
            inside = [*names, entry.name]
            try:
                info = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # it was removed after the listing
            except OSError as error:
                # A network mount that is stale, a disk that fails: it may be a folder, and nobody said it is gone.
                self._note_unreadable(path, error)
                continue
            if stat.S_ISDIR(info.st_mode):
                if (kind := self._skip_folder(entry, path, levels, inside)) is not None:
                    self.skips.add(kind, path + "/")
                    continue
                level = self._read_level(entry.path, path, len(inside))
                if level is not None and level.unreadable:
                    # It may keep secrets out: what is in the folder stays as it is known, and nothing new is read.
                    self.unreadable[path] = f"{level.unreadable[0]} of this folder cannot be read"
                    continue
                has_git = os.path.lexists(os.path.join(entry.path, ".git"))
                yield from self._folder(
                    entry.path,
                    path,
                    (*levels, level) if level else levels,
                    inside,
                    entry.name if has_git else repo,
                    is_root=False,
                )
            elif (found := self._file(entry, path, levels, inside, info, repo)) is not None:
                yield found

    def _note_unreadable(self, path: str, error: OSError) -> None:
        self.unreadable[path] = error.strerror or type(error).__name__

    def _read_level(self, folder: str, relative: str, depth: int) -> IgnoreLevel | None:
        level = read_level(folder, depth, gitignore=self.settings.gitignore, own=KEBABIGNORE)
        for name in level.cut if level else ():
            self.skips.name("ignore_file_too_long", f"{relative}/{name}" if relative else name)
        return level

    def _skip_folder(
        self, entry: os.DirEntry[str], path: str, levels: Sequence[IgnoreLevel], names: list[str]
    ) -> SkipKind | None:
        if not is_utf8(entry.name):
            return "name_not_utf8"
        if path.count("/") >= MAX_DEPTH:
            return "too_deep"
        if is_builtin_folder(entry.name) or entry.path in self.forbidden:
            return "builtin_blacklist"
        if is_secret_folder(entry.name):
            return "secret"
        if self._is_excluded(path, is_folder=True):
            return "excluded"
        if (by := ignored_by(levels, names, True)) is not None:
            return _SKIPS[by]
        return "builtin_blacklist" if os.path.isfile(os.path.join(entry.path, _CACHE_TAG)) else None

    def _file(
        self,
        entry: os.DirEntry[str],
        path: str,
        levels: Sequence[IgnoreLevel],
        names: list[str],
        info: os.stat_result,
        repo: str,
    ) -> FoundFile | None:
        kind = self._skip_file(entry.name, path, levels, names, info)
        if kind is not None:
            self.skips.add(kind, path if kind != "name_not_utf8" else os.fsencode(path).decode("utf-8", "replace"))
            return None
        try:
            media = self._media(entry, path)
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                self._note_unreadable(path, error)
            return None
        if media is None:
            self.skips.add_extension(path)
            return None
        if info.st_size > max_bytes_of(media, self.settings):
            self.skips.add("size_exceeded", path)
            return None
        return FoundFile(path, info.st_size, info.st_mtime_ns, media, repo)

    def _skip_file(
        self, name: str, path: str, levels: Sequence[IgnoreLevel], names: list[str], info: os.stat_result
    ) -> SkipKind | None:
        if not is_utf8(name):
            return "name_not_utf8"
        if stat.S_ISLNK(info.st_mode):
            return "symlink"  # what it leads to is indexed where it is, if it is inside
        if not stat.S_ISREG(info.st_mode):
            return "special"
        if is_secret_name(name):
            return "secret"
        if name in _NAMES or name.endswith(_SUFFIXES):
            return "builtin_blacklist"
        if self._is_excluded(path, is_folder=False):
            return "excluded"
        by = ignored_by(levels, names, False)
        return None if by is None else _SKIPS[by]

    def _media(self, entry: os.DirEntry[str], path: str) -> Media | None:
        """By name; a file without an extension is opened, for it may be a script."""
        name = PurePosixPath(path)
        media = media_of(name, b"")
        if media is not None or name.suffix:
            return media
        file = os.open(entry.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY)
        with open(file, "rb") as stream:
            return media_of(name, stream.read(HEAD_BYTES))

    def _is_excluded(self, path: str, is_folder: bool) -> bool:
        names = path.split("/")
        if self._excluded and self._excluded.decide(names, is_folder):
            return True
        if is_folder or not self._included:
            return False
        return not any(glob_matches(words, names) for words in self._included)

    def _is_wanted(self, path: str) -> bool:
        return not self.below or any(
            path == wanted or wanted.startswith(f"{path}/") or path.startswith(f"{wanted}/") for wanted in self.below
        )


def is_builtin_folder(name: str) -> bool:
    """Folders that are never entered, whatever is in them."""
    return name in _FOLDERS


def max_bytes_of(media: Media, settings: IngestSettings) -> int:
    if media == "code":
        return min(settings.max_code_bytes, settings.max_file_bytes)
    if media in ("markdown", "text", "html", "notebook"):
        return min(settings.max_text_bytes, settings.max_file_bytes)
    return settings.max_file_bytes


def _names(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def _levels_above(root: str) -> tuple[tuple[IgnoreLevel, ...], str]:
    """The ignore files between the root and the top of its repository, from the top, and the repository's name."""
    levels: list[IgnoreLevel] = []
    folder = os.path.dirname(root)
    if os.path.exists(os.path.join(root, ".git")):
        return (), ""
    while folder != os.path.dirname(folder):
        if (level := read_level(folder, len(_names(folder)), gitignore=True, own=KEBABIGNORE)) is not None:
            levels.append(level)
        if os.path.exists(os.path.join(folder, ".git")):
            return tuple(reversed(levels)), os.path.basename(folder)
        folder = os.path.dirname(folder)
    return (), ""


def is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
