"""The folders that one caller works in: names in, files out, and nothing outside of them is opened."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from dari.errors import Denied, InvalidInput, NotFound
from dari.files.globs import Words, compile_glob, expand_braces, glob_matches
from dari.files.ignore import GITIGNORE, IgnoreLevel, ignored_by, read_level
from dari.files.inside import FileTooLarge, open_folder_inside, open_inside, read_open
from dari.files.secrets import is_secret_folder, is_secret_name
from dari.paths import own_paths

MAX_FILE_BYTES = 16 << 20
"""Of a file that is read whole. Search has no such limit."""
MAX_DEPTH = 100
_DRAFT = re.compile(r"\.dari-[0-9a-f]{16}-\d+(?:-old)?~")
"""New and old contents of a write that is going on (`edits.replace`): nobody's files."""
VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".jj", ".bzr"})
_GLOB = frozenset("*?[{")
_ROOT_HINT = "paths are inside the workspace: {}"
_ESCAPED = re.compile(r"\\x([89a-f][0-9a-f])")


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
        self._own = _own_inside(self.roots)

    def narrow(self, root: str) -> Workspace:
        """The same roots, with relative names below `root`, which is inside one of them."""
        found = self.locate(root)
        if not found.absolute.is_dir():
            raise InvalidInput(f"root must be a folder, got {root!r}", "leave it out for the whole workspace")
        return Workspace(self.roots, found.absolute)

    def locate(self, path: str) -> WorkspacePath:
        """The file or folder that somebody named, after all links. It need not exist, but must be inside.

        `~` is a file name as any other: no shell reads these names, and the home of whom would it be.
        """
        if "\0" in path:
            raise InvalidInput(f"a path has no NUL character, got {path!r}", "check the path")
        real = os.path.realpath(os.path.join(self.base, path))
        if _ESCAPED.search(path) and not os.path.lexists(real):
            real = os.path.realpath(os.path.join(self.base, _unescape(path)))
        if (found := self.place(real)) is None:
            raise Denied(f"{path!r} is outside of the workspace", _ROOT_HINT.format(", ".join(map(str, self.roots))))
        if any(real == own or real.startswith(f"{own}/") for own in self._own):
            raise Denied(f"{path!r} belongs to Dari itself", "its settings have commands of their own: dari --help")
        return found

    def place(self, absolute: str) -> WorkspacePath | None:
        """A path without links as one below a root; None outside. Only its text is looked at."""
        for root in self.roots:
            if absolute == str(root):
                return WorkspacePath(root, "")
            if absolute.startswith(os.path.join(root, "")):
                return WorkspacePath(root, os.path.relpath(absolute, root))
        return None

    def show(self, path: WorkspacePath) -> str:
        r"""The name that a caller reads and sends back: relative to `base` where it is below it.

        A byte outside of UTF-8 is shown as `\xe9`, and `locate` reads it back.
        """
        absolute = str(path.absolute)
        base = os.path.join(self.base, "")
        if absolute.startswith(base):
            return _escape(absolute[len(base) :])
        return "." if absolute == str(self.base) else _escape(absolute)

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
        if error.errno in (errno.EINVAL, errno.ENXIO, errno.EISDIR):
            return InvalidInput(f"{name} is not a regular file", "name a regular file")
        if error.errno == errno.ELOOP:
            if _is_loop(path.absolute):
                return InvalidInput(f"{name} is a symbolic link that leads in a circle", "name the file itself")
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
        if len(patterns) < 2:
            yield from self._expand(patterns[0] if patterns else ".", wants, include_ignored)
            return
        seen: set[WorkspacePath] = set()
        for pattern in patterns:
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
        elif stat.S_ISLNK(mode) and _is_loop(literal.absolute):
            raise InvalidInput(f"{pattern!r} is a symbolic link that leads in a circle", "name the file itself")
        elif mode:
            raise InvalidInput(f"{pattern!r} is neither a file nor a folder", "name a regular file")
        elif not _GLOB.intersection(pattern):
            tilde = "~ is a file name here: write the whole path" if pattern.startswith("~") else ""
            hint = tilde or "check the path; paths may be globs such as src/**/*.py"
            raise NotFound(f"{pattern!r} does not exist", hint)
        else:
            yield from self._glob(pattern, wants, include_ignored)

    def _glob(self, pattern: str, wants: Callable[[str], bool], include_ignored: bool) -> Iterator[WorkspacePath]:
        alternatives = expand_braces(pattern)
        seen: set[WorkspacePath] = set()
        is_empty = True
        for one in alternatives:
            for path in self._alternative(one, wants, include_ignored):
                is_empty = False
                if path not in seen:
                    yield path
                if len(alternatives) > 1:
                    seen.add(path)
        if is_empty:
            raise NotFound(f"no file matches {pattern!r}", "ignored files count only with includeIgnored")

    def _alternative(
        self, pattern: str, wants: Callable[[str], bool], include_ignored: bool
    ) -> Iterator[WorkspacePath]:
        """The folder before the first star is named, the rest is matched: `../other/*.py` may be outside."""
        parts = os.path.normpath(pattern).split("/")
        first = next((at for at, part in enumerate(parts) if _GLOB.intersection(part)), None)
        if first is None:  # of braces, one without a star; `{}` is not the whole folder
            yield from self._expand(pattern, wants, include_ignored) if pattern else ()
            return
        folder = self.locate("/".join(parts[:first]) or ("/" if pattern.startswith("/") else "."))
        words = compile_glob("/".join(parts[first:]) if first < len(parts) - 1 else f"./{parts[-1]}")
        if first == len(parts) - 1:
            words = words[1:]  # a lone `*.py` is of this folder, as in a shell; `**/*.py` of all below
        yield from self._walk(folder, words, wants, include_ignored)

    def _walk(
        self, folder: WorkspacePath, words: Words | None, wants: Callable[[str], bool], include_ignored: bool
    ) -> Iterator[WorkspacePath]:
        levels = () if include_ignored else _levels_above(folder.absolute)
        names = [part for part in str(folder.absolute).split("/") if part]
        try:
            directory = open_folder_inside(folder.root, folder.relative)
        except OSError:
            return  # removed since, or not ours to read
        chosen = _Choice(len(names), words, wants, include_ignored)
        try:
            yield from self._folder(directory, folder, names, levels, chosen)
        finally:
            os.close(directory)

    def _folder(
        self, directory: int, folder: WorkspacePath, names: list[str], levels: tuple[IgnoreLevel, ...], chosen: _Choice
    ) -> Iterator[WorkspacePath]:
        """`directory` is the open folder: a link that takes its name meanwhile is not followed."""
        entries = _list(directory)
        level = None if chosen.include_ignored else _level_of(folder.absolute, entries, len(names))
        levels = (*levels, level) if level else levels
        for name, is_folder in entries:
            inside = [*names, name]
            if _DRAFT.fullmatch(name):
                continue
            if name.lower() in VERSION_CONTROL or (is_secret_folder if is_folder else is_secret_name)(name):
                continue
            if levels and ignored_by(levels, inside, is_folder) is not None:
                continue
            path = WorkspacePath(folder.root, f"{folder.relative}/{name}" if folder.relative else name)
            if is_folder:
                if len(inside) - chosen.start >= MAX_DEPTH or str(path.absolute) in self._own:
                    continue
                try:
                    inner = os.open(name, _OPEN_FOLDER, dir_fd=directory)
                except OSError:
                    continue
                try:
                    yield from self._folder(inner, path, inside, levels, chosen)
                finally:
                    os.close(inner)
            elif chosen.wants(name) and (chosen.words is None or glob_matches(chosen.words, inside[chosen.start :])):
                yield path


_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _Choice(Struct, frozen=True):
    """Which files of a walk count; `start` names lead to the folder where it began."""

    start: int
    words: Words | None
    wants: Callable[[str], bool]
    include_ignored: bool


def _list(directory: int) -> list[tuple[str, bool]]:
    """Names of regular files and (True) folders, in order."""
    try:
        readable = os.open(".", _OPEN_FOLDER, dir_fd=directory)
    except OSError:
        return []  # not ours to read
    try:
        with os.scandir(readable) as listing:
            return sorted(
                (entry.name, is_folder)
                for entry in listing
                if (is_folder := entry.is_dir(follow_symlinks=False)) or entry.is_file(follow_symlinks=False)
            )
    except OSError:
        return []
    finally:
        os.close(readable)


def _level_of(folder: Path, entries: list[tuple[str, bool]], depth: int) -> IgnoreLevel | None:
    return read_level(str(folder), depth, gitignore=True) if (GITIGNORE, False) in entries else None


def _escape(name: str) -> str:
    """JSON has no lone surrogates, which is how Python has bytes outside of UTF-8."""
    return name if name.isascii() else name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _unescape(name: str) -> str:
    return _ESCAPED.sub(lambda found: chr(0xDC00 + int(found[1], 16)), name)


def _is_loop(path: Path) -> bool:
    try:
        os.stat(path)
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def _own_inside(roots: Sequence[Path]) -> frozenset[str]:
    """What is of Dari itself below the roots: tokens, keys, records. A root that is inside of it is meant so."""
    owns = {os.path.realpath(own) for own in own_paths()}
    return frozenset(own for own in owns if any(own.startswith(os.path.join(root, "")) for root in roots))


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
