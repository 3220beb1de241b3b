"""Server-sent events, by the book."""

from __future__ import annotations

import pytest

from dari.transport.client.sse import MAX_LINES, EventReader, EventTooLong


def read(*chunks: bytes, most_bytes: int = 1000) -> tuple[list[bytes], EventReader]:
    messages: list[bytes] = []
    reader = EventReader(messages.append, most_bytes)
    for chunk in chunks:
        reader.feed(chunk)
    return messages, reader


STREAM = b": hello\n\nid: 7\nevent: message\ndata: one\n\ndata:two\ndata: lines\nretry: 500\n\nid: 8\ndata: \n\n"


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_every_line_ending_in_every_chunking_reads_alike(newline: bytes, size: int) -> None:
    stream = STREAM.replace(b"\n", newline)
    messages, reader = read(*(stream[at : at + size] for at in range(0, len(stream), size)))
    assert messages == [b"one", b"two\nlines"]
    assert (reader.last_id, reader.retry_ms) == ("8", 500)


def test_other_event_types_are_no_messages() -> None:
    assert read(b"event: ping\ndata: x\n\ndata: y\n\n")[0] == [b"y"]


def test_an_event_that_is_cut_off_is_not_dispatched() -> None:
    assert read(b"data: half\n")[0] == []


@pytest.mark.parametrize("cut", range(4))
def test_a_byte_order_mark_is_skipped(cut: int) -> None:
    stream = b"\xef\xbb\xbfdata: x\n\n"
    assert read(stream[:cut], stream[cut:])[0] == [b"x"]


def test_an_id_with_a_nul_and_a_retry_that_is_no_number_are_ignored() -> None:
    _, reader = read(b"id: a\0b\nretry: soon\n\n")
    assert (reader.last_id, reader.retry_ms) == ("", None)


def test_an_event_above_the_limit_raises() -> None:
    with pytest.raises(EventTooLong):
        read(b"data: " + b"x" * 600, b"x" * 600)
    with pytest.raises(EventTooLong):
        read(*[b"data: " + b"x" * 100 + b"\n"] * 20)


def test_comments_may_go_on_for_ever() -> None:
    assert read(*[b": still here\n\n"] * 1000, b"data: x\n\n")[0] == [b"x"]


def test_lines_without_data_count_towards_the_limit() -> None:
    with pytest.raises(EventTooLong):
        read(*[b"data:\n"] * 1002)


def test_an_event_of_many_lines_is_whole_and_costs_about_its_size() -> None:
    messages, reader = read(*[b"data: %d\n" % number for number in range(1000)], most_bytes=10_000)
    assert len(reader._data) == MAX_LINES
    reader.feed(b"\ndata: next\n\n")
    assert messages == [b"\n".join(b"%d" % number for number in range(1000)), b"next"]
