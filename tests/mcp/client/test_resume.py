"""Streams that break: answers are fetched again, the standing stream comes back."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from dari.core.context import Progress
from dari.core.events import ListChanged
from dari.errors import TimedOut, Unavailable
from dari.mcp.client.client import Client
from dari.mcp.client.events import LogMessage
from dari.transport.client import get_stream
from dari.transport.client.http import HttpChannel
from dari.transport.client.sse import EventReader
from dari.transport.connect import connect
from tests.support.mcp_client import DISCOVERED, INITIALIZED, Json, Peer, http_script, say_yes
from tests.support.waiting import until

TEXT = {"content": [{"type": "text", "text": "ok"}]}


def note(level: str) -> bytes:
    return (
        b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"%b","data":1}}\n\n'
        % level.encode()
    )


async def test_an_answer_whose_stream_breaks_is_fetched_with_the_last_id_after_the_given_time() -> None:
    call: Json = {}
    closed_s = resumed_s = 0.0
    last_ids: list[str | None] = []

    async def handler(peer: Peer) -> None:
        nonlocal closed_s, resumed_s
        while await peer.request():
            if peer.method == "GET":
                resumed_s = time.monotonic()
                last_ids.append(peer.headers.get("last-event-id"))
                peer.stream()
                peer.body = call
                peer.chunk(b"id: e2\n" + note("info") + peer.answer(TEXT, "e3"))
                await peer.reader.read()  # the client hangs up: it has what it wanted
            elif not peer.initialized():
                call.update(peer.body)
                peer.stream()
                peer.chunk(b"id: e1\nretry: 200\ndata: \n\n")
                peer.end()
                closed_s = time.monotonic()

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        assert (await client.call_tool("x")).text == "ok"
    assert last_ids == ["e1"]
    assert resumed_s - closed_s >= 0.19


async def test_a_stream_that_breaks_again_and_again_is_followed_to_its_end(monkeypatch: Any) -> None:
    monkeypatch.setattr(get_stream, "RETRY_MS", 10)
    call: Json = {}
    last_ids: list[str | None] = []
    seen: list[Progress] = []

    async def handler(peer: Peer) -> None:
        while await peer.request():
            if peer.method == "GET":
                number = len(last_ids)
                last_ids.append(peer.headers.get("last-event-id"))
                peer.stream()
                peer.body = call
                if number == 3:
                    peer.chunk(peer.answer(TEXT))
                    peer.end()
                else:
                    token = call["params"]["_meta"]["progressToken"]
                    params = b'{"progressToken":%d,"progress":%d}' % (token, number)
                    message = b'{"jsonrpc":"2.0","method":"notifications/progress","params":%b}' % params
                    peer.chunk(b"id: %d\ndata: %b\n\n" % (number + 1, message))
                    await peer.writer.drain()
                    return  # cut, not ended
            elif not peer.initialized():
                call.update(peer.body)
                peer.stream()
                peer.chunk(b"id: 0\ndata: \n\n")
                await peer.writer.drain()
                return

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        assert (await client.call_tool("x", progress=seen.append)).text == "ok"
    assert last_ids == ["0", "1", "2", "3"]
    assert [report.progress for report in seen] == [0, 1, 2]


async def test_a_stream_without_ids_cannot_be_resumed() -> None:
    async def handler(peer: Peer) -> None:
        while await peer.request():
            assert peer.method != "GET"
            if not peer.initialized():
                peer.stream()
                peer.chunk(note("info"))
                peer.end()

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        with pytest.raises(Unavailable):
            await client.call_tool("x")


async def test_the_stateless_era_never_resumes() -> None:
    async def handler(peer: Peer) -> None:
        while await peer.request():
            assert peer.method == "POST"
            if peer.body["method"] == "server/discover":
                peer.reply(DISCOVERED)
            else:
                peer.stream()
                peer.chunk(b"id: 1\ndata: \n\n")
                peer.end()

    async with http_script(handler) as url, connect(url) as client:
        with pytest.raises(Unavailable):
            await client.call_tool("x")


@pytest.mark.parametrize("status", [404, 405, 400])
async def test_a_server_that_refuses_to_resume_ends_the_wait(status: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(get_stream, "RETRY_MS", 10)

    async def handler(peer: Peer) -> None:
        while await peer.request():
            if peer.method == "GET":
                peer.respond(status)
            elif not peer.initialized():
                peer.stream()
                peer.chunk(b"id: 1\ndata: \n\n")
                peer.end()

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        with pytest.raises(Unavailable, match=f"HTTP {status}"):
            await client.call_tool("x")


async def test_a_resumed_stream_may_be_silent_for_as_long_as_somebody_waits(monkeypatch: Any) -> None:
    monkeypatch.setattr(get_stream, "RETRY_MS", 1)
    call: Json = {}
    gets = 0

    async def handler(peer: Peer) -> None:
        nonlocal gets
        while await peer.request():
            if peer.method == "GET":
                gets += 1
                peer.stream()
                if gets > 2 * get_stream.MAX_ATTEMPTS:
                    peer.body = call
                    peer.chunk(peer.answer(TEXT, "e2"))
                await peer.reader.read()
            elif not peer.initialized():
                call.update(peer.body)
                peer.stream()
                peer.chunk(b"id: e1\ndata: \n\n")
                peer.end()

    async with http_script(handler) as url, Client(HttpChannel(url, idle_timeout_s=0.02), mode="handshake") as client:
        assert (await client.call_tool("x", timeout_s=60)).text == "ok"


async def test_a_call_that_is_being_resumed_can_run_out_of_time_and_be_cancelled(monkeypatch: Any) -> None:
    monkeypatch.setattr(get_stream, "RETRY_MS", 10)
    told: list[str] = []
    waiting = asyncio.Event()

    async def handler(peer: Peer) -> None:
        while await peer.request():
            if peer.method == "GET":
                peer.stream()
                waiting.set()
                await peer.reader.read()
            elif peer.body.get("method") == "notifications/cancelled":
                told.append(peer.body["params"]["reason"])
                peer.respond(202)
            elif not peer.initialized():
                peer.stream()
                peer.chunk(b"id: 1\ndata: \n\n")
                peer.end()

    async with http_script(handler) as url, connect(url, mode="handshake") as client:
        with pytest.raises(TimedOut):
            await client.call_tool("x", timeout_s=0.1)
        waiting.clear()
        task = asyncio.create_task(client.call_tool("x"))
        await waiting.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        channel = client._channel
        await until(lambda: len(told) >= 2)
        assert not channel._resuming  # type: ignore[attr-defined]


async def test_the_standing_stream_opens_only_for_who_listens() -> None:
    gets = []

    async def handler(peer: Peer) -> None:
        while await peer.request():
            if peer.method == "GET":
                gets.append(peer.headers.get("mcp-session-id"))
                peer.stream()
                await peer.reader.read()
            elif not peer.initialized():
                peer.reply(TEXT)

    async with http_script(handler) as url:
        async with connect(url, mode="handshake") as client:
            await client.call_tool("x")
        assert gets == []
        async with connect(url, mode="handshake", on_elicit=say_yes):
            assert gets == ["s1"]
        async with connect(url, mode="handshake", on_event=print):
            assert gets == ["s1", "s1"]


async def test_a_question_on_the_standing_stream_is_answered() -> None:
    answered: asyncio.Future[Json] = asyncio.get_running_loop().create_future()

    async def handler(peer: Peer) -> None:
        while await peer.request():
            if peer.method == "GET":
                peer.stream()
                question = b'{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}'
                peer.chunk(b"data: " + question + b"\n\n")
                await peer.reader.read()
            elif "method" not in peer.body and peer.method == "POST":
                answered.set_result(peer.body)
                peer.respond(202)
            else:
                peer.initialized()

    async with http_script(handler) as url, connect(url, mode="handshake", on_elicit=say_yes):
        assert (await answered)["result"] == {"action": "accept", "content": {}}


async def test_a_server_without_a_standing_stream_is_left_alone() -> None:
    gets = []

    async def handler(peer: Peer) -> None:
        while await peer.request():
            if peer.method == "GET":
                gets.append(1)
                peer.respond(405)
            elif not peer.initialized():
                peer.reply(TEXT)

    async with http_script(handler) as url, connect(url, mode="handshake", on_elicit=say_yes) as client:
        await until(lambda: gets)
        for _ in range(20):  # while it has other work
            await client.call_tool("x")
    assert gets == [1]


async def test_the_standing_stream_comes_back_with_its_last_id(monkeypatch: Any) -> None:
    monkeypatch.setattr(get_stream, "RETRY_MS", 10)
    last_ids: list[str | None] = []

    async def handler(peer: Peer) -> None:
        while await peer.request():
            if peer.method == "GET":
                last_ids.append(peer.headers.get("last-event-id"))
                peer.stream()
                peer.chunk(b"id: g-%d\n" % len(last_ids) + note("info"))
                if len(last_ids) == 3:
                    await peer.reader.read()
                peer.end()
            else:
                peer.initialized()

    async with http_script(handler) as url, connect(url, mode="handshake") as client, client.events() as events:
        assert [await anext(events) for _ in range(3)] == [LogMessage("info", 1)] * 3
    assert last_ids == [None, "g-1", "g-2"]


async def test_a_standing_stream_that_cannot_say_what_was_missed_reports_everything_as_changed(
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr(get_stream, "RETRY_MS", 10)
    gets = []

    async def handler(peer: Peer) -> None:
        while await peer.request():
            if peer.method == "GET":
                gets.append(1)
                peer.stream()
                if len(gets) > 1:
                    await peer.reader.read()
                peer.end()
            else:
                peer.initialized()

    async with (
        http_script(handler) as url,
        connect(url, mode="handshake") as client,
        client.events(lists=["tools"]) as events,
    ):
        assert await anext(events) == ListChanged("tools")


async def test_a_session_that_the_standing_stream_finds_lost_is_renewed(monkeypatch: Any) -> None:
    monkeypatch.setattr(get_stream, "RETRY_MS", 10)
    sessions: list[str] = []
    renewed = asyncio.Event()
    has_stood = False

    async def handler(peer: Peer) -> None:
        nonlocal has_stood
        while await peer.request():
            if peer.body.get("method") == "initialize":
                sessions.append(f"s{len(sessions) + 1}")
                peer.reply(INITIALIZED, mcp_session_id=sessions[-1])
            elif peer.method == "GET" and peer.headers["mcp-session-id"] == "s1" and has_stood:
                peer.respond(404)
            elif peer.method == "GET" and peer.headers["mcp-session-id"] == "s1":
                has_stood = True
                peer.stream()
                peer.end()
            elif peer.method == "GET":
                peer.stream()
                renewed.set()
                await peer.reader.read()
            else:
                peer.initialized()

    async with (
        http_script(handler) as url,
        connect(url, mode="handshake") as client,
        client.events(lists=["tools"]) as events,
    ):
        await renewed.wait()
        assert await anext(events) == ListChanged("tools")
    assert sessions == ["s1", "s2"]


async def test_a_stateless_call_ends_on_the_server_when_its_caller_leaves() -> None:
    hung_up = asyncio.Event()
    asked = asyncio.Event()

    async def handler(peer: Peer) -> None:
        while await peer.request():
            assert peer.body.get("method") != "notifications/cancelled"
            if peer.body["method"] == "server/discover":
                peer.reply(DISCOVERED)
            else:
                asked.set()
                assert await peer.reader.read() == b""
                hung_up.set()

    async with http_script(handler) as url, connect(url) as client:
        task = asyncio.create_task(client.call_tool("x"))
        await asked.wait()
        task.cancel()
        await hung_up.wait()
        await asyncio.gather(task, return_exceptions=True)


def test_a_server_cannot_ask_to_be_connected_to_without_a_pause() -> None:
    reader = EventReader(lambda message: None, 1000)
    reader.feed(b"retry: 0\n\n")
    assert get_stream._pause_s(reader, 0) >= 0.1
