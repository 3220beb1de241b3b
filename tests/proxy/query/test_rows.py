"""Rows of the table of requests, and changes after a cursor."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from dari.errors import InvalidInput
from dari.proxy.query.filters import TrafficFilter
from dari.proxy.query.rows import MAX_ROWS, PATH_CHARS, ChangeLog, page, row, split
from dari.proxy.query.search import Sources
from dari.proxy.query.wait import MAX_WAITING
from dari.proxy.recording.ring import Ring
from dari.proxy.recording.store import FlowStore
from dari.text.redact import HIDING
from tests.support.flows import SECRET, Hiding, flow, running, tunnel

EVERYTHING = TrafficFilter()


def record(ring: Ring, *numbers: int) -> None:
    for number in numbers:
        ring.began(one := flow(number))
        ring.finished(one)


def ids(found: tuple[list[object], bool] | None) -> list[int]:
    assert found is not None
    return [each.id for each in found[0]]  # type: ignore[attr-defined]


def test_a_row_is_an_array_of_what_a_table_shows() -> None:
    made = row(flow(7, "https://api.test:8443/items?page=2", "POST", 201, rule_ids=("r1",), process="curl"), HIDING)
    assert msgspec.json.decode(msgspec.json.encode(made)) == [
        *(7, 1_790_000_000_070, "POST", "https", "api.test:8443", "/items?page=2", 201, "application/json"),
        *(0, 64, 8.0, "curl", ["r1"], "upstream", "done", None, None, None),
    ]


def test_a_tunnel_has_a_host_and_no_path() -> None:
    made = row(tunnel(1), HIDING)
    assert (made.method, made.host, made.path, made.event) == ("CONNECT", "secret.test:443", "", "tunnel")


@pytest.mark.parametrize(
    ("url", "host", "path"),
    [
        (f"http://a.test/{SECRET}/x", "a.test", "/<redacted>/x"),
        (f"http://{SECRET}@a.test/x?y", "<redacted>@a.test", "/x?y"),
        (f"http://{SECRET}.test", "<redacted>.test", "/"),
    ],
)
def test_secrets_are_hidden_in_host_and_path(url: str, host: str, path: str) -> None:
    made = row(flow(1, url, error=f"cannot reach {SECRET}"), Hiding())
    assert (made.host, made.path, made.error) == (host, path, "cannot reach <redacted>")


def test_a_path_of_a_megabyte_is_cut() -> None:
    assert len(row(flow(1, "http://a.test/" + "x" * 2**20), HIDING).path) == PATH_CHARS + 1


def test_pages_go_back_in_time_over_memory_and_database(tmp_path: Path) -> None:
    store = FlowStore(tmp_path / "traffic.db")
    for number in range(1, 101):
        store.put(flow(number))
    store.flush()
    sources = Sources([flow(number) for number in range(104, 94, -1)], store)
    seen: list[int] = []
    before_id: int | None = None
    while True:
        found = page(sources, EVERYTHING, before_id, 30)
        assert [each.id for each in found.rows] == sorted(each.id for each in found.rows)
        seen += [each.id for each in reversed(found.rows)]
        before_id = found.next_before_id
        if before_id is None:
            break
    store.close()
    assert seen == list(range(104, 0, -1))


@pytest.mark.parametrize("limit", [0, -1, MAX_ROWS + 1])
def test_a_page_has_a_bound(limit: int) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        page(Sources([]), EVERYTHING, None, limit)


def test_changes_are_what_began_or_ended_since_each_flow_once() -> None:
    ring = Ring()
    log = ChangeLog(ring, "run")
    record(ring, 1, 2)
    cursor = log.cursor
    assert ids(log.after(cursor, 10)) == []
    ring.began(third := flow(3))
    assert ids(log.after(cursor, 10)) == [3]
    ring.finished(third)
    record(ring, 4)
    assert ids(log.after(cursor, 10)) == [3, 4]
    assert ids(log.after(log.cursor, 10)) == []


def test_the_end_of_an_older_flow_is_a_change() -> None:
    ring = Ring()
    log = ChangeLog(ring, "run")
    ring.began(first := flow(1))
    record(ring, 2)
    cursor = log.cursor
    ring.finished(first)
    assert ids(log.after(cursor, 10)) == [1]


def test_more_changes_than_fit_are_cut_to_the_newest() -> None:
    ring = Ring()
    log = ChangeLog(ring, "run")
    cursor = log.cursor
    record(ring, *range(1, 51))
    found = log.after(cursor, 10)
    assert found is not None and found[1]
    assert ids(found) == list(range(41, 51))


@pytest.mark.parametrize(
    "cursor", ["", "x", "other.0.0", "run.1.0", "run.0.", "run.0.x", "run.0.99", "run.0.-1", "run.0.²"]
)
def test_a_cursor_of_elsewhere_is_stale(cursor: str) -> None:
    ring = Ring()
    record(ring, 1, 2)
    assert ChangeLog(ring, "run").after(cursor, 10) is None


def test_clearing_makes_a_cursor_stale_and_so_does_falling_behind() -> None:
    ring = Ring(capacity=10)
    log = ChangeLog(ring, "run")
    record(ring, 1, 2)
    cursor = log.cursor
    ring.clear()
    assert log.after(cursor, 10) is None
    cursor = log.cursor
    assert ids(log.after(cursor, 10)) == []
    record(ring, *range(3, 200))
    assert log.after(cursor, 10) is None


async def test_a_wait_ends_with_a_beginning_an_end_and_a_clearing() -> None:
    ring = Ring()
    log = ChangeLog(ring, "run")
    one = flow(1)
    for change in (lambda: ring.began(one), lambda: ring.finished(one), ring.clear):
        waiting = asyncio.create_task(log.wait(30))
        await asyncio.sleep(0)
        assert not waiting.done()
        change()
        change()
        await waiting
        assert ring.on_change == []


async def test_a_wait_ends_with_its_time_and_there_are_not_too_many() -> None:
    ring = Ring()
    log = ChangeLog(ring, "run")
    await log.wait(0.01)
    assert ring.on_change == []
    ring.on_change.extend([lambda: None] * MAX_WAITING)
    with pytest.raises(InvalidInput):
        await log.wait(1)


def test_flows_that_do_not_fit_are_named_so_that_a_page_can_drop_them() -> None:
    rows, gone = split([running(1), flow(2)], lambda each: each.state != "done", HIDING)
    assert ([each.id for each in rows], gone) == ([1], [2])
