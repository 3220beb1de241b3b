"""What the daemon takes: memory while it waits, and time to start a child with walls around it."""

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator

from bench.bridge import household
from bench.bridge.commands import commands_of
from bench.bridge.contenders import MCPDO, MCPORTER, OURS, Contender, present
from bench.bridge.plan import Plan
from bench.bridge.usage import pss_mb, rss_mb
from bench.errors import BenchError
from bench.machine import ROOT, clean_environment
from bench.results import Measurement

Measurements = Iterator[Measurement[Contender]]

MOST_DAEMON_MB = 40.0
MOST_SANDBOX_MS = 25.0
STARTS_TIMEOUT_S = 120.0


def memory(plan: Plan) -> Measurements:
    """The daemon itself; servers below it are the same for all."""
    idle = Measurement("daemon, idle: RSS", "MB", (OURS, MCPORTER), (), limit=MOST_DAEMON_MB)
    idle_pss = Measurement("daemon, idle: PSS", "MB", (OURS, MCPORTER), ())
    used = Measurement("daemon with one server, after 5 calls and lists: RSS", "MB", (OURS, MCPORTER, MCPDO), ())
    for contender in present(used.contenders):
        commands = commands_of(contender, plan.scratch)
        with household.visit():
            try:
                commands.run(commands.start)
                daemon = household.adopted()
                if contender in idle.contenders:
                    idle.add(contender, rss_mb(daemon))
                    idle_pss.add(contender, pss_mb(daemon))
                for _ in range(5):
                    commands.time_call()
                    commands.time_list()
                used.add(contender, rss_mb(daemon))
            finally:
                commands.run(commands.stop)
    yield from (idle, idle_pss, used)


def sandbox(plan: Plan) -> Measurements:
    """Start until the first reply, with walls and without; the difference of the medians."""
    command = [sys.executable, "-m", "bench.bridge.sandbox_starts", str(plan.starts)]
    done = subprocess.run(
        command, cwd=ROOT, env=clean_environment(), capture_output=True, text=True, timeout=STARTS_TIMEOUT_S
    )
    if done.returncode:
        raise BenchError(f"sandbox_starts exited with {done.returncode}: {done.stderr[-1200:]}")
    took: dict[str, list[float]] = json.loads(done.stdout)
    plain = Measurement("start of a child until it answers, no walls", "ms", (OURS,), ())
    for ms in took.pop("plain"):
        plain.add(OURS, ms)
    yield plain
    middle = statistics.median(plain.rounds[OURS.name])
    for kind, times in took.items():
        overhead = Measurement(f"sandbox at start, {kind}: added", "ms", (OURS,), (), limit=MOST_SANDBOX_MS)
        for ms in times:
            overhead.add(OURS, ms - middle)
        yield overhead
