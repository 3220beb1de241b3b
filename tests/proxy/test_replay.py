from __future__ import annotations

from pathlib import Path

import pytest

from dari.errors import Conflict, InvalidInput
from dari.proxy.recording.bodies import BodyStore
from dari.proxy.replay import RequestEdits, build, compose
from tests.support.flows import SECRET, flow, tunnel


def test_the_same_request_is_built_with_its_secrets_and_without_its_connection() -> None:
    one = flow(
        3,
        "http://api.test/x?key=" + SECRET,
        "POST",
        request=b"hello",
        request_headers=[
            (b"Host", b"api.test"),
            (b"Authorization", SECRET.encode()),
            (b"Connection", b"keep-alive, X-Hop"),
            (b"X-Hop", b"1"),
            (b"Transfer-Encoding", b"chunked"),
            (b"Proxy-Authorization", b"Basic x"),
            (b"X-Odd-Case", b"\xff\xfe"),
        ],
    )
    made = build(one)
    assert (made.replay_of, made.method, made.url, made.body, made.missing) == (
        3,
        "POST",
        "http://api.test/x?key=" + SECRET,
        b"hello",
        [],
    )
    assert made.headers == [
        (b"Host", b"api.test"),
        (b"Authorization", SECRET.encode()),
        (b"X-Odd-Case", b"\xff\xfe"),
        (b"Content-Length", b"5"),
    ]


def test_edits_change_method_url_headers_and_body() -> None:
    one = flow(1, request_headers=[(b"Host", b"api.test"), (b"A", b"1"), (b"B", b"2"), (b"Content-Encoding", b"gzip")])
    edits = RequestEdits(
        method="PUT", url="https://other.test:8443/y", set_headers={"a": "3", "C": "4"}, remove_headers=["b"], body="é"
    )
    made = build(one, edits)
    assert (made.method, made.url, made.body) == ("PUT", "https://other.test:8443/y", "é".encode())
    assert made.headers == [(b"Host", b"other.test:8443"), (b"a", b"3"), (b"C", b"4"), (b"Content-Length", b"2")]


def test_a_get_without_a_body_gets_no_length() -> None:
    assert not any(name == b"Content-Length" for name, _ in build(flow(1)).headers)


def test_a_body_that_was_not_kept_is_named_unless_it_is_replaced(tmp_path: Path) -> None:
    one = flow(1, method="POST", request=b"x" * 100_000)
    assert build(one).missing == ["request body: 16384 of 100000 bytes were kept"]
    assert build(one, RequestEdits(body="short")).missing == []
    bodies = BodyStore(tmp_path / "bodies")
    bodies.write(one, True, b"x" * 100_000)
    bodies.finish(one)
    assert build(one, bodies=bodies).missing == [] and len(build(one, bodies=bodies).body) == 100_000


def test_a_tunnel_cannot_be_replayed() -> None:
    with pytest.raises(Conflict):
        build(tunnel(1))


@pytest.mark.parametrize(
    "edits",
    [
        RequestEdits(method="GE T"),
        RequestEdits(method="CONNECT"),
        RequestEdits(method="get"),
        RequestEdits(method=""),
        RequestEdits(url="ftp://x/"),
        RequestEdits(url="/relative"),
        RequestEdits(url="http://x/a b"),
        RequestEdits(url="http://x:99999/"),
        RequestEdits(url="http://x/\r\nX: y"),
        RequestEdits(url="http://ann:plum@x/"),
        RequestEdits(url="http://a\\b/"),
        RequestEdits(url="http://é..test/"),
        RequestEdits(url=f"http://{'é' * 70_000}/"),
        RequestEdits(set_headers={"A\r\nB": "x"}),
        RequestEdits(set_headers={"A": "x\r\nB: y"}),
        RequestEdits(set_headers={"": "x"}),
        RequestEdits(set_headers={"A": "x\x01y"}),
        RequestEdits(remove_headers=["a b"]),
    ],
)
def test_an_edit_that_would_break_the_request_is_refused(edits: RequestEdits) -> None:
    with pytest.raises(InvalidInput):
        build(flow(1), edits)


def test_a_request_can_be_composed_from_nothing() -> None:
    made = compose("POST", "http://a.test/x", {"X-A": "1"}, "hi")
    assert (made.replay_of, made.method, made.url, made.body, made.missing) == (
        None,
        "POST",
        "http://a.test/x",
        b"hi",
        [],
    )
    assert made.headers == [(b"Host", b"a.test"), (b"X-A", b"1"), (b"Content-Length", b"2")]
    with pytest.raises(InvalidInput):
        compose("CONNECT", "http://a.test/")


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("http://bücher.test:81/straße?q=ß", "http://xn--bcher-kva.test:81/stra%C3%9Fe?q=%C3%9F"),
        ("http://[::1]:81/%7e{a}|é", "http://[::1]:81/%7e{a}|%C3%A9"),
        ("http://a.test/%7e{a}|b", "http://a.test/%7e{a}|b"),
    ],
)
def test_a_url_of_any_letters_is_sent_as_ascii(url: str, sent: str) -> None:
    made = compose("GET", url)
    assert made.url == sent and made.headers[0] == (b"Host", sent.split("/")[2].encode())


def test_the_framing_of_a_request_is_made_from_its_body() -> None:
    given = {"Content-Length": "50", "Transfer-Encoding": "chunked", "X-A": "1"}
    assert compose("GET", "http://a.test/", given).headers == [(b"Host", b"a.test"), (b"X-A", b"1")]
    assert compose("POST", "http://a.test/", given, "hi").headers[-1] == (b"Content-Length", b"2")
