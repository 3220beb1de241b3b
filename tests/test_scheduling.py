"""The order of a run on several workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = """
import pytest

def note(name):
    with open(__file__ + ".log", "a") as log:
        print(name, file=log)

def test_short():
    note("short")

@pytest.mark.timeout(60)
def test_with_a_lower_limit():
    note("lower limit")

@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.xdist_group("three")
def test_of_a_group(number):
    note(f"group {number}")

@pytest.mark.e2e
def test_of_processes():
    note("processes")

@pytest.mark.timeout(240)
def test_long():
    note("long")

@pytest.mark.timeout(200)
@pytest.mark.xdist_group("two")
def test_of_a_long_group():
    note("long group 1")

@pytest.mark.xdist_group("two")
@pytest.mark.timeout(200)
def test_of_a_long_group_too():
    note("long group 2")

@pytest.fixture(scope="module")
def shared():
    note("shared")

def test_that_shares_something(shared):
    note("sharing 1")

def test_between():
    note("between")

def test_that_shares_it_too(shared):
    note("sharing 2")
"""
CONFTEST = """
from tests.support import scheduling

def pytest_configure(config):
    config.pluginmanager.register(scheduling)
"""
ORDER = ["long group 1", "long group 2", "long", "processes", "group 1", "group 2", "group 3"]
ORDER += ["shared", "sharing 1", "sharing 2", "short", "lower limit", "between"]


def run_tests(folder: Path, workers: int) -> list[str]:
    (folder / "test_one.py").write_text(TESTS)
    (folder / "conftest.py").write_text(CONFTEST)
    place = ["-c", os.devnull, "--rootdir", str(folder), "--basetemp", str(folder / "made")]
    marks = ["-W", "ignore::pytest.PytestUnknownMarkWarning"]
    spread = ["-n", str(workers), "--dist", "loadgroup"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *place, *marks, *spread, str(folder)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return (folder / "test_one.py.log").read_text().splitlines()


def test_what_may_take_longest_begins_first_and_what_shares_a_fixture_stays_together(tmp_path: Path) -> None:
    assert run_tests(tmp_path, 1) == ORDER


def test_every_test_and_every_shared_fixture_runs_once_on_several_workers(tmp_path: Path) -> None:
    assert sorted(run_tests(tmp_path, 3)) == sorted(ORDER)
