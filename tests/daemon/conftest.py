"""A run directory with a short path: a socket's may have 103 bytes on macOS."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dari.daemon.lock import lock_holder
from dari.daemon.paths import DaemonPaths
from tests.support.daemons import NAME, wait_until_unlocked


@pytest.fixture
def run_dir() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="dari-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def files(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DaemonPaths]:
    """Names for a daemon that runs as a process; whatever still runs at the end is killed by its pid."""
    monkeypatch.setenv("DARI_HOME", str(run_dir / "home"))
    files = DaemonPaths(NAME, run_dir)
    yield files
    if (pid := lock_holder(files.lock)) is not None:
        os.kill(pid, signal.SIGKILL)
        wait_until_unlocked(files.lock)
