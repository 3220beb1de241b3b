"""What the audit log costs: the same calls with it and without it in turn, in a process of their own."""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

from bench.contenders import OURS, Contender
from bench.errors import BenchError
from bench.machine import ROOT, clean_environment
from bench.results import Measurement, Target

UNRECORDED = Contender("unrecorded", "Dari without the log", OURS.python, ())
MAX_LOOP_US = 10.0
MAX_RECORD_US = 10.0
MIN_RATE = 0.95
START_TIMEOUT_S = 30
PAIRS_PER_S = 4


def measure(rounds: int, seconds: int) -> Iterator[Measurement[Contender]]:
    """The hub's log (`log`) and the spools of other processes (`spool`)."""
    for log, title in (("log", "the hub's log"), ("spool", "a spool")):
        loop = Measurement(f"CPU of the event loop for a record in {title}", "µs", (OURS,), (), limit=MAX_LOOP_US)
        both = Measurement(f"CPU of all threads for a record in {title}", "µs", (OURS,), (), limit=MAX_RECORD_US)
        rate = Measurement(
            f"`crab_rules_list` in turn, recorded in {title}",
            "calls/s",
            (OURS, UNRECORDED),
            (Target(UNRECORDED, "≥", MIN_RATE),),
        )
        for _ in range(rounds):
            echo, crab = _run("echo", log, 32, seconds), _run("crab", log, 1, seconds)
            loop.add(OURS, echo["loop_us"])
            both.add(OURS, echo["all_us"])
            rate.add(UNRECORDED, crab["plain"]["calls_per_s"])
            rate.add(OURS, crab["plain"]["calls_per_s"] * crab["ratio"])  # of neighbouring turns: the machine wanders
        yield loop
        yield both
        yield rate


def _run(tool: str, log: str, in_flight: int, seconds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="dari-bench-") as home:
        command = [
            *(str(OURS.python), "-m", "bench.drivers.audit_calls", tool, log),
            *("--in-flight", str(in_flight), "--pairs", str(seconds * PAIRS_PER_S)),
        ]
        environment = {**clean_environment(), "HOME": home}
        limit_s = seconds * PAIRS_PER_S * 3 + START_TIMEOUT_S
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit_s)
    if done.returncode:
        raise BenchError(f"the calls with {log} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))
