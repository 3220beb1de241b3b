"""Local answers: the media type of map_local, and mocks made from a captured response."""

from __future__ import annotations

import pytest

from dari.errors import InvalidInput
from dari.proxy.api.rules import mock_of
from dari.proxy.flow import Flow
from dari.proxy.rules.rule import MAX_EDITED_BYTES, BodyReplaceRule, MapLocalRule, MapLocalSource
from tests.support.proxy_rules import ask, book_of


def answered(**more: object) -> Flow:
    flow = Flow(7, "127.0.0.1:1", 0, "POST", "https", "example.com", "/api?x=1", **more)  # type: ignore[arg-type]
    flow.status = 201
    flow.response_headers = [
        (b"Content-Type", b"application/json"),
        (b"Content-Encoding", b"gzip"),
        (b"Content-Length", b"9"),
        (b"Transfer-Encoding", b"chunked"),
        (b"Set-Cookie", b"a=1"),
        (b"Set-Cookie", b"b=\xff"),
    ]
    return flow


@pytest.mark.parametrize(
    ("source", "given", "shown"),
    [
        (MapLocalSource("text", "x"), None, "text/plain; charset=utf-8"),
        (MapLocalSource("text", "{}"), "application/json", "application/json"),
        (MapLocalSource("file", "/a/b.json"), None, "application/json"),
        (MapLocalSource("file", "/a/b.html"), None, "text/html"),
        (MapLocalSource("file", "/a/b"), None, "application/octet-stream"),
    ],
)
def test_the_media_type_is_given_or_guessed(source: MapLocalSource, given: str | None, shown: str) -> None:
    assert MapLocalRule(matcher="/", source=source, content_type=given).media_type == shown


def test_a_mock_copies_status_headers_and_body_without_framing() -> None:
    mock = mock_of(answered(), b"{}")
    assert (mock.status_code, mock.body) == (201, b"{}")
    assert mock.headers == (("Content-Type", "application/json"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=ÿ"))


def test_a_mock_answers_the_same_method_and_url_whatever_the_query() -> None:
    book = book_of(mock_of(answered(), b"{}"))
    assert ask(book.current, "https://example.com/api?x=2", "POST").mock is not None
    assert ask(book.current, "https://example.com/api?x=2", "GET").mock is None


def test_an_encoded_body_keeps_its_encoding() -> None:
    assert ("Content-Encoding", "gzip") in mock_of(answered(), b"\x1f\x8b", "/api", is_encoded=True).headers


def test_a_request_without_an_answer_cannot_be_mocked() -> None:
    flow = answered()
    flow.status = None
    with pytest.raises(InvalidInput, match="7"):
        mock_of(flow, b"")


def test_a_replacement_that_would_fill_the_memory_leaves_the_body_as_it_is() -> None:
    rule = BodyReplaceRule(matcher="/", find="a", text="b" * 1024)
    assert rule.apply(b"cat") == b"c" + b"b" * 1024 + b"t"
    body = b"a" * (MAX_EDITED_BYTES // 1024 + 1)
    assert rule.apply(body) == body
