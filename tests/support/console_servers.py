"""The tools of the Servers page over a real Bridge, called as a page calls them: by name, with JSON."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from dari.bridge.service import Bridge
from dari.console.backends import ConsoleBackends
from dari.console.live import Follow, TopicOptions
from dari.console.tools.server_import import server_toolkits
from dari.console.topics.servers import follow_server_log
from dari.core.context import Context
from dari.core.scopes import ALL_SCOPES, Grant
from dari.core.tool import tools_of
from tests.support.bridge import Place


class PageContext(Context):
    """Of a page; keeps what it is told of progress."""

    grant = Grant("app", ALL_SCOPES)
    request_id = 1

    def __init__(self) -> None:
        self.told: list[str] = []

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        self.report(progress, total, message)

    def report(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        self.told.append(message or "")

    async def log(self, level: Any, data: Any, logger: str | None = None) -> None: ...

    async def ask(self, questions: Any) -> dict[str, Any]:
        raise AssertionError(f"a page is asked nothing, and was: {questions}")

    @property
    def capabilities(self) -> dict[str, Any]:
        return {}

    @property
    def state(self) -> dict[str, Any]:
        return {}


class ServersPage:
    def __init__(self, bridge: Bridge, place: Place) -> None:
        self.bridge, self.place = bridge, place
        self.view = bridge.view(place.around())
        self.backends = cast(ConsoleBackends, SimpleNamespace(bridge=bridge, view=self.view))
        self.context = PageContext()
        self._tools = {tool.name: tool for kit in server_toolkits(self.backends) for tool in tools_of(kit)}

    async def call(self, method: str, **arguments: Any) -> Any:
        """The structured result as the page reads it."""
        tool = self._tools[f"dari_servers_{method}"]
        found = await tool.run(msgspec.json.encode(arguments), self.context)
        return msgspec.json.decode(msgspec.json.encode(found))

    async def followed(self, follow: Follow, argument: str = "") -> Any:
        """The first event of a topic as the page reads it: the whole state."""
        events = follow(self.backends, argument, TopicOptions())
        found = await anext(events)
        await events.aclose()  # type: ignore[attr-defined]
        return msgspec.json.decode(msgspec.json.encode(found))

    async def log(self, name: str) -> list[dict[str, Any]]:
        return list((await self.followed(follow_server_log, name))["lines"])

    async def card(self, name: str) -> dict[str, Any]:
        listed = await self.call("list")
        return dict(next(one for one in listed["servers"] if one["name"] == name))


@asynccontextmanager
async def servers_page(place: Place) -> AsyncIterator[ServersPage]:
    async with place.bridge() as bridge:
        yield ServersPage(bridge, place)
