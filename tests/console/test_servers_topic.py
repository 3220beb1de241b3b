"""The topics of the Servers page: a snapshot first, then what changed, and nothing while nothing changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dari.console.live import TopicOptions
from dari.console.topics import servers as topic
from dari.errors import NotFound
from tests.support.bridge import ME, Place, lab
from tests.support.console_servers import ServersPage, servers_page

OPTIONS = TopicOptions()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    monkeypatch.setattr(topic, "TICK_S", 0.05)
    monkeypatch.setattr(topic, "MIN_PAUSE_S", 0.01)
    monkeypatch.setattr(topic, "LOG_TICK_S", 0.02)
    return Place(tmp_path, lab(tmp_path), lab(tmp_path, id="other"))


async def until(events: AsyncIterator[Any], is_wanted: Any) -> dict[str, Any]:
    """The first event that is; the test's own deadline ends a wait for one that never comes."""
    async for event in events:
        told: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(event))
        if is_wanted(told):
            return told
    raise AssertionError("the topic has ended")


def state_of(event: dict[str, Any], name: str) -> str:
    return next((str(card["state"]) for card in event.get("servers", ()) if card["name"] == name), "")


async def test_a_page_hears_of_a_start_a_new_server_and_a_removal(place: Place) -> None:
    async with servers_page(place) as page, aclosing(topic.follow_servers(page.backends, "", OPTIONS)) as events:
        first = await until(events, lambda event: True)
        assert first["kind"] == "snapshot" and [card["name"] for card in first["servers"]] == ["lab", "other"]
        starting = asyncio.create_task(page.call("start", name="lab"))
        change = await until(events, lambda event: state_of(event, "lab") == "ready")
        assert change["kind"] == "change" and [card["name"] for card in change["servers"]] == ["lab"]
        await starting
        place.write(lab(place.root), lab(place.root, id="new"))
        change = await until(events, lambda event: event.get("removed"))
        assert change["removed"] == ["other"] and state_of(change, "new") == "idle"


async def test_a_broken_file_is_a_problem_that_the_page_is_told(place: Place) -> None:
    async with servers_page(place) as page, aclosing(topic.follow_servers(page.backends, "", OPTIONS)) as events:
        await until(events, lambda event: event["kind"] == "snapshot")
        place.file.write_text("{")
        assert "last good version" in json.dumps((await until(events, lambda event: event.get("problems")))["problems"])


async def test_a_crash_is_told_at_once_with_its_error(place: Place) -> None:
    async with servers_page(place) as page, aclosing(topic.follow_servers(page.backends, "", OPTIONS)) as events:
        await page.call("start", name="lab")
        await until(events, lambda event: event["kind"] == "snapshot")
        with suppress(Exception):
            await page.view.upstream("lab").call_tool("die", b"{}", ME)
        change = await until(events, lambda event: state_of(event, "lab") == "backoff")
        assert "exit status 7" in change["servers"][0]["last_error"]


async def test_memory_of_what_runs_comes_along(place: Place) -> None:
    async with servers_page(place) as page, aclosing(topic.follow_servers(page.backends, "", OPTIONS)) as events:
        await page.call("start", name="lab")
        usage = await until(events, lambda event: event.get("usage"))
        assert usage["usage"]["lab"]["memory_bytes"] > 0


async def test_who_leaves_is_told_nothing_more(place: Place) -> None:
    async with servers_page(place) as page:
        async with aclosing(topic.follow_servers(page.backends, "", OPTIONS)) as events:
            await anext(events)
        assert not page.bridge.status_changes._listeners


async def test_a_log_is_followed_line_by_line(place: Place) -> None:
    async with servers_page(place) as page, aclosing(topic.follow_server_log(page.backends, "lab", OPTIONS)) as events:
        assert (await until(events, lambda event: True))["lines"] == []
        await page.call("start", name="lab")
        with suppress(Exception):
            await page.view.upstream("lab").call_tool("die", b"{}", ME)
        told = await until(events, lambda event: "I cannot go on" in json.dumps(event))
        assert told["lines"][0]["level"] == "starting"


async def test_the_log_of_an_unknown_server_ends_with_what_is_known(place: Place) -> None:
    async with servers_page(place) as page, aclosing(topic.follow_server_log(page.backends, "lob", OPTIONS)) as events:
        with pytest.raises(NotFound, match="unknown server 'lob'"):
            await anext(events)


async def cards_of_many(page: ServersPage) -> int:
    events = topic.follow_servers(page.backends, "", OPTIONS)
    async with aclosing(events):
        return len((await anext(events)).servers)


async def test_a_thousand_servers_are_one_snapshot(place: Place) -> None:
    place.write(*({"id": f"s{number}", "command": "x", "args": [str(number)]} for number in range(1000)))
    async with servers_page(place) as page:
        page.view.upstreams()
        assert await cards_of_many(page) == 1000
