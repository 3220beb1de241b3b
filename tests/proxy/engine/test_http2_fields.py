"""Header lists of HTTP/2 and heads of HTTP/1.1, turned into each other: nothing may be read as more than it was."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from dari.proxy.engine.body_framing import BadChunk
from dari.proxy.engine.config import EngineConfig
from dari.proxy.engine.connector import Connector
from dari.proxy.engine.heads import BadHead, RequestHead
from dari.proxy.engine.hooks import PASS, AllowAll
from dari.proxy.engine.http2.fields import StreamHead, request_fields, response_head, trailers_of
from dari.proxy.engine.http2.framing import RequestReader, chunk, last_chunk
from dari.proxy.engine.request_heads import wire_head
from dari.proxy.engine.targets import BadTarget
from dari.proxy.engine.upstream import Route

DIALER = Connector(EngineConfig(), AllowAll(), lambda _: False)
ROUTE = Route("https", "example.com", 443, "example.com", True)

names = st.one_of(
    st.sampled_from([b"x-a", b"cookie", b"te", b"host", b"content-length", b"expect", b"connection", b":path", b""]),
    st.binary(max_size=6),
)
values = st.one_of(st.sampled_from([b"1", b"trailers", b"example.com", b"a\r\nb: c", b" x"]), st.binary(max_size=12))
good_names = st.from_regex(re.compile(rb"x-[a-z0-9]{1,8}"), fullmatch=True)
good_values = st.from_regex(re.compile(rb"[!-~]([ -~]{0,10}[!-~])?"), fullmatch=True)
pseudo = st.tuples(
    st.sampled_from([b"GET", b"POST", b"get", b"A B", b""]),
    st.sampled_from([b"https", b"http", b""]),
    st.sampled_from([b"example.com", b"example.com:8443", b"a@b", b"", b"[::1]"]),
    st.one_of(st.sampled_from([b"/", b"/a?b", b"*", b"", b"x"]), st.binary(max_size=10).map(lambda path: b"/" + path)),
)


@given(pseudo, st.lists(st.tuples(names, values), max_size=6))
def test_a_list_is_refused_or_gives_one_head_that_means_the_same(
    about: tuple[bytes, bytes, bytes, bytes], more: list[tuple[bytes, bytes]]
) -> None:
    fields = [*zip((b":method", b":scheme", b":authority", b":path"), about, strict=True), *more]
    try:
        head = StreamHead(fields, "https")
    except (BadHead, BadTarget):
        return
    head.frame(None)
    raw = wire_head(head, head.target, PASS, DIALER, ROUTE)
    assert raw.endswith(b"\r\n\r\n") and raw.count(b"\r\n\r\n") == 1
    again = RequestHead(raw)
    assert (again.method.encode(), again.url) == (about[0], about[3])
    assert again.authority is not None and again.authority.text.encode() == (about[2] or dict(more)[b"host"])
    assert again.length == head.length
    kept = [field for field in request_fields(again, "https") if field[0][:1] != b":"]
    asked = [field for field in more if field[0] not in (b"host", b"cookie", b"http2-settings")]
    assert [field for field in kept if field[0] != b"cookie"] == asked
    assert b"; ".join(value for name, value in more if name == b"cookie") == dict(kept).get(b"cookie", b"")


@given(st.integers(100, 999), st.lists(st.tuples(names, values), max_size=6), st.booleans(), st.booleans())
def test_a_response_is_refused_or_gives_one_head(
    status: int, more: list[tuple[bytes, bytes]], is_ended: bool, adds_framing: bool
) -> None:
    try:
        head = response_head([(b":status", b"%d" % status), *more], "GET", is_ended, adds_framing)
    except BadHead:
        return
    assert head.status == status and head.raw.count(b"\r\n\r\n") == 1
    assert head.headers[: len(more)] == more


@given(st.lists(st.tuples(names, values), max_size=4), st.lists(st.binary(max_size=40), max_size=6), st.data())
def test_a_request_in_chunks_is_read_back_however_it_was_cut(
    trailers: list[tuple[bytes, bytes]], pieces: list[bytes], data: st.DataObject
) -> None:
    try:
        trailers = trailers_of(trailers)
    except BadHead:
        trailers = []
    head = b"POST /x HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n"
    rest = head + b"".join(map(chunk, pieces)) + last_chunk(trailers)
    reader = RequestReader()
    body, is_end, seen = b"", False, None
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        try:
            part = reader.feed(rest[:size])
        except BadChunk:
            raise AssertionError("our own chunks are refused") from None
        rest = rest[size:]
        if part is not None:
            body += b"".join(part.payload)
            is_end, seen = part.is_end, part.trailers
    assert (body, is_end, seen) == (b"".join(pieces), True, trailers)


@given(st.lists(st.tuples(good_names, good_values), max_size=8))
def test_what_is_good_passes_unchanged(more: list[tuple[bytes, bytes]]) -> None:
    about = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"example.com"), (b":path", b"/")]
    head = StreamHead([*about, *more], "https")
    head.frame(0)
    raw = wire_head(head, head.target, PASS, DIALER, ROUTE)
    assert request_fields(RequestHead(raw), "https") == [*about, *more]
