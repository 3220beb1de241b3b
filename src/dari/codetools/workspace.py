"""The folders that one caller works in: names in, files out, and nothing outside of them is opened."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from dari.errors import Denied, InvalidInput, NotFound
from dari.files.globs import Words, compile_glob, glob_matches
from dari.files.ignore import IgnoreLevel, ignored_by, read_level
from dari.files.inside import FileTooLarge, open_inside, read_open
from dari.files.secrets import is_secret_folder, is_secret_name

MAX_FILE_BYTES = 16 << 20
"""Of a file that is read whole. Search has no such limit."""
MAX_DEPTH = 100
VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".jj", ".bzr"})
_GLOB = frozenset("*?[")
_ROOT_HINT = "paths are inside the workspace: {}"


class WorkspacePath(Struct, frozen=True, order=True):
    """A path below a root, after all links; `relative` is empty for the root itself."""

    root: Path
    relative: str

    @property
    def absolute(self) -> Path:
        return self.root / self.relative if self.relative else self.root

    @property
    def names(self) -> list[str]:
        return self.relative.split("/") if self.relative else []


class Workspace:
    """Roots are real folders. Relative names are below `base`, which is the first root or a folder inside one."""

    def __init__(self, roots: Sequence[Path], base: Path | None = None) -> None:
        self.roots = tuple(dict.fromkeys(Path(os.path.realpath(root)) for root in roots))
        if not self.roots:
            raise InvalidInput("the workspace has no folder", "name one: crewx-tools serve --root DIR")
        for root in self.roots:
            if not root.is_dir():
                raise NotFound(f"the workspace folder {root} does not exist", "name a folder that is there")
        self.base = self.roots[0] if base is None else base

    def narrow(self, root: str) -> Workspace:
        """The same roots, with relative names below `root`, which is inside one of them."""
        found = self.locate(root)
        if not found.absolute.is_dir():
            raise InvalidInput(f"root must be a folder, got {root!r}", "leave it out for the whole workspace")
        return Workspace(self.roots, found.absolute)

    def locate(self, path: str) -> WorkspacePath:
        """The file or folder that somebody named, after all links. It need not exist, but its folder must be inside."""
        if "\0" in path:
            raise InvalidInput(f"a path has no NUL character, got {path!r}", "check the path")
        given = os.path.join(self.base, os.path.expanduser(path) if path.startswith("~/") else path)
        real = os.path.realpath(given)
        for root in self.roots:
            if real == str(root):
                return WorkspacePath(root, "")
            if real.startswith(os.path.join(root, "")):
                return WorkspacePath(root, os.path.relpath(real, root))
        raise Denied(f"{path!r} is outside of the workspace", _ROOT_HINT.format(", ".join(map(str, self.roots))))

    def show(self, path: WorkspacePath) -> str:
        """The name that a caller reads and sends back: relative to `base` where it is below it."""
        absolute = str(path.absolute)
        base = os.path.join(self.base, "")
        if absolute.startswith(base):
            return absolute[len(base) :]
        return "." if absolute == str(self.base) else absolute

    def read(self, path: WorkspacePath, max_bytes: int = MAX_FILE_BYTES) -> bytes:
        """The content of a regular file. A link that was put in its way since `locate` is refused by the kernel."""
        try:
            file = open_inside(path.root, path.relative)
        except OSError as error:
            raise self.explain(error, path) from error
        try:
            return read_open(file, path.relative, max_bytes).data
        except FileTooLarge as error:
            raise InvalidInput(
                f"{self.show(path)} is too large: {error.strerror}", "name a smaller file, or use crewx_tools_search"
            ) from error
        except OSError as error:
            raise self.explain(error, path) from error
        finally:
            os.close(file)

    def explain(self, error: OSError, path: WorkspacePath) -> Exception:
        """A file that cannot be opened, as an error with the name that the caller knows."""
        name = self.show(path)
        if error.errno == errno.ENOENT:
            return NotFound(f"{name} does not exist", "check the path; crewx_tools_search finds names")
        if error.errno == errno.ELOOP:
            return Denied(
                f"{name} became a symbolic link while it was opened", "find out what changes it, then try again"
            )
        return OSError(error.errno, error.strerror, str(path.absolute))

    def files(
        self,
        patterns: Sequence[str] = (".",),
        *,
        wants: Callable[[str], bool] = lambda name: True,
        include_ignored: bool = False,
    ) -> Iterator[WorkspacePath]:
        """The regular files that names, folders and globs stand for, in order, each once.

        A file that is named itself is taken as asked for. Below folders and in globs, version control, names of secrets
        and what git ignores are left out; `wants` looks at the name of a file. Links are not followed. NotFound when a
        name or a glob stands for nothing at all.
        """
        seen: set[WorkspacePath] = set()
        for pattern in patterns or (".",):
            for path in self._expand(pattern, wants, include_ignored):
                if path not in seen:
                    seen.add(path)
                    yield path

    def _expand(self, pattern: str, wants: Callable[[str], bool], include_ignored: bool) -> Iterator[WorkspacePath]:
        literal = self.locate(pattern)
        try:
            mode = os.lstat(literal.absolute).st_mode
        except OSError:
            mode = 0
        if stat.S_ISREG(mode):
            yield literal
        elif stat.S_ISDIR(mode):
            yield from self._walk(literal, None, wants, include_ignored)
        elif mode:
            raise InvalidInput(f"{pattern!r} is neither a file nor a folder", "name a regular file")
        elif not _GLOB.intersection(pattern):
            raise NotFound(f"{pattern!r} does not exist", "check the path; paths may be globs such as src/**/*.py")
        else:
            yield from self._glob(pattern, wants, include_ignored)

    def _glob(self, pattern: str, wants: Callable[[str], bool], include_ignored: bool) -> Iterator[WorkspacePath]:
        """The folder before the first star is named, the rest is matched: `../other/*.py` may be outside."""
        parts = os.path.normpath(pattern).split("/")
        first = next(at for at, part in enumerate(parts) if _GLOB.intersection(part))
        folder = self.locate("/".join(parts[:first]) or ("/" if pattern.startswith("/") else "."))
        words = compile_glob("/".join(parts[first:]) if first < len(parts) - 1 else f"./{parts[-1]}")
        if first == len(parts) - 1:
            words = words[1:]  # a lone `*.py` is of this folder, as in a shell; `**/*.py` of all below
        is_empty = True
        for path in self._walk(folder, words, wants, include_ignored):
            is_empty = False
            yield path
        if is_empty:
            raise NotFound(f"no file matches {pattern!r}", "ignored files count only with includeIgnored")

    def _walk(
        self, folder: WorkspacePath, words: Words | None, wants: Callable[[str], bool], include_ignored: bool
    ) -> Iterator[WorkspacePath]:
        levels = () if include_ignored else _levels_above(folder.absolute)
        names = [part for part in str(folder.absolute).split("/") if part]
        yield from self._folder(folder, names, levels, len(names), words, wants, include_ignored)

    def _folder(
        self,
        folder: WorkspacePath,
        names: list[str],
        levels: tuple[IgnoreLevel, ...],
        start: int,
        words: Words | None,
        wants: Callable[[str], bool],
        include_ignored: bool,
    ) -> Iterator[WorkspacePath]:
        try:
            with os.scandir(folder.absolute) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError:
            return  # removed since, or not ours to read
        level = None if include_ignored else read_level(str(folder.absolute), len(names), gitignore=True)
        levels = (*levels, level) if level else levels
        for entry in entries:
            inside = [*names, entry.name]
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and not entry.is_file(follow_symlinks=False):
                continue
            if entry.name in VERSION_CONTROL or (is_secret_folder if is_folder else is_secret_name)(entry.name):
                continue
            if levels and ignored_by(levels, inside, is_folder) is not None:
                continue
            relative = f"{folder.relative}/{entry.name}" if folder.relative else entry.name
            path = WorkspacePath(folder.root, relative)
            if is_folder:
                if len(inside) - start < MAX_DEPTH:
                    yield from self._folder(path, inside, levels, start, words, wants, include_ignored)
            elif wants(entry.name) and (words is None or glob_matches(words, inside[start:])):
                yield path


def _levels_above(folder: Path) -> tuple[IgnoreLevel, ...]:
    """The ignore files from the top of the repository down to the parent of `folder`."""
    levels: list[IgnoreLevel] = []
    if os.path.lexists(folder / ".git"):
        return ()
    for above in folder.parents:
        depth = len([part for part in str(above).split("/") if part])
        if (level := read_level(str(above), depth, gitignore=True)) is not None:
            levels.append(level)
        if os.path.lexists(above / ".git"):
            return tuple(reversed(levels))
    return ()
