"""The names that `--only` takes."""

from collections.abc import Callable, Iterator

from bench.bridge import command_measures, daemon_measures, gateway_measures
from bench.bridge.contenders import Contender
from bench.bridge.plan import Plan
from bench.results import Measurement

MEASURES: dict[str, Callable[[Plan], Iterator[Measurement[Contender]]]] = {
    "warm": command_measures.warm,
    "cold": command_measures.cold,
    "added": gateway_measures.added,
    "rate": gateway_measures.rate,
    "lists": gateway_measures.lists,
    "memory": daemon_measures.memory,
    "sandbox": daemon_measures.sandbox,
}
