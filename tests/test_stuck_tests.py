"""A test that no signal interrupts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = """
import ctypes
import signal
import pytest

@pytest.mark.timeout(1)
@pytest.mark.xdist_group("stuck")
def test_that_is_stuck():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    ctypes.PyDLL(None).sleep(3600)  # with the interpreter's lock, as a parser in C

@pytest.mark.parametrize("number", range(8))
def test_beside_it(number):
    pass
"""


def test_a_test_that_is_stuck_in_c_fails_the_run_with_its_name_and_its_stack(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.stuck_tests", "-p", "no:cacheprovider"]
    spread = ["-n", "2", "--dist", "loadgroup", "--max-worker-restart=0"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "DARI_STUCK_GRACE_S": "1"}
    done = subprocess.run(
        [*command, *spread, "-c", os.devnull, "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=80,
    )
    assert done.returncode == 1
    assert "crashed while running 'test_one.py::test_that_is_stuck'" in done.stdout
    assert "in test_that_is_stuck" in done.stderr
