"""One writer at a time per folder: the folder itself is locked, so that no lock file lies in a project."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dari.errors import TimedOut

WAIT_S = 10.0
_STEP_S = 0.005


@contextmanager
def folder_lock(folder: Path, wait_s: float = WAIT_S) -> Iterator[None]:
    """Hold the folder. It blocks: call it from a thread when a loop runs. The kernel lets go if we die."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        end = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise TimedOut(f"somebody else writes in {folder} since {wait_s:g} s", "try again") from None
                time.sleep(_STEP_S)
        yield
    finally:
        os.close(file)
