"""What is kept and what it costs: snapshots beside tmux's captures, memory, starts."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from bench.bridge.usage import rss_mb
from bench.errors import BenchError
from bench.machine import ROOT
from bench.results import Measurement, Target, interleave
from bench.terminal import data
from bench.terminal.contenders import LIBTMUX, OURS, TMUX, Contender
from bench.terminal.daemon import cruxd
from bench.terminal.feeding import feeder
from bench.terminal.plan import Plan
from bench.terminal.talking import client
from bench.terminal.tmux import HISTORY_ROWS, Tmux, tmux_server
from dari.terminal.engine.engine import Engine, make_engine, restore_engine

Measurements = Iterator[Measurement[Contender]]

MOST_HISTORY_MB = 12.0
MOST_START_MS = 50.0


def snapshot(plan: Plan) -> Measurements:
    """10,000 rows of coloured output: kept and brought back, against tmux's capture of them, which is only text."""
    measured = Measurement[Contender](
        f"snapshot and restore of {HISTORY_ROWS:,} rows", "ms", (OURS, TMUX), (Target(TMUX, "≤", 1.0),)
    )
    path = plan.scratch.path / "colour-lines.txt"
    path.write_bytes(data.colour_lines(HISTORY_ROWS + data.ROWS))
    engine = make_engine(data.COLS, data.ROWS, HISTORY_ROWS)
    engine.feed(data.on_the_wire(path.read_bytes()))
    with ExitStack() as held:
        held.callback(engine.close)
        # A tenth of its history goes at once when it is full.
        tmux = held.enter_context(tmux_server(plan.scratch.path, HISTORY_ROWS * 2))
        panes = list[str]()

        def start(line: str) -> None:
            panes.append(tmux.open(line, data.COLS, data.ROWS))

        held.enter_context(feeder(plan.scratch.path, "tmux", start)).cat(path)
        _require_same(engine, tmux, panes[0])
        yield interleave(
            measured,
            max(plan.rounds, 5),
            (
                (OURS, lambda: _timed_ms(lambda: restore_engine(engine.snapshot()).close())),
                (TMUX, lambda: _timed_ms(lambda: tmux.run(*_capture(panes[0])))),
            ),
        )


def memory(plan: Plan) -> Measurements:
    """A process that has nothing but one screen, before and after its history is full; daemons that wait."""
    history = Measurement[Contender](
        f"{HISTORY_ROWS:,} rows of history: growth of RSS", "MB", (OURS, TMUX), (), limit=MOST_HISTORY_MB
    )
    idle = Measurement[Contender]("daemon, idle, one client: RSS", "MB", (OURS, TMUX), ())
    child = [sys.executable, "-m", "bench.terminal.history_child", str(plan.files["plain"])]
    done = subprocess.run(child, cwd=ROOT, capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise BenchError(f"history_child exited with {done.returncode}: {done.stderr[-1200:]}")
    history.add(OURS, float(done.stdout))
    with tmux_server(plan.scratch.path) as tmux:
        idle.add(TMUX, rss_mb(tmux.pid))
        with feeder(plan.scratch.path, "tmux", lambda line: tmux.open(line, data.COLS, data.ROWS)) as pane:
            before_mb = rss_mb(tmux.pid)
            pane.cat(plan.files["plain"])
            history.add(TMUX, rss_mb(tmux.pid) - before_mb)
    with cruxd(plan.scratch) as crux, crux.client():
        idle.add(OURS, rss_mb(crux.pid))
    yield from (history, idle)


def start(plan: Plan) -> Measurements:
    """An MCP client starts its server on stdio, while the daemon runs: exec until the first byte of `initialize`."""
    measured = Measurement[Contender](
        "start of `crux-mcp-bridge` until `initialize` is answered", "ms", (OURS, LIBTMUX), (), limit=MOST_START_MS
    )
    with cruxd(plan.scratch) as crux, tmux_server(plan.scratch.path) as tmux:
        env = {**tmux.env, "LIBTMUX_SOCKET": tmux.socket}

        def ours() -> None:
            with crux.client():
                measured.add(OURS, (time.perf_counter() - began) * 1000)

        def theirs() -> None:
            with client(LIBTMUX, [str(LIBTMUX.program)], env, plan.scratch):
                measured.add(LIBTMUX, (time.perf_counter() - began) * 1000)

        for _ in range(plan.starts):
            for run in (ours, theirs):
                began = time.perf_counter()
                run()
    yield measured


def _timed_ms(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return (time.perf_counter() - began) * 1000


def _capture(pane: str) -> tuple[str, ...]:
    return ("capture-pane", "-p", "-e", "-t", pane, "-S", f"-{HISTORY_ROWS}")


def _require_same(engine: Engine, tmux: Tmux, pane: str) -> None:
    """All rows are there on both sides, and ours come back as they were."""
    captured = tmux.run("capture-pane", "-p", "-t", pane, "-S", f"-{HISTORY_ROWS}").rstrip("\n").splitlines()
    text = engine.text(-engine.history, engine.rows)
    again = restore_engine(engine.snapshot())
    if again.text(-again.history, again.rows) != text:
        raise BenchError("the restored screen is not the one that was kept")
    again.close()
    rows = text.rstrip("\n").splitlines()
    if min(len(captured), len(rows)) < HISTORY_ROWS:
        raise BenchError(f"tmux has {len(captured)} rows, we have {len(rows)}")
    for mine, other in zip(rows[-1000:], captured[-1000:], strict=True):
        if mine != other:
            raise BenchError(f"tmux shows {other!r}, we {mine!r}")
