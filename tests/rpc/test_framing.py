"""Messages come out of a byte stream whole, in order, however the bytes were cut."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dari.rpc.framing import Framing

LIMIT = 40
HEADER_NAMES = ("Content-Length", "content-length", "CONTENT-LENGTH", "Content-length")

texts = st.dictionaries(st.text(max_size=3), st.text(max_size=8), max_size=3).map(lambda d: json.dumps(d).encode())
endings = st.sampled_from([b"\n", b"\r\n", b"\n\n", b"\n \t\r\n"])
cuts = st.lists(st.integers(0, 400), max_size=12)


def pieces(stream: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    return [stream[start:end] for start, end in pairwise(places)]


def fed(framing: Framing, parts: list[bytes]) -> list[bytes | None]:
    return [message for part in parts for message in framing.feed(part)]


def headed(body: bytes, name: str = "Content-Length", extra: bytes = b"") -> bytes:
    return b"%b: %d\r\n%b\r\n%b" % (name.encode(), len(body), extra, body)


@settings(deadline=None)
@given(st.lists(st.tuples(texts, endings), max_size=6), cuts)
def test_lines_come_out_the_same_wherever_the_stream_is_cut(lines: list[tuple[bytes, bytes]], cuts: list[int]) -> None:
    stream = b"".join(text + ending for text, ending in lines)
    framing = Framing()
    messages = fed(framing, pieces(stream, cuts))
    assert [message and message.strip() for message in messages] == [text for text, _ in lines]
    assert not framing.is_lsp


@settings(deadline=None)
@given(st.lists(st.tuples(texts, endings), max_size=6), cuts)
def test_what_is_called_whole_lines_needs_nothing_before_it_and_leaves_nothing(
    lines: list[tuple[bytes, bytes]], cuts: list[int]
) -> None:
    framing = Framing()
    for piece in pieces(b"".join(text + ending for text, ending in lines), cuts):
        is_whole, messages = framing.is_whole(piece), framing.feed(piece)
        if is_whole:
            assert messages == [line for line in piece.split(b"\n") if line.strip()]
            assert not framing.rest()


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.binary(max_size=60),
            st.sampled_from(HEADER_NAMES),
            st.sampled_from([b"", b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n"]),
        ),
        min_size=1,
        max_size=5,
    ),
    cuts,
)
def test_headed_messages_come_out_the_same_wherever_the_stream_is_cut(
    bodies: list[tuple[bytes, str, bytes]], cuts: list[int]
) -> None:
    stream = b"".join(headed(body, name, extra) for body, name, extra in bodies)
    framing = Framing()
    assert fed(framing, pieces(stream, cuts)) == [body for body, _, _ in bodies]
    assert framing.is_lsp


@settings(deadline=None)
@given(st.lists(st.integers(1, 3 * LIMIT), min_size=1, max_size=6), cuts)
def test_a_line_above_the_limit_is_skipped_and_reported_wherever_it_is_cut(sizes: list[int], cuts: list[int]) -> None:
    stream = b"".join(b"x" * size + b"\n" for size in sizes)
    expected = [b"x" * size if size <= LIMIT else None for size in sizes]
    assert fed(Framing(LIMIT), pieces(stream, cuts)) == expected


@settings(deadline=None)
@given(st.lists(st.integers(0, 3 * LIMIT), min_size=1, max_size=6), cuts)
def test_a_headed_message_above_the_limit_is_skipped_and_reported(sizes: list[int], cuts: list[int]) -> None:
    stream = b"".join(headed(b"x" * size) for size in sizes)
    expected = [b"x" * size if size <= LIMIT else None for size in sizes]
    assert fed(Framing(LIMIT), pieces(stream, cuts)) == expected


@pytest.mark.parametrize("start", [b"c", b"Con", b"CONTENT-LENGTH", b" \r\n\tContent-Len"])
def test_part_of_the_header_name_decides_nothing_yet(start: bytes) -> None:
    framing = Framing()
    assert framing.feed(start) == []
    rest = headed(b"{}")[len(start.strip()) :]
    assert framing.feed(rest) == [b"{}"]
    assert framing.is_lsp


@pytest.mark.parametrize("line", [b"c", b"content-length", b"content-lengthy: 3", b"Content-Type: x", b"{}"])
def test_a_line_that_only_resembles_the_header_is_a_line(line: bytes) -> None:
    framing = Framing()
    assert fed(framing, [bytes([byte]) for byte in line + b"\n"]) == [line]
    assert not framing.is_lsp


@pytest.mark.parametrize("blank", [b"\n", b"\r\n\r\n", b"  \n\t\n"])
def test_blank_lines_before_the_first_message_do_not_decide(blank: bytes) -> None:
    assert Framing().feed(blank) == []
    assert Framing().feed(blank + b"{}\n") == [b"{}"]
    assert Framing().feed(blank + headed(b"{}")) == [b"{}"]


def test_a_first_line_decides_for_good() -> None:
    framing = Framing()
    assert framing.feed(b"{}\nContent-Length: 2\n") == [b"{}", b"Content-Length: 2"]


@pytest.mark.parametrize("value", [b"", b"x", b"-1", b"1.5", b"0x2", b"9" * 16, "２".encode()])
def test_a_header_that_tells_no_length_is_one_empty_message_and_the_stream_goes_on(value: bytes) -> None:
    framing = Framing()
    framing.feed(headed(b"{}"))
    assert framing.feed(b"Content-Length: " + value + b"\r\n\r\n") == [b""]
    assert framing.feed(headed(b"[]")) == [b"[]"]


def test_headers_that_never_end_are_dropped_and_reported() -> None:
    framing = Framing()
    framing.feed(headed(b"{}"))
    assert fed(framing, [b"X-Long: " + b"a" * 8192, b"\r\n"]) == [None]
    assert not framing._buffer or len(framing._buffer) < 10


def test_a_skipped_line_is_not_kept_in_memory() -> None:
    framing = Framing(LIMIT)
    for _ in range(100):
        assert framing.feed(b"x" * 1000) == []
        assert len(framing._buffer) <= LIMIT
    assert framing.feed(b"\n{}\n") == [None, b"{}"]


@pytest.mark.parametrize("body", [b"{}", b"", "다리".encode(), b"x" * 70_000])
def test_what_is_wrapped_comes_out_of_the_other_end(body: bytes) -> None:
    lsp, other = Framing(), Framing()
    lsp.feed(headed(b"{}"))
    assert other.feed(lsp.wrap(body)) == [body]
    if body:
        lines, other = Framing(), Framing()
        lines.feed(b"{}\n")
        assert other.feed(lines.wrap(body)) == [body]
