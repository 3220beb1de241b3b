"""How much is measured, and with what: every count of a run is bounded by this."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.processes import Scratch


@dataclass(frozen=True, slots=True)
class Plan:
    rounds: int
    calls: int
    """Of each kind in a round."""
    starts: int
    drain_mb: int
    """Through a pane in one round."""
    flood_mb: int
    """Through one pane while its memory is watched."""
    scratch: Scratch
    files: Mapping[str, Path]
    """The data, by kind."""
