"""Memory and processor time of child servers, with what they start."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import cast

import pytest

from dari.bridge.usage import MAX_SAMPLES, ServerUsage
from dari.process.child import Child

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="memory is read from /proc")


def child(name: str, pid: int) -> Child:
    return cast(Child, SimpleNamespace(pid=pid, spec=SimpleNamespace(name=name)))


def test_a_server_is_measured_with_what_it_started() -> None:
    code = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'input()']); print('up', flush=True)"
    code += "; input(); p.kill()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"up\n"
        times = itertools.count(10)
        usage = ServerUsage(lambda: [child("one", process.pid)], clock=lambda: float(next(times)))
        sample = usage.sample()["one"]
        assert sample.processes == 2 and sample.memory_bytes > 5_000_000 and sample.cpu_percent == 0
        assert usage.sample()["one"].cpu_percent >= 0
        process.communicate(b"\n")


def test_processor_time_is_what_was_used_since_the_sample_before() -> None:
    times = iter((10.0, 11.0))
    usage = ServerUsage(lambda: [child("own", os.getpid())], clock=lambda: next(times))
    usage.sample()
    before = os.times().user
    while os.times().user - before < 0.05:
        sum(range(10_000))
    assert usage.sample()["own"].cpu_percent >= 4


def test_the_history_is_short_and_ends_with_the_server() -> None:
    times = itertools.count(10)
    running = [child("own", os.getpid())]
    usage = ServerUsage(lambda: running, clock=lambda: float(next(times)))
    for _ in range(MAX_SAMPLES + 10):
        usage.sample()
    assert len(usage.history("own")) == MAX_SAMPLES
    running.clear()
    assert usage.sample() == {} and usage.history("own") == []


def test_who_asks_twice_within_a_second_gets_the_same_sample() -> None:
    times = iter((10.0, 10.5, 11.0))
    usage = ServerUsage(lambda: [child("own", os.getpid())], clock=lambda: next(times))
    assert usage.sample() == usage.sample() and len(usage.history("own")) == 1
    usage.sample()
    assert len(usage.history("own")) == 2


def test_a_process_that_is_gone_is_left_out() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert ServerUsage(lambda: [child("gone", process.pid)]).sample() == {}
