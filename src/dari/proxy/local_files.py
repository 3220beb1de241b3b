"""Which files a map_local rule may serve and a HAR may be written to: an agent that writes rules is not a shell."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from dari.errors import Denied, Failed, InvalidInput
from dari.paths import home, read_regular, runtime_path

ROOTS_VARIABLE = "CRAB_MAP_LOCAL_ALLOWED_ROOTS"
MAX_OWN_FILES = 50_000
"""How many of our own files are compared with one that has several names; with more it is refused unseen."""

FileId = tuple[int, int]


def own_folders() -> tuple[Path, ...]:
    """Where Dari keeps tokens, keys and what was recorded; no rule and no HAR gets there, whatever the roots are."""
    return home(), runtime_path("any").parent


class LocalFiles:
    """Files below the roots. In default roots, hidden files and folders stay out: `~/.ssh`, `~/.aws`."""

    def __init__(self, roots: Iterable[str] = (), *, hides_hidden: bool = True) -> None:
        self._roots = tuple(os.path.realpath(root) for root in roots)
        self._hides_hidden = hides_hidden
        self._own = own_folders()

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> LocalFiles:
        """Roots from `CRAB_MAP_LOCAL_ALLOWED_ROOTS` (`:` between them), else the home and temporary directories."""
        named = [root for root in environment.get(ROOTS_VARIABLE, "").split(os.pathsep) if os.path.isabs(root)]
        if named:
            return cls(named, hides_hidden=False)
        # A container may run us with HOME=/, and / has /etc and /proc below it.
        return cls(root for root in (str(Path.home()), tempfile.gettempdir()) if os.path.realpath(root) != "/")

    @property
    def roots(self) -> tuple[str, ...]:
        return self._roots

    def keep_out_of(self, *folders: Path) -> None:
        """Folders of ours beside the usual ones: a state or run directory that was named at the start."""
        self._own = tuple(dict.fromkeys((*self._own, *folders)))

    def permits(self, path: str) -> bool:
        """By where the path really leads, symbolic links followed."""
        return self.resolved(path) is not None

    def resolved(self, path: str) -> str | None:
        """Where the path leads, if that is in bounds; what is opened then is this, not the path."""
        if "\0" in path or not os.path.isabs(path):
            return None
        real = os.path.realpath(path)
        if not any(self._is_inside(real, root) for root in self._roots) or self._is_own(real):
            return None
        return real

    def check(self, path: str, what: str, *, is_new: bool = False) -> str:
        """Where the path leads. Raises Denied for what is out of bounds, InvalidInput for what is not a regular file.

        `is_new`: it may be made. Else one that is missing is left to its reader, who says so.
        """
        real = self.resolved(path)
        if real is not None:
            check_kind(real, what)
            return real
        real = os.path.realpath(path) if "\0" not in path and os.path.isabs(path) else ""
        if real and self._is_own(real):
            if not is_new and not os.path.lexists(real):
                return real
            raise Denied(
                f"{what} {path!r} must be outside of the folders in which Dari keeps its own data",
                "copy the file to a folder of yours, and name the copy",
            )
        shown = ", ".join(self._roots)
        hidden = "; hidden files and folders are left out" if self._hides_hidden else ""
        raise Denied(
            f"{what} {path!r} is not below an allowed folder",
            f"use an absolute path below {shown}{hidden} (set {ROOTS_VARIABLE} for crabd to allow others)",
        )

    def read(self, path: str, what: str, max_bytes: int) -> bytes:
        """The whole of a file in bounds. Never waits: a FIFO or a device is refused."""
        real = self.check(path, what)
        try:
            return read_regular(Path(real), max_bytes)
        except OSError as error:
            raise Failed(f"cannot read {path}: {error.strerror}", f"give the absolute path of a {what}") from error

    def _is_inside(self, real: str, root: str) -> bool:
        inside = real.removeprefix(root.rstrip("/") + "/")
        if inside == real:
            return False
        return not (self._hides_hidden and any(part.startswith(".") for part in inside.split("/")))

    def _is_own(self, real: str) -> bool:
        """By identity and not by name: a bind mount, another spelling or a hard link is the same file."""
        if _is_readable_by_others_in(str(home()), real):
            return False
        own = {found for folder in self._own if (found := _identity(str(folder))) is not None}
        names = [str(folder.absolute()) for folder in self._own]
        if any(real == name or real.startswith(name.rstrip("/") + "/") for name in names):
            return True
        level = real
        while True:
            if _identity(level) in own:
                return True
            above = os.path.dirname(level)
            if above == level:
                break
            level = above
        try:
            info = os.lstat(real)
        except OSError:
            return False
        if not stat.S_ISREG(info.st_mode) or info.st_nlink < 2:
            return False
        return self._has_link_to((info.st_dev, info.st_ino))

    def _has_link_to(self, wanted: FileId) -> bool:
        return any(found == wanted or count >= MAX_OWN_FILES for count, found in enumerate(_files_below(self._own)))


def _is_readable_by_others_in(folder: str, real: str) -> bool:
    """A file that somebody put directly into a `DARI_HOME` of theirs: what we write there is for its owner alone."""
    if _identity(os.path.dirname(real)) != _identity(folder):
        return False
    try:
        info = os.lstat(real)
    except OSError:
        return False
    return stat.S_ISREG(info.st_mode) and info.st_nlink == 1 and bool(info.st_mode & (stat.S_IRGRP | stat.S_IROTH))


def check_kind(path: str, what: str) -> None:
    """Raises InvalidInput for what exists and is not a regular file: a FIFO or a device would keep us waiting."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return  # opening it says why it cannot be
    if not stat.S_ISREG(mode):
        kind = next((word for test, word in _KINDS if test(mode)), "something else")
        raise InvalidInput(f"{what} must be a regular file, {path!r} is {kind}", "give the path of a file")


_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _identity(path: str) -> FileId | None:
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino


def _files_below(folders: Iterable[Path]) -> Iterator[FileId]:
    for folder in folders:
        for directory, _, names in os.walk(folder):
            for name in names:
                try:
                    info = os.lstat(os.path.join(directory, name))
                except OSError:
                    continue
                yield info.st_dev, info.st_ino
