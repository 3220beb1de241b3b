"""How much is measured; every count and every time of a run is bounded by this."""

from dataclasses import dataclass

from bench.processes import Scratch


@dataclass(frozen=True, slots=True)
class Plan:
    rounds: int
    """Of load on the gateways, and of lists."""
    seconds: int
    """Of each load."""
    commands: int
    """How often each command is typed."""
    starts: int
    """How often each child is started."""
    scratch: Scratch
