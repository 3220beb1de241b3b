from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.errors import InvalidInput
from dari.proxy.flow import Flow, WebSocketFrame
from dari.proxy.query import filters
from dari.proxy.query.filters import TrafficFilter
from dari.proxy.query.search import SearchResult, Sources, search
from dari.proxy.recording.store import FlowStore
from tests.support.flows import NOW_MS, SECRET, Hiding, flow

HOSTS = ["a.test", "b.a.test", "ba.test:8080", "other.example"]


def newest(*flows: Flow) -> list[Flow]:
    return sorted(flows, key=lambda one: -one.id)


def ids(found: SearchResult) -> list[int]:
    return [row["id"] for row in found.flows]


def pages(sources: Sources, wanted: TrafficFilter, **how: Any) -> list[int]:
    cursor, seen = None, []
    while True:
        found = search(sources, wanted, cursor=cursor, **how)
        seen += ids(found)
        cursor = found.next_cursor
        if cursor is None:
            return seen


flows = st.builds(
    lambda number, host, path, method, status, mime: flow(
        number, f"http://{host}{path}", method, status, response_headers=[(b"Content-Type", mime)]
    ),
    st.integers(1, 500),
    st.sampled_from(HOSTS),
    st.sampled_from(["/", "/Items/1", "/items?x=Y", "/é"]),
    st.sampled_from(["GET", "POST", "get"]),
    st.sampled_from([200, 204, 301, 404, 500, None]),
    st.sampled_from([b"text/html; charset=utf-8", b"application/json"]),
)
wanteds = st.builds(
    TrafficFilter,
    host=st.none() | st.sampled_from(["a.test", "*.a.test", "ba.test:8080", "A.TEST"]),
    method=st.none() | st.sampled_from(["GET", "post,put"]),
    status=st.none() | st.sampled_from(["200", "4xx", "300-499", "404,500-"]),
    url_contains=st.none() | st.sampled_from(["items", "É", "test/I"]),
    mime=st.none() | st.sampled_from(["json", "text/"]),
    has_error=st.none() | st.booleans(),
    since_unix_ms=st.none() | st.integers(NOW_MS, NOW_MS + 5000),
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlowStore]:
    opened = FlowStore(tmp_path_factory.mktemp("search") / "traffic.db", batch_s=0)
    yield opened
    opened.close()


placed = st.tuples(flows, st.sampled_from(["memory", "store", "both"]))


@settings(max_examples=200, deadline=None)
@given(st.lists(placed, unique_by=lambda one: one[0].id, max_size=40), wanteds, st.integers(1, 20))
def test_search_agrees_with_a_plain_filter_wherever_the_flows_are(
    store: FlowStore, made: list[tuple[Flow, str]], wanted: TrafficFilter, limit: int
) -> None:
    test = filters.test_of(wanted)
    expected = [one.id for one in newest(*(one for one, _ in made)) if test(one)]
    store.clear()
    for one, place in made:
        if place != "memory":
            store.put(one)
    store.flush()
    in_memory = newest(*(one for one, place in made if place != "store"))
    assert pages(Sources(in_memory, store), wanted, limit=limit) == expected
    assert pages(Sources(newest(*(one for one, _ in made))), wanted, limit=limit) == expected


def test_a_cursor_stays_good_while_new_flows_arrive() -> None:
    first = search(Sources(newest(*map(flow, range(1, 11)))), TrafficFilter(), limit=4)
    second = search(Sources(newest(*map(flow, range(1, 20)))), TrafficFilter(), limit=4, cursor=first.next_cursor)
    assert ids(first) == [10, 9, 8, 7] and ids(second) == [6, 5, 4, 3]


def test_the_last_page_has_no_cursor() -> None:
    found = search(Sources(newest(*map(flow, range(1, 5)))), TrafficFilter(), limit=4)
    assert ids(found) == [4, 3, 2, 1] and not found.truncated and found.next_cursor is None


@pytest.mark.parametrize("cursor", ["", "x", "MS54Lnk", "!!!", "é", "MS4tNS4wMDAwMDAwMA"])
def test_a_cursor_that_we_did_not_give_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidInput):
        search(Sources([flow()]), TrafficFilter(), cursor=cursor)


def test_a_cursor_of_another_filter_is_refused() -> None:
    found = search(Sources(newest(*map(flow, range(1, 5)))), TrafficFilter(), limit=1)
    with pytest.raises(InvalidInput):
        search(Sources([flow()]), TrafficFilter(method="GET"), cursor=found.next_cursor)


@pytest.mark.parametrize("limit", [0, 501])
def test_a_limit_out_of_range_is_refused(limit: int) -> None:
    with pytest.raises(InvalidInput):
        search(Sources([]), TrafficFilter(), limit=limit)


def test_the_token_budget_ends_a_page_and_the_cursor_goes_on_behind_it() -> None:
    sources = Sources(newest(*(flow(number, "http://a.test/" + "x" * 400) for number in range(1, 101))))
    found = search(sources, TrafficFilter(), token_budget=1000)
    assert 5 < found.count < 15 and found.tokens <= 1000
    assert found.truncated and found.stopped_by == "token_budget"
    assert pages(sources, TrafficFilter(), token_budget=1000) == list(range(100, 0, -1))


def test_one_row_is_given_even_when_it_is_above_the_budget() -> None:
    found = search(Sources([flow(1, "http://a.test/" + "x" * 5000)]), TrafficFilter(), token_budget=1)
    assert found.count == 1 and len(found.flows[0]["url"]) < 1100


def test_a_scan_that_is_too_long_stops_and_can_be_continued() -> None:
    sources = Sources(newest(*map(flow, range(1, 101))))
    found = search(sources, TrafficFilter(method="PUT"), scan=30)
    assert found.count == 0 and found.scanned == 30 and found.stopped_by == "scan" and found.next_cursor
    assert pages(sources, TrafficFilter(status=200), scan=30) == list(range(100, 0, -1))


def test_only_the_named_fields_are_given() -> None:
    found = search(
        Sources([flow(request=b"hi")]), TrafficFilter(), fields=["status", "request_headers", "response_body"]
    )
    (row,) = found.flows
    assert list(row) == ["id", "status", "request_headers", "response_body"]
    assert row["request_headers"] == "Host: api.test\nAccept: */*\n"
    assert row["response_body"]["kind"] == "json"


def test_an_unknown_field_names_those_that_exist() -> None:
    with pytest.raises(InvalidInput) as refused:
        search(Sources([]), TrafficFilter(), fields=["colour"])
    assert "request_headers" in refused.value.hint


def test_every_field_can_be_shown_and_shows_no_secret() -> None:
    from dari.proxy.query.fields import FIELDS

    one = flow(
        url=f"http://api.test/{SECRET}",
        request=SECRET.encode(),
        response=f'{{"k":"{SECRET}"}}'.encode(),
        request_headers=[(b"A", SECRET.encode()), (b"Content-Type", b"text/plain")],
        response_headers=[(b"B", SECRET.encode()), (b"Content-Type", b"application/json")],
        map_remote_to=f"http://x/{SECRET}",
    )
    found = search(Sources([one], redactor=Hiding()), TrafficFilter(), fields=list(FIELDS))
    assert SECRET not in str(found) and str(found).count("<redacted>") == 6


def test_ten_thousand_flows_in_memory_are_tested_once_each_and_stored_copies_never_loaded(tmp_path: Path) -> None:
    store = FlowStore(tmp_path / "traffic.db", batch_s=0)
    held = [flow(number) for number in range(10_000, 0, -1)]
    for one in held[:2000]:
        store.put(one)
    store.flush()
    loaded: list[int] = []
    load = store.get

    def counted(flow_id: int) -> Flow | None:
        loaded.append(flow_id)
        return load(flow_id)

    store.get = counted  # type: ignore[method-assign]
    found = search(Sources(held, store), TrafficFilter(method="PUT"))
    assert found.scanned == 10_000 and loaded == []
    read: list[int] = []
    ids = store.newest_ids

    def counted_ids(*how: Any) -> Iterator[int]:
        for one in ids(*how):
            read.append(one)
            yield one

    store.newest_ids = counted_ids  # type: ignore[method-assign, assignment]
    assert search(Sources(held, store), TrafficFilter(method="GET"), limit=20).scanned == 21
    assert len(read) <= 22
    store.close()


def test_stored_flows_are_narrowed_down_by_sql_before_they_are_loaded(tmp_path: Path) -> None:
    store = FlowStore(tmp_path / "traffic.db", batch_s=0)
    for number in range(1, 1001):
        store.put(flow(number, status=404 if number % 100 == 0 else 200))
    store.flush()
    found = search(Sources([], store), TrafficFilter(status="4xx"))
    assert found.count == 10 and found.scanned == 10
    store.close()


def test_messages_of_a_socket_are_shown_and_found() -> None:
    frames = [WebSocketFrame(True, 1, f"hello {SECRET}".encode(), 13, 5), WebSocketFrame(False, 2, b"\0", 1, 6)]
    sources = Sources([flow(1, frames=frames)], redactor=Hiding())
    (row,) = search(sources, TrafficFilter(body_contains="HELLO"), fields=["frames", "messages"]).flows
    assert row["messages"] == 2 and row["frames"][0]["text"] == "hello <redacted>"
    assert row["frames"][1]["text"] == "<opcode 2>"
    assert search(sources, TrafficFilter(body_contains=SECRET)).count == 0
