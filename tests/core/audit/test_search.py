"""A log is searched page by page, newest first, and one record is found by its number."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dari.core.audit.log import AuditLog
from dari.core.audit.query import RecordFilter, RecordPage, query, record_at, search
from dari.core.audit.record import AuditRecord
from dari.errors import InvalidInput
from tests.core.audit.days import DAY, Days, Opened


def fill(log: AuditLog, days: Days, calls: int = 30) -> None:
    """Calls of two clients on three days, in files of a few records each."""
    for number in range(calls):
        days.at = DAY + timedelta(hours=2 * number)
        log.call(
            "fs" if number % 2 else "git",
            f"tool_{number % 3}",
            "ok" if number % 5 else "denied",
            part="bridge",
            who=f"mcp:client{number % 2}",
            session=f"s{number % 4}",
            arguments=f'{{"path":"/home/ann/{number}","note":"Grüße"}}'.encode(),
        )
        log.flush()


def pages(log: AuditLog, wanted: RecordFilter, **more: int) -> list[RecordPage]:
    found = [search(log.directory, wanted, **more)]
    while found[-1].next:
        found.append(search(log.directory, wanted, cursor=found[-1].next, **more))
    return found


@pytest.fixture
def days() -> Days:
    return Days()


@pytest.fixture
def log(opened: Opened, days: Days) -> AuditLog:
    log = opened(now=days, max_file_bytes=1500)
    fill(log, days)
    return log


def test_pages_hold_every_record_once_newest_first(log: AuditLog) -> None:
    everything = query(log.directory, limit=1000)
    for limit in (1, 7, 1000):
        found = [one for page in pages(log, RecordFilter(), limit=limit) for one in page.records]
        assert found == everything
    assert len(everything) == 31 and everything[0].n == 31  # and "opened"


def test_a_search_reads_no_more_than_it_may_and_goes_on_from_there(log: AuditLog) -> None:
    wanted = RecordFilter(tool="tool_0")
    found = pages(log, wanted, limit=1000, max_read=4)
    assert max(page.read for page in found) == 4 and len(found) == 8
    assert [one for page in found for one in page.records] == query(log.directory, tool="tool_0", limit=1000)


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        (RecordFilter(session="s1"), 8),
        (RecordFilter(session="s"), 0),
        (RecordFilter(who="mcp:client1", outcome="denied"), 3),
        (RecordFilter(who="mcp:*"), 30),
        (RecordFilter(server="f?"), 15),
        (RecordFilter(part="bridge"), 30),
        (RecordFilter(kind="opened"), 1),
        (RecordFilter(kind="call", tool="tool_1"), 10),
        (RecordFilter(text="/HOME/ann/7"), 1),
        (RecordFilter(text="grüsse"), 30),
        (RecordFilter(text="/home/bob"), 0),
        (RecordFilter(since=DAY + timedelta(hours=50)), 5),
        (RecordFilter(until=DAY + timedelta(hours=4), kind="call"), 2),
    ],
)
def test_a_filter_finds_what_agrees_with_all_of_it(log: AuditLog, wanted: RecordFilter, numbers: int) -> None:
    found = search(log.directory, wanted, limit=1000).records
    assert len(found) == numbers
    assert all(wanted.match(one) for one in found)


def test_a_name_that_json_escapes_is_found_too(opened: Opened) -> None:
    log = opened()
    name = 'a"b\\c\u202e<script>'
    log.call("fs", name, "ok", who=name, session=name)
    log.flush()
    found = search(log.directory, RecordFilter(session=name, who=name)).records
    assert [one.tool for one in found] == [name]


def test_every_record_is_found_by_its_number(log: AuditLog) -> None:
    for wanted in query(log.directory, limit=1000):
        found = record_at(log.directory, wanted.n)
        assert isinstance(found, AuditRecord) and found == wanted
    for number in (0, -1, 32, 10**18):
        assert record_at(log.directory, number) is None


def test_a_record_is_found_in_one_long_file(opened: Opened) -> None:
    log = opened()
    for number in range(300):
        log.call("fs", f"tool{'x' * (number % 40)}", "ok")
    log.flush()
    assert [record_at(log.directory, n).n for n in range(1, 302)] == list(range(1, 302))  # type: ignore[union-attr]


@pytest.mark.parametrize("cursor", ["x", "2026-11-16:3", "2026-11-16.0:", "../etc.0:1", "2026-11-16.0:-1", "9" * 100])
def test_a_cursor_that_is_none_is_refused(log: AuditLog, cursor: str) -> None:
    with pytest.raises(InvalidInput, match="cursor"):
        search(log.directory, RecordFilter(), cursor=cursor)


def test_a_cursor_of_a_file_that_is_gone_goes_on_with_older_ones(log: AuditLog) -> None:
    assert search(log.directory, RecordFilter(), cursor="2099-01-01.3:70", limit=3).records[0].n == 31
    assert search(log.directory, RecordFilter(), cursor="2000-01-01.0:70").records == []


def test_records_are_told_of_as_they_are_written(opened: Opened) -> None:
    log = opened()
    log.flush()
    heard: list[AuditRecord] = []
    stop = log.subscribe(heard.extend)
    log.call("fs", "one", "ok")
    log.call("fs", "two", "ok")
    log.flush()
    assert [(one.n, one.tool) for one in heard] == [(2, "one"), (3, "two")]
    stop()
    log.call("fs", "three", "ok")
    log.flush()
    assert len(heard) == 2
