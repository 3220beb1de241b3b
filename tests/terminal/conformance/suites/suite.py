"""Suites that others wrote, run from where their files lie: what a case is, and what may fail.

None of their files is in this repository. `baselines.json` says for each suite how many cases pass at least and,
where we have run it ourselves, which ones fail: another failure is news, and so is one that no longer fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

BASELINES = Path(__file__).with_name("baselines.json")
EngineName = Literal["ghostty", "bittty"]


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    status: Literal["passed", "failed", "skipped"]
    why: str = ""
    """What was shown instead, or why it could not be asked."""


class Baseline(msgspec.Struct, frozen=True):
    of: int
    """Cases that were run when it was recorded; as many more as newer files have may fail."""
    least: int
    """Cases that passed then."""
    fails: tuple[str, ...] = ()
    """Those that failed, by name; empty where only the number is known."""
    files: str = ""
    """The version that it was recorded with."""


@dataclass(frozen=True, slots=True)
class Suite:
    name: str
    find: Callable[[Path], list[Path]]
    """The folders or files of the suite below a folder; none when it is not there."""
    run: Callable[[list[Path], EngineName], Iterator[Case]]


@dataclass(frozen=True, slots=True)
class Result:
    suite: str
    cases: tuple[Case, ...]

    def names(self, status: str) -> list[str]:
        return [case.name for case in self.cases if case.status == status]

    @property
    def passed(self) -> int:
        return len(self.names("passed"))

    @property
    def asked(self) -> int:
        return self.passed + len(self.names("failed"))

    def news(self, baseline: Baseline | None) -> list[str]:
        """What is worse than the baseline."""
        if baseline is None:
            return [f"{self.suite} has no baseline"]
        if baseline.fails:
            new = sorted(set(self.names("failed")) - set(baseline.fails))
            if len(new) <= self.asked - baseline.of:
                return []  # newer files: these may be cases that were not there
            return [f"{self.suite}: {name} fails and did not" for name in new]
        if self.passed < baseline.least:
            return [f"{self.suite}: {self.passed} pass, and {baseline.least} did"]
        return []

    def mended(self, baseline: Baseline | None) -> list[str]:
        return sorted(set(baseline.fails) & set(self.names("passed"))) if baseline else []


def baselines(engine: EngineName) -> dict[str, Baseline]:
    return msgspec.json.decode(BASELINES.read_bytes(), type=dict[str, dict[str, Baseline]])[engine]


def rows_of(text: str) -> list[str]:
    """Lines without the blanks at their ends and without empty ones at the end."""
    rows = [line.rstrip() for line in text.split("\n")]
    while rows and not rows[-1]:
        rows.pop()
    return rows


def first_difference(ours: list[str], theirs: list[str]) -> str:
    for number in range(max(len(ours), len(theirs))):
        left = ours[number] if number < len(ours) else ""
        right = theirs[number] if number < len(theirs) else ""
        if left != right:
            return f"row {number}: {left[:70]!r}, expected {right[:70]!r}"
    return ""
