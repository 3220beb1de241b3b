"""What the operating system refuses (a full disk, a read-only one, a missing right) as an error with a next step.

The edges ask: tools (`dari.mcp.error_mapping`), methods of daemons (`dari.daemon.session`),
commands (`dari.runtime`). Where a write has no name of its own (`OSError.filename` is None), `naming` gives it one.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from dari.errors import Conflict, DariError, Denied, Failed, InvalidInput, NotFound, Unavailable

DISK_FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_ROOM = "free some space (`df -h` shows where), then try again"
_WRITABLE = "name a place that can be written to; DARI_HOME=/some/folder moves what Dari keeps"
_OWNER = "check its owner and mode, or name another place"

_ROWS: dict[int, tuple[type[DariError], str, str]] = {
    errno.ENOSPC: (Failed, "the disk is full", _ROOM),
    errno.EDQUOT: (Failed, "the disk is full: your quota is used up", _ROOM),
    errno.EFBIG: (Failed, "the disk is full: a file may not grow further", f"{_ROOM}; `ulimit -f` has the limit"),
    errno.EROFS: (Failed, "the file system is read-only", _WRITABLE),
    errno.EIO: (Failed, "the disk reports an error", "check the disk; the system's log has details"),
    errno.EACCES: (Denied, "permission denied", _OWNER),
    errno.EPERM: (Denied, "operation not permitted", _OWNER),
    errno.ENAMETOOLONG: (InvalidInput, "the name is too long", "choose a shorter path, or a shorter DARI_HOME"),
    errno.ENOTDIR: (InvalidInput, "a part of the path is not a directory", "correct the path"),
    errno.EISDIR: (InvalidInput, "it is a directory", "name a file"),
    errno.ELOOP: (InvalidInput, "it is a symbolic link, or links lead in a circle", "name the file itself"),
    errno.ENOENT: (NotFound, "it does not exist", "check the path"),
    errno.EEXIST: (Conflict, "it exists already", "move it away, or choose another name"),
    errno.ENOTEMPTY: (Conflict, "the directory is not empty", "move it away, or choose another name"),
    errno.EBUSY: (Conflict, "it is in use", "end what uses it, then try again"),
    errno.ETXTBSY: (Conflict, "the program is running", "end it, then try again"),
    errno.EXDEV: (Failed, "it lies on another file system", "name a place on the same one"),
    errno.EMLINK: (Failed, "the file has too many links", "choose another place"),
    errno.ENODEV: (Failed, "the device is gone", "check that the disk is mounted"),
    errno.ENXIO: (Failed, "the device is gone", "check that the disk is mounted"),
    errno.ESTALE: (Failed, "the network file system lost the file", "mount it again, or name another place"),
    errno.EMFILE: (Unavailable, "this process has too many files open", "raise `ulimit -n`, or end some programs"),
    errno.ENFILE: (Unavailable, "this machine has too many files open", "end some programs"),
    errno.ENOMEM: (Unavailable, "there is not enough memory", "end some programs"),
}
_WITHOUT_NAME = DISK_FULL_ERRNOS | {errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE}
"""Of the others only those that name a file are about one; without a name they are as likely a bug of ours."""

# <sqlite3.h>: the primary code is the low byte of what a connection reports.
_SQLITE = {
    8: errno.EROFS,
    10: errno.EIO,
    13: errno.ENOSPC,
    14: errno.EACCES,
}


def from_os_error(error: BaseException) -> DariError | None:
    """The error as one of ours; None when it is not the operating system's refusal of a file."""
    if isinstance(error, DariError):
        return error
    if isinstance(error, OSError):
        if error.errno == errno.ENOENT and str(error.strerror).startswith("No usable temporary directory"):
            return Failed(str(error.strerror), _ROOM)  # which `tempfile` says when every one of them is full
        return _of_os(error.errno, error.filename2 or error.filename)
    code = getattr(error, "sqlite_errorcode", None)
    if isinstance(code, int) and code & 0xFF in _SQLITE:
        return _of_os(_SQLITE[code & 0xFF], getattr(error, "filename", None), f" ({error})")
    return None


def describe_os_error(error: OSError) -> str:
    """Why, in a few words: `the disk is full`."""
    row = _ROWS.get(error.errno or 0)
    return row[1] if row is not None else error.strerror or str(error)


def suggest_next_step(error: OSError, otherwise: str) -> str:
    """The next step: room on a full disk, another place than a read-only one, else what the caller knows."""
    if error.errno == errno.EROFS:
        return _WRITABLE
    return _ROOM if error.errno in DISK_FULL_ERRNOS else otherwise


@contextmanager
def name_file_in_errors(path: str | os.PathLike[str], instead_of: str | os.PathLike[str] = "") -> Iterator[None]:
    """Give an error of a write, which knows only a number, the name of the file that is written.

    `instead_of` is a draft of that file: a name that nobody knows.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None or error.filename == os.fspath(instead_of):
            error.filename, error.filename2 = os.fspath(path), None
        raise
    except Exception as error:
        if isinstance(getattr(error, "sqlite_errorcode", None), int) and not hasattr(error, "filename"):
            error.filename = os.fspath(path)  # type: ignore[attr-defined]
        raise


def _of_os(number: int | None, name: object, detail: str = "") -> DariError | None:
    row = _ROWS.get(number or 0)
    if row is None or (not isinstance(name, str | bytes) and number not in _WITHOUT_NAME):
        return None
    kind, fact, hint = row
    if not isinstance(name, str | bytes):
        return kind(fact + detail, hint)
    return kind(f"{os.fsdecode(name)}: {fact}{detail}", hint)
