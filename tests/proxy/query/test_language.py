"""The filter language: what it finds, how it binds, and which place it names when it cannot read a filter."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dari.errors import InvalidInput
from dari.proxy.flow import Flow, WebSocketFrame
from dari.proxy.query.filters import TrafficFilter, sql_of
from dari.proxy.query.language import EXAMPLES, KEYS, MAX_FILTER_CHARS, STATES, FlowFilterError, narrow, parse
from dari.proxy.query.language import test_of as make_test
from dari.proxy.query.search import Sources, search
from dari.proxy.recording.store import FlowStore
from tests.support.flows import SECRET, Hiding, flow, running, tunnel
from tests.support.wire import ROOT


def fits(text: str, tested: Flow) -> bool:
    return make_test(text)(tested)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("", "http://a.test/"),
        ("host:a.test", "http://api.a.test/"),
        ("/items", "http://a.test/items"),
        ("ITEMS a.test", "http://a.test/items"),
        ("host:a.test or host:b.test", "http://b.test/"),
        ("host:a.test OR host:b.test /x", "http://a.test/"),
        ("not host:b.test", "http://a.test/"),
        ("-host:b.test -host:c.test", "http://a.test/"),
        ("-(host:b.test or host:c.test)", "http://a.test/"),
        ("(host:a.test or host:b.test) and /x", "http://b.test/x"),
        ('"/a b"', "http://a.test/a b"),
        ('url:"say \\"hi\\""', 'http://a.test/say "hi"'),
        (r"regex:/(users|items)/\d+$", "http://a.test/items/12"),
        ("http://a.test/items", "http://a.test/items"),
        ("localhost:8080", "http://localhost:8080/"),
        ("host:localhost:8080", "http://localhost:8080/"),
        ("a-b", "http://a.test/a-b"),
    ],
)
def test_a_filter_finds_the_flows_it_describes(text: str, url: str) -> None:
    assert fits(text, flow(1, url))


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("host:a.test", "http://ba.test/"),
        ("host:a.test /x", "http://a.test/y"),
        ("host:a.test or host:b.test /x", "http://b.test/y"),
        ("-host:a.test", "http://a.test/"),
        ("not not -host:a.test", "http://a.test/"),
        ('"or"', "http://a.test/"),
    ],
)
def test_a_filter_leaves_out_the_others(text: str, url: str) -> None:
    assert not fits(text, flow(1, url))


def test_every_key_is_shown_with_an_example_that_can_be_read() -> None:
    for name, key in KEYS.items():
        assert key.example.startswith(f"{name}:")
        assert key.meaning
        parse(key.example)
    for example in EXAMPLES:
        parse(example)


@pytest.mark.parametrize(
    ("text", "tested"),
    [
        ("method:get,put", flow(1)),
        ("status:2xx", flow(1)),
        ("type:json", flow(1)),
        ('header:"accept: */*"', flow(1)),
        ("body:OK", flow(1)),
        ("time:>5", flow(1)),
        ("time:<=8ms", flow(1)),
        ("time:<1s", flow(1)),
        ("time:8", flow(1)),
        ("size:<1k", flow(1)),
        ("size:>=10", flow(1)),
        ("process:CURL", flow(1, process="curl", pid=7)),
        ("process:7", flow(1, process="curl", pid=7)),
        ("rule:r1", flow(1, rule_ids=("r1", "r2"))),
        ("rule:*", flow(1, rule_ids=("r1",))),
        ("event:map_local", flow(1, event="map_local")),
        ("is:error", flow(1, status=500)),
        ("is:running", running(1)),
        ("is:done", flow(1)),
        ("is:tunnel", tunnel(1)),
        ("is:replay", flow(1, replay_of=3)),
        ("is:changed", flow(1, rule_ids=("r1",))),
        ("is:websocket", flow(1, frames=[WebSocketFrame(True, 1, b"hi", 2, 0)])),
        ("is:stream", flow(1, response_headers=[(b"Content-Type", b"text/event-stream")])),
        ("since:2020-01-01", flow(1)),
    ],
)
def test_each_key_reads_its_part_of_a_flow(text: str, tested: Flow) -> None:
    assert fits(text, tested)
    assert not fits(f"-{text}", tested)


def test_since_counts_from_now() -> None:
    young, old = flow(1), flow(2)
    young.started_unix_ms = int(time.time() * 1000) - 60_000
    old.started_unix_ms = young.started_unix_ms - 3_600_000
    assert [fits("since:10m", each) for each in (young, old)] == [True, False]
    assert [fits("since:2h", each) for each in (young, old)] == [True, True]


@pytest.mark.parametrize(
    ("text", "start", "end", "says"),
    [
        ("hots:a.test", 0, 4, "hots"),
        ("host:a.test stauts:5xx", 12, 18, "stauts"),
        ("status:abc", 7, 10, "status"),
        ("x status:", 2, 9, "status"),
        ("host:a.test (status:5xx", 12, 13, "("),
        ("host:a.test)", 11, 12, ")"),
        ('body:"never closed', 5, 18, '"'),
        ("host:a or", 8, 9, "missing"),
        ("or host:a", 0, 1, "missing"),
        ("()", 1, 2, "missing"),
        ("regex:(", 6, 7, ""),
        ("is:nothing", 3, 10, "error"),
        ("event:x", 6, 7, "tunnel"),
        ("time:fast", 5, 9, "time"),
        ("size:1t", 5, 7, "size"),
        ("since:soon", 6, 10, "since"),
    ],
)
def test_a_filter_that_cannot_be_read_names_the_place_and_the_next_step(
    text: str, start: int, end: int, says: str
) -> None:
    with pytest.raises(FlowFilterError) as refused:
        parse(text)
    assert (refused.value.start, refused.value.end) == (start, end)
    assert says in refused.value.message
    assert refused.value.hint


def test_a_misspelt_key_is_answered_with_the_one_that_was_meant() -> None:
    with pytest.raises(FlowFilterError) as refused:
        parse("stauts:5xx")
    assert "did you mean status:?" in refused.value.hint


@pytest.mark.parametrize("text", ["(" * 500, "-" * 900 + "a", "not " * 200 + "a", "a" * (MAX_FILTER_CHARS + 1)])
def test_a_filter_made_to_exhaust_the_reader_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse(text)


def test_hostile_text_is_text() -> None:
    for text in ("<img src=x>", "‮abc", "​", "%00", "'; DROP TABLE flows; --", "\\", "a\tb\nc"):
        assert not fits(text, flow(1))


def test_a_filter_cannot_be_used_to_guess_what_is_hidden() -> None:
    tested = flow(1, f"http://a.test/?key={SECRET}", response=SECRET.encode())
    for text in (f"url:{SECRET}", f"body:{SECRET}", f"regex:{SECRET}", SECRET):
        assert not make_test(text, None, Hiding())(tested), text


def test_the_database_reads_only_what_a_filter_may_want() -> None:
    assert narrow("host:a.test status:5xx /x") == TrafficFilter(host="a.test", status="5xx")
    assert narrow("host:a.test or status:5xx") == TrafficFilter()
    assert narrow("-host:a.test") == TrafficFilter()
    assert sql_of(TrafficFilter(query="host:a.test /x"))[1] == sql_of(TrafficFilter(host="a.test"))[1]


def test_a_search_finds_stored_flows_by_a_filter(tmp_path: Path) -> None:
    store = FlowStore(tmp_path / "traffic.db")
    for number in range(1, 41):
        store.put(flow(number, f"http://{'ab'[number % 2]}.test/{number}", status=200 if number % 5 else 500))
    store.flush()
    found = search(Sources([], store), TrafficFilter(query="host:a.test status:5xx or /39"), limit=50)
    store.close()
    assert [each["id"] for each in found.flows] == [40, 39, 30, 20, 10]


def test_the_words_after_is_are_listed_in_its_help() -> None:
    assert all(state in KEYS["is"].meaning for state in STATES)


def test_the_guide_has_every_key() -> None:
    guide = (ROOT / "docs/guide/proxy.md").read_text()
    section = guide[guide.index("### Filters") : guide.index("## Breakpoints")]
    assert [key for key, each in KEYS.items() if f"`{each.example}`" not in section] == []
    assert all(state in section for state in STATES)
