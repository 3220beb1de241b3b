"""Opening files of a root and nothing else: no link is followed below it, whatever is swapped while we read."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

_SETTLED_NS = 2_000_000_000
"""Clocks of file systems are coarse: a file that was written just now may be written again within the same tick."""


class FileContent(Struct, frozen=True):
    """`mtime_ns` is 0 when the file changed while it was read, or just before: it has to be looked at again."""

    data: bytes
    mtime_ns: int
    modified_s: float


class FileTooLarge(OSError):
    """Above the limit that the reader was given."""


def read_inside(root: Path, relative: str, max_bytes: int) -> FileContent:
    """The content of a regular file below `root`. Raises OSError, ELOOP where a link stands in the way."""
    file = open_inside(root, relative)
    try:
        return read_open(file, relative, max_bytes)
    finally:
        os.close(file)


@contextmanager
def opened_file(path: Path) -> Iterator[tuple[int, str]]:
    """A file that somebody named, open, with its path after all links, by the kernel's word. Raises OSError."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        yield file, _path_of(file, path)
    finally:
        os.close(file)


def read_open(file: int, name: str, max_bytes: int) -> FileContent:
    """The content of an open file, which must be a regular one."""
    before = os.fstat(file)
    if not stat.S_ISREG(before.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", name)
    if before.st_size > max_bytes:
        raise FileTooLarge(errno.EFBIG, f"it has {before.st_size} bytes, {max_bytes} are the most", name)
    data = _read_all(file, max_bytes, name)
    after = os.fstat(file)
    is_same = before.st_mtime_ns == after.st_mtime_ns and before.st_size == after.st_size == len(data)
    is_settled = is_same and time.time_ns() - after.st_mtime_ns > _SETTLED_NS
    return FileContent(data, after.st_mtime_ns if is_settled else 0, after.st_mtime)


def open_inside(root: Path, relative: str) -> int:
    """A file below `root`, open for reading. Raises OSError, ELOOP where a link stands in the way."""
    *folders, name = _parts_of(relative)
    folder = open_folder_inside(root, "/".join(folders))
    try:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        error.filename = relative
        raise
    finally:
        os.close(folder)


def open_folder_inside(root: Path, relative: str = "") -> int:
    """A folder below `root` as a descriptor: what is opened or renamed in it by name is in that folder, whatever
    takes the folder's name meanwhile."""
    flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
    folder = os.open(root, flags)
    try:
        for part in _parts_of(relative) if relative else ():
            inner = os.open(part, flags | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
    except OSError as error:
        os.close(folder)
        # The kernel says ENOTDIR of a link that is not to be followed as a folder.
        error.filename = relative
        raise
    return folder


def _parts_of(relative: str) -> list[str]:
    parts = relative.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise OSError(errno.EINVAL, "not a path below the root", relative)
    return parts


def _read_all(file: int, max_bytes: int, relative: str) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while piece := os.read(file, 1 << 20):
        pieces.append(piece)
        size += len(piece)
        if size > max_bytes:
            raise FileTooLarge(errno.EFBIG, f"it has more than {max_bytes} bytes", relative)
    return b"".join(pieces)


def _path_of(file: int, path: Path) -> str:
    """Where the open file is, by the kernel's word."""
    if sys.platform == "linux":
        return os.readlink(f"/proc/self/fd/{file}")
    real = os.path.realpath(path)
    if not os.path.samestat(os.fstat(file), os.lstat(real)):
        raise OSError(errno.ELOOP, "it changed while it was opened", str(path))
    return real
