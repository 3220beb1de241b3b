"""One writer at a time: a lock file in the data folder, which the kernel lets go of when its process ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dari.daemon.lock import FileLock, lock_holder
from dari.knowledge.errors import StoreLocked
from dari.paths import private_dir


@contextmanager
def writer_lock(path: Path, wait_s: float = 0.0, give_up: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Hold the lock. Raises StoreLocked, with who holds it, when it is not free within `wait_s`, or as soon as
    `give_up` says that waiting is in vain."""
    private_dir(path.parent)
    lock = FileLock(path)
    if not lock.acquire_blocking(wait_s, give_up) if wait_s > 0 else not lock.try_acquire():
        holder = lock_holder(path)
        waited = f" after {wait_s:g} s" if wait_s > 0 and not give_up() else ""
        raise StoreLocked(
            f"another process writes to {path.parent}{waited}: {_describe(holder)}",
            "wait for it with --wait, or end it; search works meanwhile",
            pid=holder or 0,
        )
    try:
        yield
    finally:
        lock.release()


def _describe(pid: int | None) -> str:
    if pid is None:
        return "it ended just now"
    if pid == os.getpid():
        return f"this one, process {pid}"
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
    except OSError:
        return f"process {pid}"
    # Not the whole line: arguments may hold what is nobody else's business.
    return f"process {pid} ({' '.join(os.path.basename(word) for word in words[:3])[:80]})"
