"""What came of a test run: counted while it runs, described within a budget at its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from dari.text.sanitize import escape_and_shorten, strip_hidden

MAX_MESSAGE_CHARS = 500
MAX_TRACEBACK_CHARS = 6000
MAX_OUTPUT_CHARS = 2000
MAX_KEPT_FAILURES = 1000
MAX_ID_CHARS = 10_000
MAX_ALL_ID_CHARS = 64 << 20
"""Of the ids of one run that are remembered: some 500,000 tests."""
MAX_SLOWEST = 3
SLOW_MS = 500
TEARDOWN = " (teardown)"
"""Behind the id of a test whose own part passed."""
_CHARS_PER_TOKEN = 4
_MIN_TRACEBACK_CHARS = 200

Outcome = Literal["passed", "failed", "skipped", "error"]
Stopped = Literal["timed_out", "crashed", "output_limit", "fail_fast", "interrupted"]


class FailedTest(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """`id` is a target: what runs this test again."""

    id: str
    message: str
    path: str = ""
    line: int = 0
    """Where in the project it went wrong, from 1."""
    traceback: str = ""
    output: str = ""
    """The end of what the test printed."""
    is_error: bool = False
    """Outside of the test itself: set-up, collection, compilation."""


class SlowTest(Struct, frozen=True):
    id: str
    ms: int


class ChosenTest(Struct, frozen=True):
    target: str
    why: str


class ChosenTests(Struct, frozen=True):
    """Those that were chosen for the same reason."""

    why: str
    targets: list[str]


class TestReport(Struct, frozen=True, omit_defaults=True, rename="camel"):
    framework: str
    version: str
    passed: int
    failed: int
    skipped: int
    duration_ms: int
    collected: int
    errors: int = 0
    failures: list[FailedTest] = field(default_factory=list)
    not_described: int = 0
    """Failures that maxFailures left out."""
    slowest: list[SlowTest] = field(default_factory=list)
    not_run: int = 0
    """Collected, and not finished when the run was stopped."""
    stopped: Stopped | None = None
    running: list[str] = field(default_factory=list)
    """The tests that ran when it was stopped."""
    chosen: list[ChosenTests] = field(default_factory=list)
    """The tests that touch what was named, and why."""
    notes: list[str] = field(default_factory=list)


class RunLog:
    """Events of one run, in any order that a framework sends them."""

    def __init__(self, on_progress: Callable[[int, int | None, str], None] = lambda done, total, name: None) -> None:
        self.framework = ""
        self.version = ""
        self.notes: list[str] = []
        self.stopped: Stopped | None = None
        self.total: int | None = None
        self.failures: dict[str, FailedTest] = {}
        self.passed_ids: set[str] = set()
        self.seen_ids: set[str] = set()
        """Of all tests that began."""
        self.duration_s = 0.0
        self.running: dict[str, None] = {}
        self._counts: dict[Outcome, int] = {"passed": 0, "failed": 0, "skipped": 0, "error": 0}
        self._slow: list[SlowTest] = []
        self._on_progress = on_progress
        self._id_chars_left = MAX_ALL_ID_CHARS

    @property
    def done(self) -> int:
        return self._counts["passed"] + self._counts["failed"] + self._counts["skipped"]

    @property
    def has_failed(self) -> bool:
        return bool(self._counts["failed"] or self._counts["error"])

    @property
    def has_errors(self) -> bool:
        """Something outside of tests went wrong, or none of them ran."""
        return bool(self._counts["error"] or not self.done)

    def add_total(self, count: int) -> None:
        self.total = (self.total or 0) + count

    def start(self, test: str) -> None:
        if self._remember(test):
            self.running[test] = None

    def finish(self, test: str, outcome: Outcome, duration_s: float = 0.0, failure: FailedTest | None = None) -> None:
        """`failure` when it failed."""
        self.running.pop(test, None)
        is_remembered = self._remember(test)
        if failure is not None:
            self.fail(failure)
        if failure is None or outcome == "failed":
            self._counts[outcome] += 1
        if outcome == "passed" and is_remembered:
            self.passed_ids.add(test)
        if duration_s * 1000 >= SLOW_MS:
            self._slow = sorted(
                [*self._slow, SlowTest(test[:MAX_ID_CHARS], round(duration_s * 1000))], key=lambda one: -one.ms
            )
            del self._slow[MAX_SLOWEST:]
        self._on_progress(self.done, self.total, test[:MAX_ID_CHARS])

    def _remember(self, test: str) -> bool:
        """Whether it was: a test that found the pipe may make up names without end."""
        if test not in self.seen_ids:
            if len(test) > MAX_ID_CHARS or len(test) > self._id_chars_left:
                return False
            self._id_chars_left -= len(test)
            self.seen_ids.add(test)
        return True

    def fail(self, failure: FailedTest, *, is_better: bool = False) -> None:
        """An error outside of tests counts itself, a failed test is counted by `finish`.

        The first of an id stays, unless the next is a better description.
        """
        if failure.id in self.failures:
            if is_better:
                self.failures[failure.id] = _bounded(failure)
            return
        if failure.is_error:
            self._counts["error"] += 1
        if len(self.failures) < MAX_KEPT_FAILURES:
            self.failures[failure.id] = _bounded(failure)

    def describe(self, test: str, *, output: str) -> None:
        """What a failed test printed, where that is known later."""
        failure = self.failures[test]
        self.failures[test] = replace(failure, output=_tail(output, MAX_OUTPUT_CHARS))

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def report(self, *, max_failures: int, max_tokens: int) -> TestReport:
        """Every described failure has its message; tracebacks and output share what `max_tokens` leaves."""
        described = list(self.failures.values())[:max_failures]
        left = max_tokens * _CHARS_PER_TOKEN - sum(len(one.id) + len(one.message) + 60 for one in described)
        shown: list[FailedTest] = []
        for at, failure in enumerate(described):
            share = max(left, 0) // (len(described) - at)
            fitted = _fitted(failure, share)
            left -= len(fitted.traceback) + len(fitted.output)
            shown.append(fitted)
        failed = self._counts["failed"]
        collected = self.done if self.total is None else max(self.total, self.done)
        return TestReport(
            framework=self.framework,
            version=self.version,
            passed=self._counts["passed"],
            failed=failed,
            skipped=self._counts["skipped"],
            errors=self._counts["error"],
            duration_ms=round(self.duration_s * 1000),
            collected=collected,
            failures=shown,
            not_described=failed + self._counts["error"] - len(shown),
            slowest=list(self._slow),
            not_run=collected - self.done,
            stopped=self.stopped,
            running=list(self.running)[:20] if self.stopped else [],
            notes=list(self.notes),
        )


def clean(text: str) -> str:
    """Without escape sequences and hidden characters: tests print what they like."""
    return strip_hidden(text)


def shorten(text: str, max_chars: int) -> str:
    return escape_and_shorten(clean(text).strip("\n"), max_chars).text


def one_line(text: str) -> str:
    """The first line that says something."""
    lines = [line.strip() for line in clean(text).splitlines() if line.strip()]
    line = lines[0] if lines else "failed without a message"
    return line if len(line) <= MAX_MESSAGE_CHARS else f"{line[: MAX_MESSAGE_CHARS - 1]}…"


def _bounded(failure: FailedTest) -> FailedTest:
    message = one_line(failure.message)
    return FailedTest(
        id=clean(failure.id)[:1000],
        message=message,
        path=failure.path,
        line=failure.line,
        traceback=_without_repetition(shorten(failure.traceback, MAX_TRACEBACK_CHARS), failure, message),
        output=_tail(failure.output, MAX_OUTPUT_CHARS),
        is_error=failure.is_error,
    )


def _without_repetition(trace: str, failure: FailedTest, message: str) -> str:
    """Not what message, path and line have said: a reader pays for every word."""
    lines = trace.splitlines()
    if lines and lines[0].strip() == message:
        del lines[0]
    if lines and lines[-1].strip() == message:
        del lines[-1]
    lines = [line for line in lines if line.removeprefix("E").strip() not in (message, "Use -v to get more diff")]
    return "" if lines == [f"{failure.path}:{failure.line}"] else "\n".join(lines)


def _tail(text: str, max_chars: int) -> str:
    text = clean(text[-2 * max_chars :]).strip("\n")
    return text if len(text) <= max_chars else f"…{text[-max_chars:]}"


def _fitted(failure: FailedTest, share_chars: int) -> FailedTest:
    """The traceback first, then the output."""
    if len(failure.traceback) + len(failure.output) <= share_chars:
        return failure
    trace = failure.traceback
    if len(trace) > share_chars:
        trace = shorten(trace, share_chars) if share_chars >= _MIN_TRACEBACK_CHARS else ""
    left = share_chars - len(trace)
    output = _tail(failure.output, left) if left >= _MIN_TRACEBACK_CHARS else ""
    return FailedTest(failure.id, failure.message, failure.path, failure.line, trace, output, failure.is_error)
