"""What real servers say to a client of ours with nothing between: what every other way has to give too."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass

from dari.bridge.children.channel import ChildSession
from dari.core.context import Elicited
from dari.errors import Unavailable
from dari.process.child import ChildSpec
from dari.process.children import Children
from tests.support.real_servers import Json, RealServer, payload

AT_ONCE = 3


@dataclass(frozen=True)
class Said:
    era: str
    version: str
    tools: dict[str, Json]
    answer: Json


def spec_of(server: RealServer) -> ChildSpec:
    return ChildSpec(server.id, server.command, env=server.entry.get("env", {}))


async def ask_all(servers: Iterable[RealServer]) -> dict[str, Said]:
    turn = asyncio.Semaphore(AT_ONCE)

    async def ask(server: RealServer, children: Children) -> Said:
        async with turn:
            return await _ask(server, children)

    async with Children() as children, asyncio.TaskGroup() as tasks:
        asking = {server.id: tasks.create_task(ask(server, children)) for server in servers}
    return {name: task.result() for name, task in asking.items()}


async def _ask(server: RealServer, children: Children) -> Said:
    # With everything declared that the bridge declares: some servers list more tools then.
    session = await ChildSession.open(
        children, spec_of(server), on_sample=_refuse, on_elicit=_decline, on_roots=_no_roots, open_timeout_s=40
    )
    try:
        client = session.client
        listed = [json.loads(bytes(item)) for item in (await client.listing("tools")).items]
        result = await client.request("tools/call", {"name": server.tool, "arguments": server.arguments})
        return Said(client.era, client.version, {tool["name"]: tool for tool in listed}, payload(bytes(result)))
    finally:
        await session.close()


async def _refuse(_: object) -> Json:
    raise Unavailable("there is no model here", "")


async def _decline(_: object) -> Elicited:
    return Elicited("decline", None)


async def _no_roots() -> list[str]:
    return []
