"""Bytes to screen: our engine, pyte in a process of its own, tmux through the only door it has, a terminal."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.bridge.usage import user_cpu_s
from bench.errors import BenchError
from bench.results import Measurement, Target
from bench.terminal.contenders import OURS, PYTE, PYTE_HISTORY, PYTE_HOME, TMUX, TMUX_USER_CPU, Contender
from bench.terminal.data import COLS, ROWS, on_the_wire
from bench.terminal.feeding import feeder
from bench.terminal.plan import Plan
from bench.terminal.tmux import tmux_server
from dari.terminal.engine.engine import Engine, make_engine

Measurements = Iterator[Measurement[Contender]]

CHUNK = 65_536
PYTE_BYTES = 131_072
"""It parses half a megabyte a second, and not faster when there is more."""
TARGETS = (Target(PYTE, "≥", 90.0), Target(TMUX, "≥", 2.5), Target(TMUX_USER_CPU, "≥", 2.5))


def parse(plan: Plan) -> Measurements:
    for kind, path in plan.files.items():
        yield _parse(plan, kind, path)


def _parse(plan: Plan, kind: str, path: Path) -> Measurement[Contender]:
    contenders = (OURS, PYTE, PYTE_HISTORY, TMUX, TMUX_USER_CPU)
    measured = Measurement[Contender](f"parse, {kind}", "MB/s", contenders, TARGETS)
    data = on_the_wire(path.read_bytes())
    part = plan.scratch.path / f"{kind}.part"
    part.write_bytes(data[:PYTE_BYTES])
    engine = make_engine(COLS, ROWS)
    with ExitStack() as held:
        held.callback(engine.close)
        tmux = held.enter_context(tmux_server(plan.scratch.path))
        in_tmux = held.enter_context(feeder(plan.scratch.path, "tmux", lambda line: tmux.open(line, COLS, ROWS)))
        child = held.enter_context(_pyte())
        for number in range(plan.rounds + 1):
            ours_s = _feed(engine, data)
            pyte_s, history_s = (_ask(child, part, has_history) for has_history in (False, True))
            before_s = user_cpu_s(tmux.pid)
            tmux_s = in_tmux.cat(path)
            cpu_s = user_cpu_s(tmux.pid) - before_s
            if number == 0:  # histories are filled, memory is had
                continue
            for contender, size, took_s in (
                (OURS, len(data), ours_s),
                (PYTE, PYTE_BYTES, pyte_s),
                (PYTE_HISTORY, PYTE_BYTES, history_s),
                (TMUX, len(data), tmux_s),
                (TMUX_USER_CPU, len(data), max(cpu_s, 0.01)),
            ):
                measured.add(contender, size / took_s / 1e6)
    return measured


def _feed(engine: Engine, data: bytes) -> float:
    began = time.perf_counter()
    for at in range(0, len(data), CHUNK):
        engine.feed(data[at : at + CHUNK])
    return time.perf_counter() - began


def _pyte() -> subprocess.Popen[str]:
    script = Path(__file__).with_name("pyte_child.py")
    return subprocess.Popen(
        [str(PYTE_HOME.python), str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _ask(child: subprocess.Popen[str], path: Path, has_history: bool) -> float:
    assert child.stdin is not None and child.stdout is not None
    told = {"file": str(path), "cols": COLS, "rows": ROWS, "history": has_history}
    child.stdin.write(json.dumps(told) + "\n")
    child.stdin.flush()
    line = child.stdout.readline()
    if not line:
        raise BenchError("pyte ended", "its error is above")
    return float(json.loads(line)["s"])
