"""A lock file: the kernel lets go of it when its process ends, kill -9 included.

Commands that start a daemon import this, so it loads nothing that they do not use.
"""

from __future__ import annotations

import fcntl
import os

TYPE_CHECKING = False  # `import typing` costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable

    AnyPath = str | os.PathLike[str]

POLL_S = 0.01


class FileLock:
    """At most one holder per path, across processes and within one. The file holds its pid and stays."""

    def __init__(self, path: AnyPath) -> None:
        self.path = path
        self._file: int | None = None

    def try_acquire(self) -> bool:
        """Take the lock if it is free."""
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        if not _take(file, fcntl.LOCK_EX) or not self._is_current(file):
            os.close(file)
            return False
        try:
            os.ftruncate(file, 0)
            os.write(file, b"%d\n" % os.getpid())
        except OSError as error:
            os.close(file)
            error.filename = error.filename or os.fspath(self.path)
            raise
        self._file = file
        return True

    async def acquire(self, timeout_s: float, give_up: Callable[[], bool] = lambda: False) -> bool:
        """Wait for the lock; False after `timeout_s`, or as soon as `give_up` says that waiting is in vain."""
        import asyncio

        deadline_s = asyncio.get_running_loop().time() + timeout_s
        while not self.try_acquire():
            if give_up() or asyncio.get_running_loop().time() > deadline_s:
                return False
            await asyncio.sleep(POLL_S)  # the kernel has no event for a lock that becomes free
        return True

    def acquire_blocking(self, timeout_s: float, give_up: Callable[[], bool] = lambda: False) -> bool:
        """The same for a command without a loop."""
        from time import monotonic, sleep

        deadline_s = monotonic() + timeout_s
        while not self.try_acquire():
            if give_up() or monotonic() > deadline_s:
                return False
            sleep(POLL_S)
        return True

    def release(self) -> None:
        """Let go; the next holder may be in before this returns."""
        if self._file is not None:
            os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None

    def _is_current(self, file: int) -> bool:
        """Whether the path still names the file we locked: a cleaner of old files may have removed it."""
        try:
            return os.path.samestat(os.fstat(file), os.lstat(self.path))
        except FileNotFoundError:
            return False


def lock_holder(path: AnyPath) -> int | None:
    """The pid of the process that holds the lock; None when it is free, whatever the file says."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        if _take(file, fcntl.LOCK_SH):
            return None
        text = os.read(file, 32).strip()
        return int(text) if text.isdigit() else None
    finally:
        os.close(file)


def _take(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
