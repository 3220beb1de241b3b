"""`ensure_started`: a daemon that answers, started by whoever needs it first.

A command asks this before every call, so asyncio and subprocess are loaded only where they are used.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dari.daemon.lock import FileLock, lock_holder
from dari.daemon.probe import answers
from dari.errors import TimedOut, Unavailable
from dari.paths import private_dir

if TYPE_CHECKING:
    from dari.daemon.spawn import DetachedProcess

START_TIMEOUT_S = 10.0
POLL_S = 0.01


async def ensure_started(
    command: Sequence[str], socket_path: Path, lock_path: Path, log_path: Path, timeout_s: float = START_TIMEOUT_S
) -> int | None:
    """Like `ensure_started_sync`, for callers with a loop to keep running."""
    import asyncio

    if answers(socket_path):
        return None
    return await asyncio.to_thread(ensure_started_sync, command, socket_path, lock_path, log_path, timeout_s)


def ensure_started_sync(
    command: Sequence[str], socket_path: Path, lock_path: Path, log_path: Path, timeout_s: float = START_TIMEOUT_S
) -> int | None:
    """Return once a daemon accepts connections: its pid when this call started it, None when it was there.

    However many callers come at once, one of them starts it and the others wait. A daemon that ends
    or hangs at start is an error with its exit status and the last lines of its log, and is gone.
    """
    if answers(socket_path):
        return None
    deadline = time.monotonic() + timeout_s
    private_dir(lock_path.parent)
    with _turn(lock_path, socket_path, deadline) as is_ours:
        if not is_ours or answers(socket_path):
            return None
        return _start(command, socket_path, log_path, deadline)


@contextmanager
def _turn(lock_path: Path, socket_path: Path, deadline: float) -> Iterator[bool]:
    """Hold the start lock; False when a daemon answered before it was our turn."""
    lock = FileLock(lock_path)
    while not lock.try_acquire():
        if answers(socket_path):
            yield False
            return
        if time.monotonic() > deadline:
            holder = f"process {lock_holder(lock_path)}"
            raise TimedOut(f"{holder} is still starting the daemon", f"it holds {lock_path}")
        time.sleep(POLL_S)
    try:
        yield True
    finally:
        lock.release()


def _start(command: Sequence[str], socket_path: Path, log_path: Path, deadline: float) -> int | None:
    from dari.daemon.spawn import DetachedProcess

    daemon = DetachedProcess(command, log_path)
    try:
        while not answers(socket_path):
            if (status := daemon.exit_status()) is not None:
                if answers(socket_path):
                    return None  # it ended because another one serves already
                raise Unavailable(f"the daemon ended at start with {status}", _log_hint(daemon, log_path))
            if time.monotonic() > deadline:
                raise TimedOut(f"the daemon does not answer on {socket_path}", _log_hint(daemon, log_path))
            time.sleep(POLL_S)
    except BaseException:
        daemon.end()
        raise
    daemon.reap()
    return daemon.pid


def _log_hint(daemon: DetachedProcess, log_path: Path) -> str:
    said = daemon.log_tail()
    return f"{log_path} ends with:\n{said}" if said else "it said nothing; `dari doctor` checks disk and paths"
