"""What an agent waits for: a command's end, a text to appear, an answer beside twenty panes that print."""

import random
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from subprocess import DEVNULL

from bench.errors import BenchError
from bench.results import Measurement, Target, interleave
from bench.terminal.contenders import BIN, LIBTMUX, OURS, POLLER, TMUX, TMUX_POLLED, Contender
from bench.terminal.daemon import cruxd
from bench.terminal.feeding import Feeder, feeder
from bench.terminal.pane_measures import open_pane
from bench.terminal.plan import Plan
from bench.terminal.talking import Client, client
from bench.terminal.tmux import CALL_TIMEOUT_S, Tmux, tmux_server

Measurements = Iterator[Measurement[Contender]]

POLLER_S = 0.05
LOUD = 20
MOST_P99_MS = 50.0


def execute(plan: Plan) -> Measurements:
    """`true`, from the request to the result with its exit code, one after another."""
    measured = Measurement[Contender](
        "`execute true`, p50",
        "ms",
        (OURS, LIBTMUX, TMUX_POLLED),
        (Target(LIBTMUX, "≤", 1 / 10), Target(TMUX_POLLED, "≤", 1 / 5)),
    )
    with ExitStack() as held:
        crux = held.enter_context(cruxd(plan.scratch))
        ours = held.enter_context(crux.client())
        open_pane(ours)
        tmux = held.enter_context(tmux_server(plan.scratch.path))
        polled, theirs = tmux.open(), tmux.open()
        env = {**tmux.env, "LIBTMUX_SOCKET": tmux.socket}
        peer = held.enter_context(client(LIBTMUX, [str(LIBTMUX.program)], env, plan.scratch))
        few = max(3, plan.calls // 5)
        numbers = iter(range(10**6))
        _run_true(ours)
        _run_true_in_tmux(peer, theirs)
        yield interleave(
            measured,
            plan.rounds,
            (
                (OURS, lambda: _p50_ms(plan.calls, lambda: _run_true(ours))),
                (LIBTMUX, lambda: _p50_ms(few, lambda: _run_true_in_tmux(peer, theirs))),
                (TMUX_POLLED, lambda: _p50_ms(few, lambda: tmux.execute(polled, "true", f"E{next(numbers):05d}X"))),
            ),
        )


def wait(plan: Plan) -> Measurements:
    """From the moment a program prints a text until whoever waits for it knows."""
    measured = Measurement[Contender](
        "a text appears: p50 until it is known", "ms", (OURS, POLLER), (Target(POLLER, "≤", 1 / 20),)
    )
    with ExitStack() as held:
        crux = held.enter_context(cruxd(plan.scratch))
        ours = held.enter_context(crux.client())
        here = held.enter_context(feeder(plan.scratch.path, "dari", lambda line: open_pane(ours, line)))
        tmux = held.enter_context(tmux_server(plan.scratch.path))
        panes = list[str]()
        there = held.enter_context(feeder(plan.scratch.path, "tmux", lambda line: panes.append(tmux.open(line))))
        chance = random.Random(5)
        times = max(3, plan.calls // 4)

        def p50_ms(await_text: Callable[[str], float], pane: Feeder, tell: Callable[[str], None]) -> float:
            return statistics.median(
                _latency_s(f"w{chance.randrange(10**9):09d}", chance, pane, tell, await_text) for _ in range(times)
            ) * 1000  # fmt: skip

        def await_ours(text: str) -> float:
            if not ours.finish()["matched"]:
                raise BenchError(f"{text} was not found")
            return time.monotonic()

        yield interleave(
            measured,
            plan.rounds,
            (
                (OURS, lambda: p50_ms(await_ours, here, lambda text: ours.begin("crux_wait_for_output", pattern=text))),
                (POLLER, lambda: p50_ms(lambda text: _poll(tmux, panes[0], text), there, lambda text: None)),
            ),
        )


def crowd(plan: Plan) -> Measurements:
    """Twenty panes print at full speed; commands are run in one beside them."""
    middle = Measurement[Contender](
        f"`execute true` beside {LOUD} panes that print: p50", "ms", (OURS, TMUX_POLLED), ()
    )
    worst = Measurement[Contender](
        f"`execute true` beside {LOUD} panes that print: p99", "ms", (OURS, TMUX_POLLED), (), limit=MOST_P99_MS
    )
    with cruxd(plan.scratch) as crux, crux.client() as ours:
        quiet = open_pane(ours)
        for _ in range(LOUD):
            ours.call("crux_create_pane", command="yes", focus=False)
        _run_true(ours, quiet)
        for _ in range(plan.rounds):
            _add_both(OURS, middle, worst, _times_ms(plan.calls, lambda: _run_true(ours, quiet)))
    with tmux_server(plan.scratch.path) as tmux:
        pane = tmux.open()
        for _ in range(LOUD):
            tmux.open("yes")
        numbers = iter(range(10**6))
        for _ in range(plan.rounds):
            took = _times_ms(max(3, plan.calls // 20), lambda: tmux.execute(pane, "true", f"E{next(numbers):05d}X"))
            _add_both(TMUX_POLLED, middle, worst, took)
    yield from (middle, worst)


def shim(plan: Plan) -> Measurements:
    """One `display-message -p`, as a script calls it: the `tmux` of `crux tmux --install`, and the real one."""
    measured = Measurement[Contender]("one call of `tmux`, p50", "ms", (OURS, TMUX), (Target(TMUX, "≤", 2),))
    words = ("display-message", "-p", "#{pane_id}")
    with cruxd(plan.scratch) as crux, crux.client() as ours, tmux_server(plan.scratch.path) as tmux:
        open_pane(ours)
        folder = plan.scratch.path / "shim"
        subprocess.run([str(BIN / "crux"), "tmux", "--install", str(folder)], env=crux.env, check=True, stdout=DEVNULL)
        env = {**crux.env, "CRUX_SOCKET": str(crux.socket)}

        def call_ours() -> None:
            subprocess.run([str(folder / "tmux"), *words], env=env, check=True, stdout=DEVNULL, timeout=CALL_TIMEOUT_S)

        yield interleave(
            measured,
            plan.rounds,
            (
                (OURS, lambda: _p50_ms(plan.calls, call_ours)),
                (TMUX, lambda: _p50_ms(plan.calls, lambda: tmux.run(*words))),
            ),
        )


def _latency_s(
    text: str, chance: random.Random, pane: Feeder, tell: Callable[[str], None], await_text: Callable[[str], float]
) -> float:
    tell(text)
    pane.print_later(f"{text}\r\n", 0.03 + chance.random() * POLLER_S * 2)
    seen = await_text(text)
    return seen - pane.printed_at()


def _poll(tmux: Tmux, pane: str, text: str) -> float:
    return tmux.await_text(pane, text, POLLER_S)


def _run_true(ours: Client, pane: str = "") -> None:
    result = ours.call("crux_execute_command", command="true", **({"pane_id": pane} if pane else {}))
    if result["exit_code"] != 0 or result["status"] != "done":
        raise BenchError(f"`true` ended with {result}")


def _run_true_in_tmux(peer: Client, pane: str) -> None:
    result = peer.call("run_command", command="true", pane_id=pane)
    if result["exit_status"] != 0:
        raise BenchError(f"libtmux-mcp: `true` ended with {result}")


def _p50_ms(times: int, run: Callable[[], None]) -> float:
    return statistics.median(_times_ms(times, run))


def _times_ms(times: int, run: Callable[[], None]) -> list[float]:
    took = []
    for _ in range(times):
        began = time.perf_counter()
        run()
        took.append((time.perf_counter() - began) * 1000)
    return took


def _add_both(
    contender: Contender, middle: Measurement[Contender], worst: Measurement[Contender], took: list[float]
) -> None:
    middle.add(contender, statistics.median(took))
    worst.add(contender, sorted(took)[min(len(took) - 1, round(len(took) * 0.99) - 1)])
