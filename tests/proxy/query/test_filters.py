from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dari.errors import InvalidInput
from dari.proxy.flow import Flow
from dari.proxy.query import filters
from dari.proxy.query.filters import TrafficFilter
from dari.proxy.recording.bodies import BodyStore
from dari.text.redact import MAX_CHARS, REVEALED
from tests.support.flows import SECRET, Hiding, flow, running


def fits(one: Flow, **wanted: Any) -> bool:
    return filters.test_of(TrafficFilter(**wanted))(one)


@pytest.mark.parametrize(
    ("wanted", "authority", "is_wanted"),
    [
        ("example.com", "example.com", True),
        ("EXAMPLE.com", "Example.Com:8080", True),
        ("example.com", "api.example.com", True),
        ("example.com", "notexample.com", False),
        ("*.example.com", "example.com", False),
        ("*.example.com", "a.b.example.com", True),
        ("example.com:8080", "example.com:8080", True),
        ("example.com:8080", "example.com", False),
        ("example.com:80", "example.com", True),
        ("[::1]:9", "[::1]:9", True),
        ("::1", "[::1]:9", True),
        ("example.com", "example.com.", True),
    ],
)
def test_a_host_is_the_name_or_what_is_below_it(wanted: str, authority: str, is_wanted: bool) -> None:
    assert fits(flow(url=f"http://{authority}/"), host=wanted) is is_wanted


@pytest.mark.parametrize(
    ("wanted", "status", "is_wanted"),
    [
        (404, 404, True),
        ("404", 200, False),
        ("4xx", 499, True),
        ("4XX", 500, False),
        ("300-399", 304, True),
        ("500-", 503, True),
        ("404, 5xx", 502, True),
        ("200", None, False),
    ],
)
def test_a_status_is_exact_a_class_or_a_range(wanted: str | int, status: int | None, is_wanted: bool) -> None:
    assert fits(flow(status=status), status=wanted) is is_wanted


@pytest.mark.parametrize("wanted", ["", "abc", "40", "4xxx", "200--", ","])
def test_a_status_that_makes_no_sense_is_refused(wanted: str) -> None:
    with pytest.raises(InvalidInput):
        filters.status_ranges(wanted)


def test_every_condition_must_hold() -> None:
    one = flow(status=404, method="POST")
    assert fits(one, status=404, method="get,post")
    assert not fits(one, status=404, method="GET")


def test_text_is_found_in_url_headers_and_decoded_bodies_whatever_its_case() -> None:
    head = [(b"Content-Type", b"text/plain"), (b"Content-Encoding", b"gzip"), (b"X-Trace", b"Abc")]
    one = flow(url="http://api.test/Users?Q=Straße", response=gzip.compress(b"Hello World"), response_headers=head)
    assert fits(one, url_contains="/USERS") and fits(one, url_regex=r"users\?q=")
    assert fits(one, header_contains="x-trace: abc") and fits(one, body_contains="hello world")
    assert not fits(one, body_contains="goodbye") and not fits(one, header_contains="x-other")


def test_errors_are_failures_and_statuses_from_400() -> None:
    assert fits(flow(status=500), has_error=True) and fits(flow(error="reset"), has_error=True)
    assert fits(flow(status=200), has_error=False) and not fits(flow(status=404), has_error=False)
    cut = flow()
    cut.response_body.outcome = "error"
    assert fits(cut, has_error=True)


def test_process_event_mime_and_time_narrow_it_down() -> None:
    one = flow(process="/usr/bin/curl", pid=4321, event="map_local")
    assert fits(one, process="CURL") and fits(one, process="4321") and not fits(one, process="wget")
    assert fits(one, event="map_local") and not fits(one, event="tunnel")
    assert fits(one, mime="json") and not fits(one, mime="html")
    assert fits(one, since_unix_ms=one.started_unix_ms) and not fits(one, since_unix_ms=one.started_unix_ms + 1)


def test_a_request_that_runs_can_be_asked_for() -> None:
    assert fits(running(1), url_contains="items", has_error=False)


def test_a_search_cannot_be_used_to_guess_a_hidden_secret() -> None:
    one = flow(
        url=f"http://api.test/?key={SECRET}",
        request_headers=[(b"Authorization", f"Bearer {SECRET}".encode())],
        response=SECRET.encode(),
        response_headers=[(b"Content-Type", b"text/plain")],
    )
    for wanted in (
        TrafficFilter(url_contains=f"key={SECRET[:3]}"),
        TrafficFilter(url_regex="key=h"),
        TrafficFilter(header_contains=f"bearer {SECRET[:1]}"),
        TrafficFilter(body_contains=SECRET[:4]),
    ):
        assert filters.test_of(wanted, None, REVEALED)(one) and not filters.test_of(wanted, None, Hiding())(one)
    assert filters.test_of(TrafficFilter(header_contains="authorization"), None, Hiding())(one)


def test_an_unknown_condition_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"hosts": "x"}, TrafficFilter)


@pytest.mark.parametrize(
    ("pattern", "url", "is_found"),
    [
        (r"/users/\d+$", "https://a.test/USERS/42", True),
        (r"/users/\d+$", "https://a.test/users/42/posts", False),
        (r"(login|logout)\?", "http://a.test/logout?x", True),
        (r"v[12]/.*id=[0-9a-f]{8}\b", "http://a.test/v2/x?id=deadbeef1", False),
        ("", "http://a.test/", True),
    ],
)
def test_a_regex_is_found_anywhere_in_the_url_whatever_its_case(pattern: str, url: str, is_found: bool) -> None:
    assert fits(flow(url=url), url_regex=pattern) is is_found


@pytest.mark.parametrize("pattern", ["(", "a**", "a" * 301])
def test_a_regex_that_is_wrong_or_long_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput):
        fits(flow(), url_regex=pattern)


def test_a_regex_that_would_take_forever_is_refused_when_it_meets_a_url() -> None:
    with pytest.raises(InvalidInput):
        fits(flow(url="http://a.test/" + "x" * 1000), url_regex="(x+x+)+[yz]")


def test_a_text_is_found_however_far_into_a_body_it_stands(tmp_path: Path) -> None:
    bodies = BodyStore(tmp_path / "bodies")
    data = b"some words\n" * 50_000 + b"needle\npassword: open-sesame\n"
    assert len(data) > MAX_CHARS
    one = flow(response=data, response_headers=[(b"Content-Type", b"text/plain")])
    bodies.keep(one, False, data)
    assert filters.test_of(TrafficFilter(body_contains="needle"), bodies)(one)
    assert not filters.test_of(TrafficFilter(body_contains="open-sesame"), bodies)(one)
