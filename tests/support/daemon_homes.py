"""Homes of daemons that tests started: what runs in one is ended, then the folder is removed."""

from __future__ import annotations

import os
import select
import shutil
import signal
from pathlib import Path

from dari.daemon.lock import lock_holder
from tests.support.waiting import wait_until

STOP_S = 40.0


def end_daemons(home: Path) -> None:
    """Those whose lock is below `home`, and wait for their ends."""
    ending = []
    for lock in find_locks(home):
        pid = lock_holder(lock)
        if pid is None:
            continue
        try:
            ending.append((pid, os.pidfd_open(pid)))
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            continue
    for pid, descriptor in ending:
        try:
            if not select.select([descriptor], [], [], STOP_S)[0]:
                os.kill(pid, signal.SIGKILL)
                select.select([descriptor], [], [], STOP_S)
        finally:
            os.close(descriptor)


def find_locks(home: Path) -> list[Path]:
    """Of daemons. Not by `rglob`, which fails where one removes a folder at the same time."""
    return [Path(folder, name) for folder, _, names in os.walk(home) for name in names if name.endswith(".pid")]


def remove_home(home: Path) -> None:
    """With the hub in it that a daemon started for a record or a refusal a moment ago, and that still writes there."""
    end_daemons(home)
    wait_until(lambda: _is_removed(home))


def _is_removed(home: Path) -> bool:
    try:
        shutil.rmtree(home)
    except OSError:
        return not home.exists()
    return True
