"""What a parser gets (`OutputText`) and returns (`Parsed`); `SuiteReport` collects the results of a test run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

Document: TypeAlias = Any
"""Any JSON value."""

MAX_LINE_CHARS = 2000
"""Longer lines are cut for every parser but JSON's: no tool prints a wider row, and patterns stay cheap."""


class Parsed(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Text as data. A table has `headers` and `rows`, a list `items`, one thing `value`; reports have both of these.

    `lines` are the ranges of lines (first and last, counted from 1) that the data came from.
    """

    type: str
    parser: str = ""
    confidence: float = 0.0
    headers: list[str] | None = None
    rows: list[list[str]] | None = None
    items: list[dict[str, Document]] | None = None
    value: Document = None
    notes: list[str] = []
    lines: list[tuple[int, int]] = []


@dataclass(slots=True)
class OutputText:
    """The lines of an output, and the command that printed them where it is known."""

    raw: str
    command: str = ""
    is_wanted: bool = False
    """One parser was asked for by its name."""
    lines: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.lines = [line[:MAX_LINE_CHARS].expandtabs(8).rstrip() for line in self.raw.split("\n")]

    def blocks(self) -> list[tuple[int, list[str]]]:
        """Runs of lines without an empty line between them, each with the index of its first line."""
        blocks: list[tuple[int, list[str]]] = []
        start = None
        for index, line in enumerate([*self.lines, ""]):
            if line and start is None:
                start = index
            elif not line and start is not None:
                blocks.append((start, self.lines[start:index]))
                start = None
        return blocks


def ranges(indexes: Iterable[int]) -> list[tuple[int, int]]:
    """Indexes from 0 as ranges of line numbers from 1."""
    found: list[tuple[int, int]] = []
    for index in sorted(set(indexes)):
        if found and found[-1][1] == index:
            found[-1] = (found[-1][0], index + 1)
        else:
            found.append((index + 1, index + 1))
    return found


def share(used: Sequence[int] | set[int], lines: Sequence[str]) -> float:
    """How much of the lines that are not empty was understood, 0 to 1."""
    filled = sum(1 for line in lines if line)
    return min(1.0, len(set(used)) / filled) if filled else 0.0


def number(text: str | None) -> int | None:
    """A count or a line number; None where there is none, or none that anything could mean."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else None


MAX_MESSAGE_CHARS = 2000


class SuiteReport:
    """Counts in `value`, tests in `items`; failures come with a message, a file and a line where they are printed."""

    def __init__(self, framework: str) -> None:
        self.counts: dict[str, int] = {}
        self.framework = framework
        self.tests: dict[str, dict[str, Document]] = {}
        self.used: set[int] = set()
        self.extra: dict[str, Document] = {}

    def test(self, name: str, outcome: str = "", **more: Document) -> dict[str, Document]:
        """The entry of a test, made or completed; what is already known stays."""
        entry = self.tests.setdefault(name, {"name": name, "outcome": outcome})
        if outcome and not entry["outcome"]:
            entry["outcome"] = outcome
        for key, value in more.items():
            if value not in (None, "") and key not in entry:
                entry[key] = value[:MAX_MESSAGE_CHARS] if isinstance(value, str) else value
        return entry

    def count(self, outcome: str, amount: int) -> None:
        self.counts[outcome] = self.counts.get(outcome, 0) + amount

    def parsed(self, trust: float, notes: Sequence[str] = ()) -> Parsed:
        outcomes = [entry["outcome"] for entry in self.tests.values()]
        for outcome in ("passed", "failed", "errors", "skipped"):
            named = outcome.removesuffix("s") if outcome == "errors" else outcome
            self.counts.setdefault(outcome, outcomes.count(named))
        bad = self.counts["failed"] + self.counts["errors"]
        status = "failed" if bad or self.extra.get("is_failed") else "passed"
        self.extra.pop("is_failed", None)
        value = {"framework": self.framework, "status": status, **self.counts, **self.extra}
        items = list(self.tests.values())
        return Parsed(
            type="test_report", confidence=trust, value=value, items=items, notes=list(notes), lines=ranges(self.used)
        )
