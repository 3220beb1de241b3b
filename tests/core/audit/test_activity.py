"""Counters over the log: they agree with it, whenever they are opened, and their memory is bounded."""

from __future__ import annotations

from datetime import timedelta

import pytest

import dari.core.audit.activity as activity
from dari.core.audit.activity import ActivityIndex, CallActivity
from dari.core.audit.log import AuditLog
from tests.core.audit.days import DAY, Days, Opened


def add(
    log: AuditLog, tool: str, outcome: str = "ok", *, who: str = "mcp:a", session: str = "s1", **more: object
) -> None:
    log.call("crux", tool, outcome, part="crux", who=who, session=session, **more)  # type: ignore[arg-type]


def totals(found: CallActivity) -> dict[str, int]:
    return {each.name: sum(each.calls) for each in found.series}


@pytest.fixture
def days() -> Days:
    return Days()


@pytest.fixture
def log(opened: Opened, days: Days) -> AuditLog:
    return opened(now=days)


def test_what_was_written_before_and_after_it_was_opened_counts_once(log: AuditLog, days: Days) -> None:
    add(log, "one")
    add(log, "two", "error")
    index = ActivityIndex(log)
    index.open()
    add(log, "one")
    log.flush()
    index.open()
    assert totals(index.calls(60, 60, "tool")) == {"one": 2, "two": 1}
    assert totals(index.calls(60, 60, "outcome")) == {"ok": 2, "error": 1}
    index.close()
    add(log, "one")
    log.flush()
    assert totals(index.calls(60, 60, "tool"))["one"] == 2


def test_calls_stand_in_their_step(log: AuditLog, days: Days) -> None:
    index = ActivityIndex(log)
    index.open()
    for minutes in (0, 1, 2, 59, 61):
        days.at = DAY + timedelta(minutes=minutes)
        add(log, "one", result_bytes=400)
    log.flush()
    found = index.calls(60, 6, "tool")
    (series,) = found.series
    assert found.step_s == 600 and len(series.calls) == 6
    assert found.start_unix == (DAY + timedelta(minutes=2)).timestamp()
    assert series.calls == [1, 0, 0, 0, 0, 2] and series.tokens == [100, 0, 0, 0, 0, 200]


def test_a_caller_or_a_part_can_be_asked_for(log: AuditLog) -> None:
    index = ActivityIndex(log)
    index.open()
    add(log, "one", who="mcp:a")
    add(log, "one", who="mcp:b")
    log.call("git", "log", "ok", who="mcp:b")
    log.flush()
    assert totals(index.calls(5, 5, "tool", who="mcp:b")) == {"one": 1, "log": 1}
    assert totals(index.calls(5, 5, "who", part="crux")) == {"mcp:a": 1, "mcp:b": 1}
    assert totals(index.calls(5, 5, "part")) == {"crux": 2, "bridge": 1}


def test_many_names_are_the_largest_and_the_rest(log: AuditLog) -> None:
    index = ActivityIndex(log)
    index.open()
    for number in range(20):
        for _ in range(20 - number):
            add(log, f"tool{number:02}")
    log.flush()
    found = index.calls(5, 5, "tool").series
    assert [each.name for each in found] == [*(f"tool{n:02}" for n in range(7)), ""]
    assert sum(sum(each.calls) for each in found) == 210


def test_durations_are_a_histogram(log: AuditLog) -> None:
    index = ActivityIndex(log)
    index.open()
    for ms in (0.5, 2, 2, 50, 99_999):
        add(log, "one", ms=ms)
    log.flush()
    found = index.calls(5, 5, "tool")
    assert found.durations == [1, 2, 0, 0, 1, 0, 0, 0, 0, 0, 1] and len(found.duration_limits_ms) == 10


def test_a_session_is_told_with_its_parts(log: AuditLog, days: Days) -> None:
    index = ActivityIndex(log)
    index.open()
    add(log, "one", result_bytes=4000)
    days.at += timedelta(minutes=3)
    log.call("git", "log", "error", who="mcp:a", session="s1")
    log.call("git", "log", "ok", who="mcp:b", session="s2")
    log.hold("crux", "execute", who="mcp:b", session="s2", arguments=b"{}", error="needs approval", pid=7)
    log.flush()
    second, first = sorted(index.sessions(), key=lambda each: each.session, reverse=True)
    assert (first.who, first.parts, first.calls, first.failed, first.tokens) == (
        "mcp:a",
        ["bridge", "crux"],
        2,
        1,
        1000,
    )
    assert first.last_unix - first.first_unix == 180 and second.calls == 1


def test_memory_is_bounded(log: AuditLog, days: Days, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "MAX_COUNTERS", 10)
    monkeypatch.setattr(activity, "MAX_SESSIONS", 5)
    index = ActivityIndex(log)
    index.open()
    for number in range(40):
        days.at = DAY + timedelta(minutes=number)
        add(log, f"tool{number}", session=f"s{number}")
    log.flush()
    found = index.calls(60, 60, "tool")
    assert sum(totals(found).values()) == 10 and found.is_cut
    assert [each.session for each in index.sessions()] == ["s39", "s38", "s37", "s36", "s35"]
    assert not index.calls(5, 5, "tool").is_cut


def test_a_long_log_is_read_back_only_so_far(log: AuditLog, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(30):
        add(log, "one")
    log.flush()
    monkeypatch.setattr(activity, "MAX_FIRST_READ", 10)
    index = ActivityIndex(log)
    index.open()
    assert totals(index.calls(60, 60, "tool")) == {"one": 10}


def test_what_people_do_in_the_console_can_be_left_out(log: AuditLog) -> None:
    index = ActivityIndex(log)
    index.open()
    add(log, "one", who="app:console", session="page", ms=50)
    add(log, "one", who="apple", session="s1", ms=2)
    log.flush()
    assert totals(index.calls(5, 5, "who")) == {"app:console": 1, "apple": 1}
    agents = index.calls(5, 5, "who", agents_only=True)
    assert totals(agents) == {"apple": 1} and sum(agents.durations) == 1
    assert [each.session for each in index.sessions(agents_only=True)] == ["s1"]
