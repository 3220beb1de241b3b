"""What the official SDK's client gets, as plain JSON."""

from __future__ import annotations

from typing import Any

from mcp import Client

from tests.bridge.real.direct import Said
from tests.support.real_servers import Json, payload


async def listed(client: Client) -> dict[str, Json]:
    tools = (await client.list_tools(cache_mode="bypass")).tools
    return {tool.name: tool.model_dump(mode="json", by_alias=True, exclude_unset=True) for tool in tools}


async def called(client: Client, name: str, arguments: Json | None = None) -> Json:
    result: Any = await client.call_tool(name, arguments)
    return payload(result.model_dump(mode="json", by_alias=True, exclude_none=True))


def merged(said: dict[str, Said]) -> dict[str, Json]:
    """The tools of all servers under the names that the gateway gives them."""
    return {
        f"{id}__{name}": {**tool, "name": f"{id}__{name}"}
        for id, one in said.items()
        for name, tool in one.tools.items()
    }
