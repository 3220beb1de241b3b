"""The names that `--only` takes."""

from collections.abc import Callable, Iterator

from bench.results import Measurement
from bench.terminal import call_measures, pane_measures, parse_measures, screenshots, state_measures
from bench.terminal.contenders import Contender
from bench.terminal.plan import Plan

MEASURES: dict[str, Callable[[Plan], Iterator[Measurement[Contender]]]] = {
    "parse": parse_measures.parse,
    "drain": pane_measures.drain,
    "execute": call_measures.execute,
    "wait": call_measures.wait,
    "crowd": call_measures.crowd,
    "shim": call_measures.shim,
    "screenshot": screenshots.screenshot,
    "snapshot": state_measures.snapshot,
    "flood": pane_measures.flood,
    "memory": state_measures.memory,
    "start": state_measures.start,
}
