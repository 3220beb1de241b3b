"""Streams through our engine and through @xterm/headless, and what is left of their disagreement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.terminal.conformance.differences import Aspect, Difference, explain
from tests.terminal.conformance.oracle import Oracle, Screen, show_ours
from tests.terminal.conformance.streams import Stream, generate

BATCH = 200


@dataclass(frozen=True, slots=True)
class Disagreement:
    seed: int
    stream: Stream
    ours: Screen
    theirs: Screen

    def __str__(self) -> str:
        lines = [
            f"seed {self.seed}: {', '.join(sorted(aspects(self.stream, self.ours, self.theirs)))} differ",
            f"  {self.stream}",
        ]
        for name, screen in (("ours", self.ours), ("xterm.js", self.theirs)):
            lines.append(f"  {name:<9} cursor {screen.cursor}  {screen.text}  {screen.fell}".rstrip())
        if self.stream.resizes:
            lines += [f"  whole     {list(self.ours.whole)}", f"  xterm.js  {list(self.theirs.whole)}"]
        elif self.ours.text == self.theirs.text:
            pairs = [
                (at, row, ours, theirs)
                for row, (left, right) in enumerate(zip(self.ours.rows, self.theirs.rows, strict=True))
                for at, (ours, theirs) in enumerate(zip(left, right, strict=True))
                if ours != theirs
            ]
            lines += [f"  cell {at},{row}: {ours} / {theirs}" for at, row, ours, theirs in pairs[:3]]
        return "\n".join(lines)


@dataclass(slots=True)
class Outcome:
    streams: int = 0
    equal: int = 0
    known: Counter[str] = field(default_factory=Counter)
    new: list[Disagreement] = field(default_factory=list)


def aspects(stream: Stream, ours: Screen, theirs: Screen) -> frozenset[Aspect]:
    """In what the two differ; styles are looked at only where the text is the same.

    How much history a larger screen takes back, and so where the cursor is, is for each terminal to choose: after
    a resize it is the whole text that must be the same, history and screen together.
    """
    if theirs.fell:
        return frozenset({"fall"})
    found: set[Aspect] = set()
    if stream.resizes:
        return frozenset({"text"} if ours.whole != theirs.whole else ())
    if ours.text != theirs.text or ours.is_alternate != theirs.is_alternate:
        found.add("text")
    if ours.cursor != theirs.cursor:
        found.add("cursor")
    if "text" not in found and ours.rows != theirs.rows:
        found.add("style")
    return frozenset(found)


def compare(oracle: Oracle, seeds: Iterable[int]) -> Outcome:
    outcome = Outcome()
    chosen = list(seeds)
    for start in range(0, len(chosen), BATCH):
        batch = chosen[start : start + BATCH]
        streams = [generate(seed) for seed in batch]
        for seed, stream, theirs in zip(batch, streams, oracle.show(streams), strict=True):
            judge(outcome, seed, stream, theirs)
    return outcome


def judge(outcome: Outcome, seed: int, stream: Stream, theirs: Screen) -> None:
    ours = show_ours(stream)
    outcome.streams += 1
    found = aspects(stream, ours, theirs)
    if not found:
        outcome.equal += 1
    elif reasons := explain(stream, found):
        outcome.known.update(reason.name for reason in reasons)
    else:
        outcome.new.append(Disagreement(seed, stream, ours, theirs))


def minimise(oracle: Oracle, found: Disagreement) -> Disagreement:
    """The fewest steps that still disagree in a way nobody has explained."""
    size = max(1, len(found.stream.steps) // 2)
    while True:
        shorter = _shorter(oracle, found, size)
        if shorter is not None:
            found = shorter
        elif size == 1:
            return found
        else:
            size //= 2


def _shorter(oracle: Oracle, found: Disagreement, size: int) -> Disagreement | None:
    steps, stream = found.stream.steps, found.stream
    tries = [
        Stream(steps[:at] + steps[at + size :], stream.cols, stream.rows)
        for at in range(0, len(steps), size)
        if size < len(steps)
    ]
    for attempt, theirs in zip(tries, oracle.show(tries), strict=True):
        outcome = Outcome()
        judge(outcome, found.seed, attempt, theirs)
        if outcome.new:
            return outcome.new[0]
    return None


def still_differs(oracle: Oracle, known: Difference) -> frozenset[Aspect]:
    """The aspects in which the example of a known difference differs today."""
    return aspects(known.example, show_ours(known.example), oracle.show([known.example])[0])
