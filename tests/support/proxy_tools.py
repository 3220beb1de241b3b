"""The proxy's tools over MCP in memory, with a whole proxy behind them in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jsonschema_rs

from dari.core.registry import Registry
from dari.mcp.server import Info, Server
from dari.proxy.api.service import ProxyService
from dari.proxy.tools import ProxyTools
from tests.support.proxy_service import Rig, proxy
from tests.support.wire import Json, MemoryWire, initialize


class Refused(Exception):
    """A tool's failure, as the client sees it."""

    def __init__(self, error: Json) -> None:
        super().__init__(error["message"])
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.hint: str = error["hint"]


def tool_call(name: str, arguments: Json, number: int | str = 1, **meta: Any) -> Json:
    """Like `tests.support.wire.call`, for arguments of any name."""
    params: Json = {"name": name, "arguments": arguments} | ({"_meta": meta} if meta else {})
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def server_of(service: ProxyService, which: Literal["core", "all"] = "all") -> Server:
    registry = Registry()
    registry.add_tools(*ProxyTools(service).tools(which))
    return Server(registry, Info(name="crab-mcp", version="1"))


@dataclass
class Crab:
    proxy: Rig
    server: Server
    wire: MemoryWire

    async def call(self, name: str, /, **arguments: Any) -> Json:
        """The structured result of `crab_<name>`."""
        reply = await self.wire.ask(tool_call(f"crab_{name}", arguments))
        result = reply["result"]
        if result.get("isError"):
            raise Refused(result["_meta"]["dari/error"])
        schema = self.server.registry.tools[f"crab_{name}"].output_schema
        if schema is not None:
            jsonschema_rs.Draft202012Validator(schema).validate(result["structuredContent"])
        return dict(result["structuredContent"])


@asynccontextmanager
async def crab(directory: Path, *, starts: bool = False) -> AsyncIterator[Crab]:
    async with proxy(directory, starts=starts) as rig:
        server = server_of(rig.service)
        wire = MemoryWire(server)
        await wire.ask(initialize())
        yield Crab(rig, server, wire)
