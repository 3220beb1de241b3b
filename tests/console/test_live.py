"""Topics: bounded queues, and a page that subscribes, falls behind, comes back and leaves."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dari.console import channel
from dari.console.backends import ConsoleBackends
from dari.console.channel import MAX_TOPICS, ConsoleChannel
from dari.console.console import GRANT, WebConsole
from dari.console.live import Lost, TopicFeed, TopicOptions, Topics
from dari.console.login import ConsoleSession
from dari.core.registry import Registry
from dari.core.scopes import ALL_SCOPES
from dari.daemon.caller_scopes import CallerIdentity
from dari.errors import Unavailable
from dari.mcp.server import Info, Server
from tests.support.waiting import turn_until

BACKENDS = cast(ConsoleBackends, SimpleNamespace())


async def test_a_feed_gives_what_came_since_the_last_time() -> None:
    feed: TopicFeed[int] = TopicFeed()
    feed.put(1)
    feed.put(2)
    assert await feed.take() == [1, 2]
    feed.put(3)
    assert await feed.take() == [3]


async def test_a_feed_that_is_not_read_drops_the_oldest_and_says_so() -> None:
    feed: TopicFeed[int] = TopicFeed(limit=3)
    for number in range(5):
        feed.put(number)
    assert await feed.take() == Lost(5)
    feed.put(9)
    assert await feed.take() == [9]


class Page:
    """A channel with what it has sent; `hold` keeps the browser from reading."""

    def __init__(self, topics: Topics) -> None:
        self.sent: list[dict[str, Any]] = []
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.topics = topics
        server = Server(Registry(), Info("test", "1"))
        self.channel = ConsoleChannel(server, GRANT, topics, self._send)
        self.writing = asyncio.create_task(self.channel.write())

    async def _send(self, text: str) -> None:
        await self.may_read.wait()
        self.sent.append(json.loads(text))

    def say(self, method: str, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self.channel.receive(json.dumps(message).encode())

    @property
    def events(self) -> list[Any]:
        return [each["params"]["event"] for each in self.sent if each.get("method") == "topics/event"]

    async def close(self) -> None:
        await self.channel.close()
        self.writing.cancel()
        await asyncio.gather(self.writing, return_exceptions=True)


@asynccontextmanager
async def open_page() -> AsyncIterator[Page]:
    opened = Page(Topics(BACKENDS))
    try:
        yield opened
    finally:
        await opened.close()


async def test_a_page_gets_the_events_of_a_topic_with_its_argument_and_options() -> None:
    async with open_page() as page:

        async def follow(backends: Any, argument: str, options: TopicOptions) -> AsyncIterator[dict[str, str]]:
            yield {"argument": argument, "since": options.since}
            await asyncio.Event().wait()

        page.topics.add("pane", follow)
        page.say("topics/subscribe", topic="pane:%3", since="7")
        await turn_until(lambda: page.events)
        assert page.events == [{"argument": "%3", "since": "7"}]
        assert page.sent[0] == {"jsonrpc": "2.0", "id": 1, "result": {}}


async def test_a_topic_is_asked_for_more_only_when_the_browser_has_read() -> None:
    async with open_page() as page:
        made = 0

        async def follow(backends: Any, argument: str, options: TopicOptions) -> AsyncIterator[int]:
            nonlocal made
            while True:
                made += 1
                yield made
                await asyncio.sleep(0)

        page.topics.add("flood", follow)
        page.may_read.clear()
        page.say("topics/subscribe", topic="flood")
        for _ in range(50):
            await asyncio.sleep(0)
        assert made <= 2
        page.may_read.set()
        await turn_until(lambda: len(page.events) > 5)


async def test_an_end_of_a_topic_reaches_the_page_with_its_reason() -> None:
    async with open_page() as page:

        async def follow(backends: Any, argument: str, options: TopicOptions) -> AsyncIterator[int]:
            yield 1
            raise Unavailable("crabd does not run", "start it")

        page.topics.add("traffic", follow)
        page.say("topics/subscribe", topic="traffic")
        await turn_until(lambda: page.sent and page.sent[-1].get("method") == "topics/ended")
        error = page.sent[-1]["params"]["error"]
        assert (error["message"], error["hint"]) == ("crabd does not run", "start it")


async def test_leaving_a_topic_and_closing_the_page_end_its_generators() -> None:
    async with open_page() as page:
        ended: list[str] = []

        async def follow(backends: Any, argument: str, options: TopicOptions) -> AsyncIterator[int]:
            try:
                yield 1
                await asyncio.Event().wait()
            finally:
                ended.append(argument)

        page.topics.add("one", follow)
        page.say("topics/subscribe", topic="one:a")
        page.say("topics/subscribe", topic="one:b")
        await turn_until(lambda: len(page.events) == 2)
        page.say("topics/unsubscribe", topic="one:a")
        await turn_until(lambda: ended == ["a"])
        await page.close()
        assert ended == ["a", "b"]


async def test_an_unknown_topic_and_too_many_are_refused() -> None:
    async with open_page() as page:

        async def follow(backends: Any, argument: str, options: TopicOptions) -> AsyncIterator[int]:
            yield 1
            await asyncio.Event().wait()

        page.topics.add("one", follow)
        page.say("topics/subscribe", topic="nope")
        await turn_until(lambda: page.sent)
        assert "no topic is named 'nope'" in page.sent[0]["error"]["message"]
        for number in range(MAX_TOPICS + 1):
            page.say("topics/subscribe", topic=f"one:{number}")
        await turn_until(lambda: sum("error" in each for each in page.sent) == 2)


async def test_a_page_that_never_reads_is_ended_with_all_that_it_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "MAX_UNSENT_BYTES", 10_000)
    async with open_page() as page:
        ended: list[str] = []

        async def follow(backends: Any, argument: str, options: TopicOptions) -> AsyncIterator[int]:
            try:
                yield 1
                await asyncio.Event().wait()
            finally:
                ended.append(argument)

        page.topics.add("one", follow)
        page.say("topics/subscribe", topic="one:a")
        await turn_until(lambda: page.events)
        page.may_read.clear()
        while not page.channel.overrun.is_set():
            page.say("topics/subscribe", topic="nope")
        page.say("topics/subscribe", topic="nope")
        assert not page.channel._unsent
        await page.close()
        assert ended == ["a"]
        assert not page.channel._server.sessions


class Console(WebConsole):
    """Whose pages talk to a server without tools."""

    def _open_endpoint(self) -> Any:
        return SimpleNamespace(server=Server(Registry(), Info("test", "1")))


async def test_a_page_that_stays_open_ends_with_its_session() -> None:
    backends = SimpleNamespace(logins=SimpleNamespace(on_end=[]), activity=SimpleNamespace(start=lambda: None))
    console = Console(cast(ConsoleBackends, backends), cast(Any, None))
    sent: list[str] = []

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError("a browser that says nothing")

    async def send(message: dict[str, Any]) -> None:
        sent.append(message["type"])

    session = ConsoleSession("id", "key", 0.0, time.time() + 0.05)
    async with asyncio.timeout(20):
        await console._serve(receive, send, CallerIdentity("app", ALL_SCOPES, None), session)
    assert sent == ["websocket.accept", "websocket.close"]
