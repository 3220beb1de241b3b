"""Numbers of one measurement, the ratios we promise, and the verdict on each."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bench.contenders import OURS, Contender

Unit = Literal["calls/s", "µs", "ms", "MB"]


@dataclass(frozen=True, slots=True)
class Target:
    """Our number must be at least (or at most) `factor` times the number of `peer`."""

    peer: Contender
    bound: Literal["≥", "≤"]
    factor: float

    def __str__(self) -> str:
        return f"{self.bound} {self.factor:g}×"


@dataclass(frozen=True, slots=True)
class Verdict:
    measure: str
    unit: Unit
    peer: Contender
    ours: float | None
    theirs: float | None
    ratios: tuple[float, float, float] | None  # lowest round, of the medians, highest round
    target: Target | None

    @property
    def missed(self) -> bool:
        """A number that could not be taken misses its target too."""
        if self.target is None:
            return False
        if self.ratios is None:
            return True
        ratio = self.ratios[1]
        return ratio < self.target.factor if self.target.bound == "≥" else ratio > self.target.factor


@dataclass(slots=True)
class Measurement:
    name: str
    unit: Unit
    contenders: tuple[Contender, ...]
    targets: tuple[Target, ...]
    rounds: dict[str, list[float]] = field(default_factory=dict)

    def add(self, contender: Contender, value: float) -> None:
        self.rounds.setdefault(contender.name, []).append(value)

    def median(self, contender: Contender) -> float | None:
        values = self.rounds.get(contender.name)
        return statistics.median(values) if values else None

    def verdicts(self) -> Iterator[Verdict]:
        """One for each peer; peers without a target are there to be seen."""
        targets = {target.peer: target for target in self.targets}
        for peer in self.contenders:
            if peer is not OURS:
                yield Verdict(
                    *(self.name, self.unit, peer, self.median(OURS), self.median(peer)),
                    ratios=self._ratios(peer),
                    target=targets.get(peer),
                )

    def _ratios(self, peer: Contender) -> tuple[float, float, float] | None:
        ours, theirs = self.median(OURS), self.median(peer)
        if ours is None or theirs is None:
            return None
        paired = zip(self.rounds[OURS.name], self.rounds[peer.name], strict=True)
        each = [mine / other for mine, other in paired]
        return min(each), ours / theirs, max(each)


def interleave(
    measurement: Measurement, rounds: int, running: Sequence[tuple[Contender, Callable[[], float]]]
) -> Measurement:
    """Each contender once per round, so that a slow minute of the machine meets all of them."""
    for _ in range(rounds):
        for contender, measure in running:
            measurement.add(contender, measure())
    return measurement
