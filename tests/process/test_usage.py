"""Memory and processor time of a process with what it started."""

from __future__ import annotations

import os
import subprocess
import sys

from dari.process.usage import usage_of

_PROGRAM = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "data = bytearray(30_000_000); print('up', flush=True); input()"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
input()
"""


def test_children_count_with_their_parent_unless_they_are_asked_for() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", _PROGRAM], stdin=pipe, stdout=pipe) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        together = usage_of([parent.pid])[parent.pid]
        apart = usage_of([parent.pid, child])
        assert together.processes == 2 and together.memory_bytes > 30_000_000 and together.cpu_s > 0
        assert apart[parent.pid].processes == apart[child].processes == 1
        assert apart[child].memory_bytes > 30_000_000
        parent.communicate(b"\n")


def test_a_process_that_has_ended_is_left_out() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    assert ended.pid not in usage_of([ended.pid, os.getpid()])
