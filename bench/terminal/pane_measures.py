"""Bytes through whole panes, from a program to the screen: ours in cruxd, and tmux's."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from bench.bridge.usage import own_cpu_s, peak_mb, rss_mb
from bench.errors import BenchError
from bench.proxy.usage import forget_peak
from bench.results import Measurement, Target
from bench.terminal.contenders import OURS, TMUX, Contender
from bench.terminal.daemon import Crux, cruxd
from bench.terminal.data import PANE_COLS, PANE_ROWS, SIZES_MB, on_the_wire
from bench.terminal.feeding import Feeder, feeder
from bench.terminal.plan import Plan
from bench.terminal.talking import Client
from bench.terminal.tmux import tmux_server

Measurements = Iterator[Measurement[Contender]]

MOST_GROWTH_MB = 10.0
FIRST_MB = 64


def drain(plan: Plan) -> Measurements:
    """`cat` of log lines: the time until all of it is on the screen or in the history, and the server's CPU."""
    path = plan.files["plain"]
    times = max(1, plan.drain_mb // SIZES_MB["plain"])
    size = len(on_the_wire(path.read_bytes())) * times
    wall = Measurement[Contender](
        f"`cat` of {size / 1e6:.0f} MB in a pane", "MB/s", (OURS, TMUX), (Target(TMUX, "≥", 2.5),)
    )
    cpu = Measurement[Contender](
        f"`cat` of {size / 1e6:.0f} MB in a pane: CPU of the server", "ms", (OURS, TMUX), (Target(TMUX, "≤", 1.0),)
    )
    with ExitStack() as held:
        crux, ours = held.enter_context(_crux_feeder(plan))
        tmux = held.enter_context(tmux_server(plan.scratch.path))
        theirs = held.enter_context(feeder(plan.scratch.path, "tmux", tmux.open))
        for number in range(plan.rounds + 1):
            for contender, pane, pid in ((OURS, ours, crux.pid), (TMUX, theirs, tmux.pid)):
                before_s = own_cpu_s(pid)
                took_s = pane.cat(path, times if number else 1)
                if number:  # the first fills the histories
                    wall.add(contender, size / took_s / 1e6)
                    cpu.add(contender, (own_cpu_s(pid) - before_s) * 1000)
    yield from (wall, cpu)


def flood(plan: Plan) -> Measurements:
    """Very much through one pane; memory is looked at before, after, and at its highest between."""
    path = plan.files["plain"]
    size = len(on_the_wire(path.read_bytes()))
    times = max(1, round(plan.flood_mb * 1e6 / size))
    what = f"{size * times / 1e9:.2g} GB through one pane"
    growth = Measurement[Contender](f"{what}: growth of RSS", "MB", (OURS,), (), limit=MOST_GROWTH_MB)
    after = Measurement[Contender](f"{what}: RSS afterwards", "MB", (OURS,), ())
    rate = Measurement[Contender](what, "MB/s", (OURS,), ())
    with _crux_feeder(plan) as (crux, pane):
        pane.cat(path, FIRST_MB // SIZES_MB["plain"])  # history, and what is kept of a command's output, are full now
        before_mb = rss_mb(crux.pid)
        forget_peak(crux.pid)
        took_s = pane.cat(path, times)
        growth.add(OURS, max(0.0, peak_mb(crux.pid) - before_mb))
        after.add(OURS, rss_mb(crux.pid))
        rate.add(OURS, size * times / took_s / 1e6)
    yield from (growth, after, rate)


@contextmanager
def _crux_feeder(plan: Plan) -> Iterator[tuple[Crux, Feeder]]:
    with (
        cruxd(plan.scratch) as crux,
        crux.client() as client,
        feeder(plan.scratch.path, "dari", lambda line: open_pane(client, line)) as pane,
    ):
        yield crux, pane


def open_pane(client: Client, command: str = "") -> str:
    """The first pane of a daemon, which has the whole window; its id."""
    about = client.call("crux_create_pane", **({"command": command} if command else {}))
    if (about["cols"], about["rows"]) != (PANE_COLS, PANE_ROWS):
        raise BenchError(f"the pane has {about['cols']}×{about['rows']}, tmux's {PANE_COLS}×{PANE_ROWS}")
    return str(about["id"])
