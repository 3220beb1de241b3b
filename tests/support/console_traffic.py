"""What the tests of Traffic's tabs share: a hub whose proxy runs on a port of its own, and a program that uses it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx

from tests.support.console_hub import Agent, ConsoleHub

PROGRAM_S = 60.0
DEADLINE_S = 20.0


async def eventually(check: Callable[[], Awaitable[bool]]) -> None:
    """Until what a page was told to do is done; it says so only to the person."""
    async with asyncio.timeout(DEADLINE_S):
        while not await check():  # noqa: ASYNC110 (each look is a call of its own)
            await asyncio.sleep(0.05)


@dataclass
class ProxyUser:
    """A program that uses the proxy, and an agent beside it."""

    agent: Agent
    http: httpx.AsyncClient

    async def get(self, url: str, **options: object) -> httpx.Response:
        return await self.http.get(url, **options)  # type: ignore[arg-type]

    async def newest_id(self, url_contains: str) -> str:
        found = await self.agent.call("crab_traffic_search", url_contains=url_contains, limit=1)
        return str(found["flows"][0]["request_id"])

    async def add(self, kind: str, matcher: str, **settings: object) -> str:
        return str((await self.agent.call("crab_rules_add", kind=kind, matcher=matcher, **settings))["id"])


@asynccontextmanager
async def proxy_user(hub: ConsoleHub) -> AsyncIterator[ProxyUser]:
    """The proxy runs, without rules."""
    async with hub.agent() as agent:
        if (await agent.call("crab_proxy_status"))["status"] == "stopped":
            await agent.call("crab_engine_set_listen_addr", listen_addr="127.0.0.1:0")
            await agent.call("crab_proxy_start")
        await agent.call("crab_rules_clear")
        address = (await agent.call("crab_proxy_info"))["address"]
        async with httpx.AsyncClient(proxy=f"http://{address}", timeout=PROGRAM_S, trust_env=False) as http:
            yield ProxyUser(agent, http)
