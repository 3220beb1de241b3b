"""The demo server with tools that change what it offers, so that real clients can be told about it.

Takes the options of `tests.support.demo_server`.
"""

from __future__ import annotations

import asyncio

from dari.core.registry import Registry
from dari.core.tool import tool, typed_tool
from dari.mcp.server import Info, Server
from tests.support import demo_server


@tool()
async def extra() -> str:
    """Be there after `work_grow`."""
    return "extra"


class WorkTools:
    """Tools named `work_<method>`."""

    prefix = "work"

    def __init__(self, registry: Registry, tools: demo_server.DemoTools) -> None:
        self._registry = registry
        self._tools = tools

    @tool()
    async def grow(self) -> str:
        """Add a tool, or take it away again."""
        if "extra" in self._registry.tools:
            self._registry.remove_tools("extra")
        else:
            self._registry.add_tools(typed_tool(extra))
        return "changed"

    @tool()
    async def touch(self, uri: str) -> str:
        """Say that a resource changed."""
        self._registry.resource_updated(uri)
        return "touched"

    @tool()
    async def was_cancelled(self) -> bool:
        """Wait until a `demo_hang` was cancelled; returns true."""
        async with asyncio.timeout(30):
            return await self._tools.cancelled.wait()

    @tool()
    async def is_hanging(self) -> bool:
        """Wait until a `demo_hang` runs; returns true."""
        async with asyncio.timeout(30):
            return await self._tools.started.wait()


def workbench(*, strict: bool = False) -> Server:
    tools = demo_server.DemoTools()
    registry = demo_server.registry_of(tools)
    registry.add_toolkit(WorkTools(registry, tools))
    return Server(registry, Info(name="workbench", version="1"), instructions="Try demo_echo.", strict=strict)


if __name__ == "__main__":
    demo_server.demo_server = workbench  # type: ignore[assignment]
    raise SystemExit(demo_server.main())
