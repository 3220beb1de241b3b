"""Framing as a property: however the bytes are cut into pieces, the result is the same, and llhttp agrees."""

from __future__ import annotations

import httptools
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.proxy.engine.body_framing import BadChunk, ChunkScanner, FixedBody
from dari.proxy.engine.client_hello import Incomplete, server_name
from dari.proxy.engine.heads import CHUNKED, BadHead, RequestHead, ResponseHead, head_end
from dari.proxy.engine.targets import BadTarget, target_of, url_target
from dari.transport.authority import parse_authority

PIECES = st.lists(st.integers(1, 40), max_size=30)
CHUNKS = st.lists(st.binary(min_size=1, max_size=30), max_size=6)
TRAILERS = st.lists(st.sampled_from([b"X-A: 1", b"X-B:2", b"X-C:"]), max_size=2)
SPOILS = [b"\r\n", b"\n", b"0\r\n\r\n", b"5\r\n", b";x", b" ", b"-1\r\n", b"\0"]
NOISE = st.binary(max_size=12) | st.sampled_from(SPOILS)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces, start = [], 0
    for size in sizes:
        pieces.append(data[start : start + size])
        start += size
    pieces.append(data[start:])
    return [piece for piece in pieces if piece]


def encoded(chunks: list[bytes], trailers: list[bytes]) -> bytes:
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    return body + b"0\r\n" + b"".join(line + b"\r\n" for line in trailers) + b"\r\n"


def scanned(data: bytes, sizes: list[int]) -> tuple[bytes, bytes, bytes, bool, object]:
    """(what was passed on, what it carried, what follows, whether it was refused, trailers)"""
    scanner = ChunkScanner()
    raw, payload, rest = b"", b"", b""
    is_bad = False
    for piece in cut(data, sizes):
        if scanner.is_complete:
            rest += piece
            continue
        try:
            scanner.feed(piece)
        except BadChunk:
            is_bad = True
            break
        raw += scanner.raw
        payload += b"".join(scanner.payload)
        if scanner.is_complete:
            rest = scanner.rest
    return raw, payload, rest, is_bad, scanner.trailers


@given(CHUNKS, TRAILERS, st.binary(max_size=20), PIECES)
def test_a_good_body_comes_out_whole_in_any_pieces(
    chunks: list[bytes], trailers: list[bytes], behind: bytes, sizes: list[int]
) -> None:
    data = encoded(chunks, trailers)
    raw, payload, rest, is_bad, found = scanned(data + behind, sizes)
    assert not is_bad
    assert (raw, payload, rest) == (data, b"".join(chunks), behind)
    assert isinstance(found, list) and len(found) == len(trailers)


@given(CHUNKS, NOISE, st.integers(0, 200), PIECES)
@settings(max_examples=400)
def test_a_spoiled_body_is_judged_alike_in_any_pieces_and_as_llhttp_does(
    chunks: list[bytes], noise: bytes, where: int, sizes: list[int]
) -> None:
    good = encoded(chunks, [])
    where %= len(good) + 1
    data = good[:where] + noise + good[where:]
    whole, pieces = scanned(data, []), scanned(data, sizes)
    assert whole[3] == pieces[3]
    if not whole[3]:
        assert whole == pieces
    # Never more than a prefix of what came is passed on, and nothing behind an error.
    assert data.startswith(pieces[0])
    if not whole[3] and ChunkScanner().feed(data):
        assert accepted_by_llhttp(data)


def accepted_by_llhttp(data: bytes) -> bool:
    class Seen:
        is_complete = False

        def on_message_complete(self) -> None:
            self.is_complete = True

    seen = Seen()
    parser = httptools.HttpRequestParser(seen)
    parser.feed_data(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    try:
        parser.feed_data(data)
    except httptools.HttpParserError:
        pass  # it goes on into the next message, which may be noise
    return seen.is_complete


@given(st.binary(max_size=60), st.integers(0, 40), PIECES)
def test_a_counted_body_ends_where_it_says(data: bytes, length: int, sizes: list[int]) -> None:
    body, taken, rest = FixedBody(length), b"", b""
    for piece in cut(data, sizes):
        if body.is_complete:
            rest += piece
        else:
            body.feed(piece)
            taken += body.raw
            rest = body.rest
    assert (taken, rest) == (data[:length], data[length:])


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "replace")))
def test_noise_is_never_a_head_that_crashes(data: bytes) -> None:
    for kind in (lambda: RequestHead(data + b"\r\n\r\n"), lambda: ResponseHead(data + b"\r\n\r\n", "GET")):
        try:
            kind()
        except BadHead:
            pass
    for look in (lambda: head_end(data), lambda: server_name(data)):
        try:
            look()
        except (BadHead, Incomplete):
            pass


NAMES = st.sampled_from([b"Host", b"Content-Length", b"Transfer-Encoding", b"Connection", b"X-A", b"TE", b"Upgrade"])
VALUES = st.sampled_from([b"a", b"5", b"chunked", b"close", b"x-a", b"trailers", b"", b" 7 ", b"a:80", b"chunked, x"])


@given(st.lists(st.tuples(NAMES, VALUES), max_size=6))
def test_a_head_that_passes_has_one_framing_and_one_host(fields: list[tuple[bytes, bytes]]) -> None:
    lines = b"".join(b"%b: %b\r\n" % field for field in fields)
    try:
        head = RequestHead(b"POST / HTTP/1.1\r\n" + lines + b"\r\n")
    except BadHead:
        return
    names = [name for name, _ in fields]
    assert names.count(b"Host") == 1
    assert names.count(b"Content-Length") + names.count(b"Transfer-Encoding") <= 1
    assert (head.length == CHUNKED) == (b"Transfer-Encoding" in names)


@given(st.binary(max_size=60))
def test_noise_is_never_a_target_that_crashes(url: bytes) -> None:
    try:
        target = target_of(url, "http", parse_authority(b"host"))
    except BadTarget:
        return
    assert target.path.startswith(b"/") or target.path == b"*"
    assert "@" not in target.authority.text and 0 < target.port < 65536


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        (b"Example.COM", "example.com", None),
        (b"a:80", "a", 80),
        (b"[::1]:8080", "::1", 8080),
        (b"[2001:db8::1]", "2001:db8::1", None),
        (b"under_score.example:1", "under_score.example", 1),
    ],
)
def test_an_authority_is_read(text: bytes, host: str, port: int | None) -> None:
    found = parse_authority(text)
    assert (found.host, found.port, found.text) == (host, port, text.decode())


@pytest.mark.parametrize(
    "text",
    [b"", b":80", b"a:", b"a:0", b"a:65536", b"a:8a", b"u@a", b"a/b", b"a b", b"[::1", b"::1", b"[zz]", b"a%00"],
)
def test_a_bad_authority_is_refused(text: bytes) -> None:
    with pytest.raises(BadTarget):
        parse_authority(text)


@pytest.mark.parametrize("url", ["", "/path", "ftp://a/", "http://", "http://a b/", "http://a/\r\nX: y", "http://한/"])
def test_a_bad_url_is_refused(url: str) -> None:
    with pytest.raises(BadTarget):
        url_target(url)
