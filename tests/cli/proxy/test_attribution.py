"""Whose requests a run shows."""

from __future__ import annotations

import os
import subprocess
import sys

from dari.cli.proxy.run import RUN_ID_VARIABLE, Attribution


def waiting(mark: str | None) -> subprocess.Popen[bytes]:
    """A process that has its own environment by the time this returns, and lives until its stdin ends."""
    environment = {"PATH": os.environ["PATH"]} | ({RUN_ID_VARIABLE: mark} if mark else {})
    command = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_a_request_without_a_known_process_counts_by_time() -> None:
    assert Attribution().own([{"id": 1}]) == [{"id": 1}]


def test_a_process_that_was_there_before_is_somebody_else() -> None:
    assert Attribution().own([{"id": 1, "pid": os.getpid()}]) == []


def test_a_living_process_is_known_by_its_mark() -> None:
    own = Attribution()
    ours, other = waiting(own.mark), waiting("another run's")
    try:
        flows = [{"id": 1, "pid": ours.pid}, {"id": 2, "pid": other.pid}]
        assert own.own(flows) == flows[:1]
    finally:
        ours.communicate()
        other.communicate()


def test_a_process_that_came_and_went_is_taken_for_ours() -> None:
    own = Attribution()
    process = waiting(own.mark)
    process.communicate()
    assert own.own([{"id": 1, "pid": process.pid}]) == [{"id": 1, "pid": process.pid}]
