from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from dari.daemon.lock import FileLock, lock_holder
from tests.support.daemons import wait_until_unlocked

HOLD = """
import signal, sys
from pathlib import Path
from dari.daemon.lock import FileLock
print(FileLock(Path(sys.argv[1])).try_acquire(), flush=True)
signal.pause()
"""


def test_a_lock_has_one_holder_and_names_it(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.try_acquire()
    assert not second.try_acquire()
    assert lock_holder(tmp_path / "lock") == os.getpid()
    first.release()
    first.release()
    assert second.try_acquire()
    second.release()
    assert lock_holder(tmp_path / "lock") is None


def test_nobody_holds_a_lock_that_was_never_made(tmp_path: Path) -> None:
    assert lock_holder(tmp_path / "lock") is None


def test_the_lock_of_a_killed_process_is_free_whatever_the_file_says(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        assert lock_holder(path) == holder.pid
        holder.send_signal(signal.SIGKILL)
        wait_until_unlocked(path)
    assert path.read_text().strip() == str(holder.pid)
    assert lock_holder(path) is None
    lock = FileLock(path)
    assert lock.try_acquire()
    lock.release()


def test_a_lock_file_that_was_removed_is_made_again(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    assert lock.try_acquire()
    lock.path.unlink()
    another = FileLock(lock.path)
    assert another.try_acquire()
    for each in (lock, another):
        each.release()
