"""What agents did lately, as counters: calls by minute, tool, caller and outcome, and the sessions they came from.

The log tells of each batch as it is written, so a chart costs no reading. Only the first look reads the log backwards,
to fill in what was there before, in a thread and up to a limit. Memory is bounded: the oldest minutes and sessions go.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from dari.core.audit.record import AuditRecord, part_of
from dari.core.audit.verify import last_record, records_backwards

if TYPE_CHECKING:
    from dari.core.audit.log import AuditLog

MINUTE_S = 60
KEPT_MINUTES = 24 * 60
MAX_FIRST_READ = 100_000
MAX_COUNTERS = 50_000
MAX_SESSIONS = 500
MAX_SERIES = 8
BYTES_PER_TOKEN = 4
"""What a token of a result takes, roughly, as the tools that cut their results reckon."""
DURATION_LIMITS_MS = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000)
_FAILED = frozenset(["tool_error", "error", "denied", "timed_out", "limited"])
GroupBy = Literal["tool", "part", "outcome", "who"]


class Series(Struct, frozen=True, kw_only=True):
    """One name over time; each number is of one step."""

    name: str
    """Empty: all the others together."""
    calls: list[int]
    failed: list[int]
    tokens: list[int]


class CallActivity(Struct, frozen=True, kw_only=True):
    start_unix: float
    step_s: int
    series: list[Series]
    """The largest first."""
    durations: list[int]
    """Calls by how long they took: up to each of `duration_limits_ms`, and longer."""
    duration_limits_ms: list[int]
    is_cut: bool
    """Older calls of this time were not counted: there were too many."""


class SessionActivity(Struct, frozen=True, kw_only=True):
    """One client's session, in whatever parts it worked."""

    session: str
    who: str
    parts: list[str]
    first_unix: float
    last_unix: float
    calls: int
    failed: int
    tokens: int


class _Counter:
    __slots__ = ("calls", "durations", "failed", "result_bytes")

    def __init__(self) -> None:
        self.calls = self.failed = self.result_bytes = 0
        self.durations = [0] * (len(DURATION_LIMITS_MS) + 1)


_Minute = dict[tuple[str, str, str, str], _Counter]
"""By part, tool, caller and outcome."""


class _Session:
    __slots__ = ("who", "parts", "first", "last", "calls", "failed", "result_bytes")

    def __init__(self, who: str, at: float) -> None:
        self.who, self.parts = who, set[str]()
        self.first = self.last = at
        self.calls = self.failed = self.result_bytes = 0


class ActivityIndex:
    """`open` and the questions are for a thread or a loop; the log's own thread feeds it."""

    def __init__(self, log: AuditLog) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._minutes: dict[int, _Minute] = {}
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._count = 0
        self._early: list[AuditRecord] | None = []
        """What is written while the log is read for the first time."""
        self._stop: Callable[[], None] | None = None
        self._counts_from = 0.0
        """Calls before that time are not counted any more, or never were."""

    def open(self) -> None:
        """Read what is in the log and follow it from here on; the second time it returns at once. For a thread."""
        with self._opening:
            if self._stop is not None:
                return
            self._stop = self._log.subscribe(self._hear)
            self._log.flush()
            head = last_record(self._log.directory)
            newest = 0 if head is None else head.n
            self._read(newest)
            with self._lock:
                early, self._early = self._early or [], None
                for record in early:
                    if record.n > newest:
                        self._add(record)

    def close(self) -> None:
        if self._stop is not None:
            self._stop()

    def calls(
        self, minutes: int, steps: int, group_by: GroupBy, who: str = "", part: str = "", *, agents_only: bool = False
    ) -> CallActivity:
        """The last `minutes`, in steps of whole minutes; without what people do in the console, if so asked."""
        at = int(self._log.now()) // MINUTE_S
        width = max(1, -(-minutes // max(1, steps)))
        number = -(-minutes // width)
        first = at - width * number + 1
        found: dict[str, list[_Counter]] = {}
        durations = [0] * (len(DURATION_LIMITS_MS) + 1)
        index = ("part", "tool", "who", "outcome").index(group_by)
        with self._lock:
            for minute, counted in self._minutes.items():
                if not first <= minute <= at:
                    continue
                for key, counter in counted.items():
                    if (who and key[2] != who) or (part and key[0] != part) or (agents_only and is_console(key[2])):
                        continue
                    durations = [a + b for a, b in zip(durations, counter.durations, strict=True)]
                    steps_of = found.get(key[index])
                    if steps_of is None:
                        steps_of = found[key[index]] = [_Counter() for _ in range(number)]
                    into = steps_of[(minute - first) // width]
                    into.calls += counter.calls
                    into.failed += counter.failed
                    into.result_bytes += counter.result_bytes
        return CallActivity(
            start_unix=float(first * MINUTE_S),
            step_s=width * MINUTE_S,
            series=_largest(found, number),
            durations=durations,
            duration_limits_ms=list(DURATION_LIMITS_MS),
            is_cut=first * MINUTE_S < self._counts_from,
        )

    def sessions(self, limit: int = 100, *, agents_only: bool = False) -> list[SessionActivity]:
        """Newest first."""
        with self._lock:
            wanted = [one for one in self._sessions.items() if not (agents_only and is_console(one[1].who))]
            newest = sorted(wanted, key=lambda one: one[1].last, reverse=True)[:limit]
            return [
                SessionActivity(
                    session=key,
                    who=one.who,
                    parts=sorted(one.parts),
                    first_unix=one.first,
                    last_unix=one.last,
                    calls=one.calls,
                    failed=one.failed,
                    tokens=one.result_bytes // BYTES_PER_TOKEN,
                )
                for key, one in newest
            ]

    def _read(self, newest: int) -> None:
        oldest_unix = self._log.now() - KEPT_MINUTES * MINUTE_S
        read = 0
        for record in records_backwards(self._log.directory):
            if record.n > newest:
                continue
            read += 1
            at = record.at.timestamp()
            if at < oldest_unix or read > MAX_FIRST_READ:
                self._counts_from = max(self._counts_from, at if read > MAX_FIRST_READ else 0.0)
                return
            with self._lock:
                self._add(record)

    def _hear(self, records: Sequence[AuditRecord]) -> None:
        with self._lock:
            if self._early is not None:
                self._early += records
                return
            for record in records:
                self._add(record)

    def _add(self, record: AuditRecord) -> None:
        at = record.at.timestamp()
        if record.session:
            self._add_to_session(record, at)
        if record.kind != "call":
            return
        number = int(at) // MINUTE_S
        minute = self._minutes.get(number)
        if minute is None:
            minute = self._minutes[number] = {}
        key = part_of(record), record.tool, record.who, record.outcome
        counter = minute.get(key)
        if counter is None:
            counter = minute[key] = _Counter()
            self._count += 1
            self._forget_oldest(number)
        counter.calls += 1
        counter.failed += record.outcome in _FAILED
        counter.result_bytes += record.result_bytes
        place = next((i for i, limit in enumerate(DURATION_LIMITS_MS) if record.ms <= limit), len(DURATION_LIMITS_MS))
        counter.durations[place] += 1

    def _add_to_session(self, record: AuditRecord, at: float) -> None:
        one = self._sessions.get(record.session)
        if one is None:
            one = self._sessions[record.session] = _Session(record.who, at)
            if len(self._sessions) > MAX_SESSIONS:
                oldest = min(self._sessions, key=lambda key: self._sessions[key].last)
                del self._sessions[oldest]
        one.first, one.last = min(one.first, at), max(one.last, at)
        if record.kind == "call":
            one.calls += 1
            one.failed += record.outcome in _FAILED
            one.result_bytes += record.result_bytes
        if part := part_of(record):
            one.parts.add(part)

    def _forget_oldest(self, now: int) -> None:
        while self._minutes and (self._count > MAX_COUNTERS or min(self._minutes) < now - KEPT_MINUTES):
            oldest = min(self._minutes)
            self._count -= len(self._minutes.pop(oldest))
            self._counts_from = max(self._counts_from, float((oldest + 1) * MINUTE_S))


def is_console(who: str) -> bool:
    """Whether a person's page made the call."""
    return who == "app" or who.startswith("app:")


def _largest(found: dict[str, list[_Counter]], number: int) -> list[Series]:
    """The names with most calls, and all the others as one."""
    ordered = sorted(found, key=lambda name: (-sum(one.calls for one in found[name]), name))
    shown = ordered if len(ordered) <= MAX_SERIES else ordered[: MAX_SERIES - 1]
    series = [_series(name, [found[name]], number) for name in shown]
    rest = [found[name] for name in ordered[len(shown) :]]
    return [*series, _series("", rest, number)] if rest else series


def _series(name: str, steps: Sequence[Sequence[_Counter]], number: int) -> Series:
    return Series(
        name=name,
        calls=[sum(one[at].calls for one in steps) for at in range(number)],
        failed=[sum(one[at].failed for one in steps) for at in range(number)],
        tokens=[sum(one[at].result_bytes for one in steps) // BYTES_PER_TOKEN for at in range(number)],
    )
