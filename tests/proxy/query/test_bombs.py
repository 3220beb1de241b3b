"""Bodies that grow when they are read: how many are read at a time, and how far."""

from __future__ import annotations

import asyncio
import threading
import zlib
from pathlib import Path

import pytest

from dari.errors import InvalidInput
from dari.proxy.flow import Flow
from dari.proxy.formats import har_import
from dari.proxy.query import views
from dari.proxy.recording.recording import MAX_READERS, Recording
from tests.support.proxy_service import traffic_of


def recorded(traffic: Recording, data: bytes, coding: bytes) -> Flow:
    flow = Flow(1, "127.0.0.1:1", 0, "GET", "http", "localhost", "/", "1.1", [])
    flow.status, flow.state = 200, "done"
    flow.response_headers = [(b"Content-Type", b"text/plain"), (b"Content-Encoding", coding)]
    traffic.recorder.began(flow)
    traffic.recorder.body(flow, False, data)
    flow.response_body.size_bytes, flow.response_body.outcome = len(data), "complete"
    traffic.recorder.finished(flow)
    return flow


async def test_two_bodies_are_read_at_a_time_however_many_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traffic = Recording.open(tmp_path / "traffic")
    flow = recorded(traffic, zlib.compress(b"x" * 10_000_000), b"deflate")
    running = most = 0
    lock = threading.Lock()
    both = threading.Barrier(MAX_READERS)
    real = views.view

    def counted(*given: object, **named: object) -> object:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        both.wait(20)
        try:
            return real(*given, **named)  # type: ignore[arg-type]
        finally:
            with lock:
                running -= 1

    monkeypatch.setattr(views, "view", counted)
    api = traffic_of(traffic, tmp_path)
    found = await asyncio.gather(*(api.body(str(flow.id)) for _ in range(4 * MAX_READERS)))
    await traffic.close()
    assert most == MAX_READERS
    assert all(one.truncated and one.text and len(one.text) == views.MAX_CHARS for one in found)


async def test_of_a_long_body_only_what_can_be_shown_becomes_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traffic = Recording.open(tmp_path / "traffic")
    flow = recorded(traffic, zlib.compress(b"y" * 30_000_000), b"deflate")
    sizes: list[int] = []
    real = views.content_coding.text_of
    monkeypatch.setattr(views.content_coding, "text_of", lambda data, head: sizes.append(len(data)) or real(data, head))
    found = await traffic_of(traffic, tmp_path).body(str(flow.id))
    await traffic.close()
    assert sizes == [2 * 1024 * 1024]
    assert found.decoded_bytes == 8 * 1024 * 1024 and found.truncated


def test_a_har_file_of_millions_of_empty_entries_is_refused_before_it_is_read() -> None:
    data = b'{"log":{"entries":[' + b"{}," * 4_000_001 + b"{}]}}"
    with pytest.raises(InvalidInput, match="4,000,000"):
        har_import.load(data, iter(range(10)).__next__)
