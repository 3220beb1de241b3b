"""The check at the end of a run that nothing of its tests is left running."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.left_processes import EXIT_CODE
from tests.support.processes import wait_for_end

ROOT = Path(__file__).parent.parent
LEAVING = """
import subprocess
from pathlib import Path

def start(**options):
    child = subprocess.Popen(["sleep", "600"], start_new_session=True, **options)
    Path(__file__).with_name(f"{child.pid}.pid").touch()
    child.returncode = 0  # as if somebody had waited for it

def test_that_starts_a_process():
    start()

def test_that_starts_one_with_an_environment_of_its_own():
    start(env={"DARI_HOME": "/a/home", "TOKEN": "secret"}, cwd="/")
"""
TIDY = """
import subprocess

def test_that_waits_for_its_process():
    subprocess.run(["true"], check=True)
"""


def run_tests(folder: Path, tests: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_one.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.left_processes", "-p", "no:cacheprovider"]
    place = ["-c", os.devnull, "--rootdir", str(folder), "--basetemp", str(folder / "made")]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([*command, *place, *options, str(folder)], cwd=ROOT, env=env, capture_output=True, text=True)


def test_a_run_fails_that_leaves_processes_and_they_are_named_and_ended(tmp_path: Path) -> None:
    done = run_tests(tmp_path, LEAVING, "-n", "1")
    assert done.returncode == EXIT_CODE, done.stdout
    pids = [path.stem for path in tmp_path.glob("*.pid")]
    assert len(pids) == 2
    for pid in pids:
        assert f"{pid}  sleep 600" in done.stdout
        wait_for_end(int(pid))
    assert done.stdout.count("started by test_one.py::test_that_starts_") == 2
    assert "in / with DARI_HOME=/a/home\n" in done.stdout and "TOKEN" not in done.stdout
    assert done.stdout.count("child of ") == 2


def test_a_run_passes_whose_processes_have_ended(tmp_path: Path) -> None:
    done = run_tests(tmp_path, TIDY)
    assert done.returncode == pytest.ExitCode.OK, done.stdout
