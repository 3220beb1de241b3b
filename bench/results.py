"""Numbers of one measurement, the ratios we promise, and the verdict on each."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, TypeVar

Unit = Literal["calls/s", "requests/s", "connections/s", "frames/s", "µs", "ms", "kB", "MB", "MB/s", "%"]


class Named(Protocol):
    """Who is measured; every benchmark has contenders of its own kind."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...


C = TypeVar("C", bound=Named)


@dataclass(frozen=True, slots=True)
class Target:
    """Our number must be at least (or at most) `factor` times the number of `peer`; `aim` is what we hope for."""

    peer: Named
    bound: Literal["≥", "≤"]
    factor: float
    aim: float | None = None

    def __str__(self) -> str:
        return f"{self.bound} {self.factor:.3g}×" + (f" (aim {self.aim:g}×)" if self.aim is not None else "")


@dataclass(frozen=True, slots=True)
class Verdict:
    measure: str
    unit: Unit
    peer: Named
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
class Measurement(Generic[C]):
    """`contenders` begins with ours."""

    name: str
    unit: Unit
    contenders: tuple[C, ...]
    targets: tuple[Target, ...]
    limit: float | None = None
    """What our own number may be at most, whatever the peers have."""
    rounds: dict[str, list[float]] = field(default_factory=dict)

    @property
    def ours(self) -> C:
        return self.contenders[0]

    @property
    def is_over_limit(self) -> bool:
        value = self.median(self.ours)
        return self.limit is not None and (value is None or value > self.limit)

    def add(self, contender: Named, value: float) -> None:
        self.rounds.setdefault(contender.name, []).append(value)

    def median(self, contender: Named) -> float | None:
        values = self.rounds.get(contender.name)
        return statistics.median(values) if values else None

    def verdicts(self) -> Iterator[Verdict]:
        """One for each peer; peers without a target are there to be seen."""
        targets = {target.peer.name: target for target in self.targets}
        for peer in self.contenders[1:]:
            yield Verdict(
                *(self.name, self.unit, peer, self.median(self.ours), self.median(peer)),
                ratios=self._ratios(peer),
                target=targets.get(peer.name),
            )

    def _ratios(self, peer: Named) -> tuple[float, float, float] | None:
        ours, theirs = self.median(self.ours), self.median(peer)
        if ours is None or not theirs or 0 in self.rounds[peer.name]:
            return None
        paired = zip(self.rounds[self.ours.name], self.rounds[peer.name], strict=True)
        each = [mine / other for mine, other in paired]
        return min(each), ours / theirs, max(each)


def interleave(
    measurement: Measurement[C], rounds: int, running: Sequence[tuple[C, Callable[[], float]]]
) -> Measurement[C]:
    """Each contender once per round, so that a slow minute of the machine meets all of them."""
    for _ in range(rounds):
        for contender, measure in running:
            measurement.add(contender, measure())
    return measurement
