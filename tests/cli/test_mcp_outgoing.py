"""Bytes of `dari mcp` that wait to be written."""

from __future__ import annotations

from dari.cli.mcp.pipe import MAX_WAITING_BYTES, Outgoing


def test_what_a_reader_that_is_always_behind_has_read_is_not_kept() -> None:
    waiting = Outgoing()
    waiting.add(b"x")
    for _ in range(64):
        waiting.add(b"y" * MAX_WAITING_BYTES)
        waiting.skip(MAX_WAITING_BYTES)
    assert waiting.size == 1 and waiting.head(10) == b"y"
    assert len(waiting._data) <= 4 * MAX_WAITING_BYTES
