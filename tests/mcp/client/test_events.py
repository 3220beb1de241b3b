"""What servers say unasked, behind one API in both eras."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dari.core.events import ListChanged, ResourceUpdated
from dari.errors import Unavailable
from dari.mcp.client import Client, RemoteError
from dari.mcp.client.events import Backlog, Event, LogMessage, Notification
from dari.transport.connect import connect
from tests.support.demo_server import demo_server
from tests.support.mcp_client import DISCOVERED, ERAS, Json, Peer, ScriptedChannel, http_script, memory_client
from tests.support.waiting import until

both_eras = pytest.mark.parametrize("mode", ERAS)


@both_eras
async def test_a_changed_list_is_told(mode: Any) -> None:
    server = demo_server()
    async with memory_client(server, mode=mode) as client, client.events() as events:
        server.registry.remove_tools("demo_echo")
        assert await anext(events) == ListChanged("tools")


@both_eras
async def test_only_what_was_asked_for_is_told(mode: Any) -> None:
    server = demo_server()
    async with memory_client(server, mode=mode) as client, client.events(lists=["prompts"]) as events:
        server.registry.remove_tools("demo_echo")
        server.registry.remove_prompt("letter")
        assert await anext(events) == ListChanged("prompts")


@both_eras
async def test_an_updated_resource_is_told_to_its_subscriber(mode: Any) -> None:
    server = demo_server()
    async with memory_client(server, mode=mode) as client:
        async with client.events(lists=[], uris=["demo://note"]) as events:
            server.registry.resource_updated("demo://other")
            server.registry.resource_updated("demo://note")
            assert await anext(events) == ResourceUpdated("demo://note")
        for session in server.sessions:
            assert session.subscriptions == set()
    assert not server.listening


@both_eras
async def test_two_subscribers_both_hear_it_once(mode: Any) -> None:
    server = demo_server()
    async with (
        memory_client(server, mode=mode) as client,
        client.events(uris=["demo://note"]) as first,
        client.events(uris=["demo://note"]) as second,
    ):
        server.registry.resource_updated("demo://note")
        server.registry.remove_tools("demo_echo")
        for events in (first, second):
            assert await anext(events) == ResourceUpdated("demo://note")
            assert await anext(events) == ListChanged("tools")


@both_eras
async def test_log_messages_arrive_from_the_level_that_was_set(mode: Any) -> None:
    async with memory_client(demo_server(), mode=mode) as client, client.events(lists=[]) as events:
        await client.set_level("info")
        await client.call_tool("demo_count", {"to": 1})
        assert await anext(events) == LogMessage("info", {"number": 1}, "demo")
        await client.set_level("error")
        await client.call_tool("demo_count", {"to": 1})
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await anext(events)


@both_eras
async def test_the_callback_hears_every_event(mode: Any) -> None:
    server = demo_server()
    seen: list[Event] = []
    async with memory_client(server, mode=mode, on_event=seen.append) as client:
        await client.set_level("info")
        await client.call_tool("demo_count", {"to": 1})
        server.registry.remove_tools("demo_echo")
        await client.ping()
    assert seen == [LogMessage("info", {"number": 1}, "demo"), ListChanged("tools")]


@both_eras
async def test_a_callback_that_raises_is_called_again(mode: Any) -> None:
    server = demo_server()
    seen: list[Event] = []

    def on_event(event: Event) -> None:
        seen.append(event)
        raise RuntimeError("callback")

    async with memory_client(server, mode=mode, on_event=on_event) as client:
        server.registry.remove_tools("demo_echo")
        await client.ping()
        server.registry.remove_tools("demo_count")
        await client.ping()
    assert len(seen) == 2


@both_eras
async def test_the_end_of_the_server_ends_the_iteration(mode: Any) -> None:
    client = memory_client(demo_server(), mode=mode)
    await client.open()
    subscription = client.events()
    async with subscription as events:
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(Unavailable):
            await waiting


def listening(answer: Any) -> ScriptedChannel:
    """A stateless server whose listen requests are answered by `answer`."""

    def script(channel: ScriptedChannel, message: Json) -> None:
        if message.get("method") == "server/discover":
            channel.reply(message, DISCOVERED)
        elif message.get("method") == "subscriptions/listen":
            answer(channel, message)

    return ScriptedChannel(script)


def acknowledge(channel: ScriptedChannel, message: Json) -> None:
    meta = {"io.modelcontextprotocol/subscriptionId": message["id"]}
    params = {"_meta": meta, "notifications": message["params"]["notifications"]}
    channel.send({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params})


async def test_listening_that_is_refused_raises() -> None:
    async with Client(listening(lambda channel, message: channel.refuse(message, -32601))) as client:
        with pytest.raises(RemoteError):
            async with client.events():
                pass


async def test_a_broken_stream_is_opened_again_and_everything_counts_as_changed(monkeypatch: Any) -> None:
    monkeypatch.setattr("dari.mcp.client.subscription._FIRST_PAUSE_S", 0.01)
    asked: list[Json] = []

    def answer(channel: ScriptedChannel, message: Json) -> None:
        asked.append(message)
        acknowledge(channel, message)
        if len(asked) == 1:
            channel.reply(message, {"resultType": "complete"})

    async with (
        Client(listening(answer)) as client,
        client.events(lists=["tools"], uris=["x://y"], logs=False) as events,
    ):
        assert [await anext(events), await anext(events)] == [ListChanged("tools"), ResourceUpdated("x://y")]
    assert len(asked) == 2
    assert asked[0]["params"]["notifications"] == {"toolsListChanged": True, "resourceSubscriptions": ["x://y"]}


async def test_leaving_cancels_the_listen_request() -> None:
    channel = listening(acknowledge)
    async with Client(channel) as client:
        async with client.events():
            pass
        await asyncio.sleep(0)
    cancelled = [message for message in channel.sent if message.get("method") == "notifications/cancelled"]
    assert [message["params"]["requestId"] for message in cancelled] == [channel.sent[1]["id"]]


async def test_other_notifications_are_handed_on_unread() -> None:
    channel = listening(acknowledge)
    async with Client(channel) as client, client.events(lists=[]) as events:
        channel.send(
            {"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": {"elicitationId": "7"}}
        )
        event = await anext(events)
    assert isinstance(event, Notification)
    assert (event.method, bytes(event.params)) == ("notifications/elicitation/complete", b'{"elicitationId": "7"}')


async def test_a_backlog_tells_a_waiting_change_once_and_drops_the_oldest() -> None:
    backlog = Backlog(most=3)
    backlog.put(ListChanged("tools"))
    backlog.put(ListChanged("tools"))
    for number in range(3):
        backlog.put(LogMessage("info", number))
    assert backlog.dropped == 1
    assert [await backlog.take() for _ in range(3)] == [LogMessage("info", number) for number in range(3)]
    backlog.put(ListChanged("tools"))
    backlog.end(Unavailable("over"))
    assert await backlog.take() == ListChanged("tools")
    with pytest.raises(Unavailable):
        await backlog.take()


async def test_a_server_that_ends_every_stream_at_once_is_asked_less_and_less_often(monkeypatch: Any) -> None:
    monkeypatch.setattr("dari.mcp.client.subscription._FIRST_PAUSE_S", 0.02)
    times_s: list[float] = []

    def answer(channel: ScriptedChannel, message: Json) -> None:
        times_s.append(asyncio.get_running_loop().time())
        acknowledge(channel, message)
        channel.reply(message, {"resultType": "complete"})

    async with Client(listening(answer)) as client, client.events(lists=["tools"]):
        await until(lambda: len(times_s) == 6)
    assert times_s[5] - times_s[4] >= 0.02 * 16 * 0.5


@pytest.mark.parametrize("refusal", ["a plain status", "a stream that ends"])
async def test_a_server_that_refuses_to_be_listened_to_is_used_all_the_same(refusal: str) -> None:
    async def handler(peer: Peer) -> None:
        while await peer.request():
            if peer.body["method"] == "server/discover":
                peer.reply({**DISCOVERED, "capabilities": {"tools": {"listChanged": True}}})
            elif peer.body["method"] == "tools/call":
                peer.reply({"content": [{"type": "text", "text": "ok"}]})
            elif refusal == "a plain status":
                peer.respond(501, b"not here")
            else:
                peer.stream()
                peer.end()

    async with http_script(handler) as url, connect(url, on_event=lambda event: None) as client:
        assert client.era == "stateless"
        assert (await client.call_tool("x")).text == "ok"
