"""Lines of any size in any chunks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dari.mcp.client.lines import Lines, TooLong


def fed(lines: Lines, *chunks: bytes) -> list[bytes | TooLong]:
    return [line for chunk in chunks for line in lines.feed(chunk)]


def test_one_line_in_one_chunk() -> None:
    assert fed(Lines(), b'{"a":1}\n') == [b'{"a":1}\n']


def test_blank_lines_are_dropped() -> None:
    assert fed(Lines(), b"\n", b" \r\n\n", b"a\n\n\nb\n") == [b"a", b"b"]


@given(st.lists(st.binary(max_size=30).filter(lambda b: b"\n" not in b and b.strip() and b == b.strip())), st.data())
def test_chunks_make_no_difference(messages: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(message + b"\n" for message in messages)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    lines = fed(Lines(), *(chunk for chunk in chunks if chunk))
    assert [bytes(line).strip() for line in lines if isinstance(line, bytes)] == messages


@pytest.mark.parametrize("chunk", [1, 7, 64, 100_000])
@pytest.mark.parametrize(
    ("line", "request_id"),
    [
        (b'{"jsonrpc":"2.0","id":42,"result":"' + b"x" * 5000 + b'"}', 42),
        (b'{"result":"' + b"x" * 5000 + b'","jsonrpc":"2.0","id":43}', 43),
        (b'{"result":"' + b"x" * 5000 + b'","id":44,"jsonrpc":"2.0"}', 44),
        (b"noise" * 1000, None),
    ],
)
def test_a_line_above_the_limit_is_skipped_but_its_id_is_found(line: bytes, request_id: int | None, chunk: int) -> None:
    stream = b"before\n" + line + b"\nafter\n"
    lines = fed(Lines(1000), *(stream[at : at + chunk] for at in range(0, len(stream), chunk)))
    before, long, after = lines
    assert isinstance(before, bytes) and before.strip() == b"before"
    assert isinstance(long, TooLong)
    assert (long.size_bytes, long.request_id) == (len(line), request_id)
    assert isinstance(after, bytes) and after.strip() == b"after"


def test_nothing_above_the_limit_is_kept() -> None:
    lines = Lines(1000)
    for _ in range(1000):
        lines.feed(b"x" * 1000)
    assert len(lines._buffer) <= 2000
