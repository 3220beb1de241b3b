"""The shape in which every test runner's output comes back."""

from __future__ import annotations

from collections.abc import Sequence

from dari.terminal.reading.result import Document, Parsed, ranges

MAX_MESSAGE_CHARS = 2000


class Report:
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
