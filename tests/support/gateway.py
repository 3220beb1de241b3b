"""A gateway inside the test's own loop, over real child servers of both eras."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dari.bridge.gateway.endpoints import GatewayEndpoint, ServerOptions
from dari.bridge.gateway.selection import ServerSelection
from dari.bridge.service import Bridge
from dari.core.events import Event
from dari.core.registry import Registry
from dari.mcp.server import Server
from tests.support.bridge import LAB, Place
from tests.support.demo_server import DemoTools
from tests.support.mcp_server import request
from tests.support.waiting import until
from tests.support.wire import ROOT, Json, MemoryWire, initialize, stateless

EVERYTHING: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {}}
ERAS = {"handshake": "legacy", "stateless": "2026-07-28"}
"""The era of a server → the `protocol` of its profile."""


def lab(id: str = "lab", **fields: Any) -> dict[str, Any]:
    """A server of the handshake era."""
    return {"id": id, "kind": "stdio", "command": sys.executable, "args": [str(LAB)], **fields}


def demo(id: str = "demo", era: str = "stateless", **fields: Any) -> dict[str, Any]:
    """One of ours, in either era."""
    words = {"command": sys.executable, "args": ["-m", "tests.support.demo_server"], "cwd": str(ROOT)}
    return {"id": id, "kind": "stdio", **words, "protocol": ERAS[era], "timeoutMs": 20_000, **fields}


def dead(id: str = "dead", **fields: Any) -> dict[str, Any]:
    """One that ends before it says a word."""
    return {"id": id, "kind": "stdio", "command": sys.executable, "args": ["-c", "raise SystemExit(3)"], **fields}


def silent(id: str = "silent", **fields: Any) -> dict[str, Any]:
    """One that starts and never answers."""
    words = ["-c", "import sys\nfor line in sys.stdin: pass"]
    return {"id": id, "kind": "stdio", "command": sys.executable, "args": words, "initTimeoutMs": 60_000, **fields}


class House:
    """A front with a client on a memory wire."""

    def __init__(self, place: Place, bridge: Bridge, front: GatewayEndpoint) -> None:
        self.place = place
        self.bridge = bridge
        self.front = front
        self.server: Server = front.server
        self.events: list[Event] = []
        front.full.events.subscribe(self.events.append)
        self.wire = MemoryWire(self.server)
        self.ask = self.wire.ask
        self.send = self.wire.send
        self.next = self.wire.messages.get

    async def agree(self, version: str = "2025-11-25", **capabilities: Any) -> Json:
        return dict((await self.ask(initialize(version, **capabilities)))["result"])

    async def client(self, version: str = "2025-11-25", **capabilities: Any) -> MemoryWire:
        """One more client of the handshake era."""
        wire = MemoryWire(self.server)
        await wire.ask(initialize(version, **capabilities))
        return wire

    async def names(self, kind: str = "tools") -> list[str]:
        reply = await replied(self.wire, stateless(request(f"{kind}/list", "names")))
        return [one["name"] for one in reply["result"][kind]]

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for an event of the registry after which the condition holds."""
        changed = asyncio.Event()
        stop = self.front.full.events.subscribe(lambda _: changed.set())
        try:
            while not holds():
                await changed.wait()
                changed.clear()
        finally:
            stop()


def built_ins(registry: Registry) -> None:
    registry.add_toolkit(DemoTools())


@asynccontextmanager
async def house(
    root: Path,
    *servers: dict[str, Any],
    choice: ServerSelection | None = None,
    own_tools: bool = False,
    starts: bool = True,
    **top: Any,
) -> AsyncIterator[House]:
    place = Place(root, *servers, **top)
    async with place.bridge() as bridge:
        manner = ServerOptions(
            add_built_ins=built_ins if own_tools else None,
            approvals=bridge.approvals,
            call_log=lambda: bridge.audit,
        )
        front = GatewayEndpoint(bridge.view(place.around()), choice, manner)
        opened = House(place, bridge, front)
        if starts:
            front.start()
        try:
            yield opened
        finally:
            await front.close()


def called(name: str, request_id: int | str = 1, /, **arguments: Any) -> Json:
    return request("tools/call", request_id, name=name, arguments=arguments)


def asked(name: str, capabilities: Json | None = None, **params: Any) -> Json:
    """A call of the stateless era by a client that can be asked anything."""
    message = request("tools/call", name=name, **params)
    return stateless(message, **(EVERYTHING if capabilities is None else capabilities))


def text_of(reply: Json) -> str:
    return str(reply["result"]["content"][0]["text"])


def written(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value))


async def replied(wire: MemoryWire, message: Json) -> Json:
    """The reply to a request, whatever is told before it."""
    wire.send(message)
    while (heard := await wire.messages.get()).get("id") != message["id"] or "method" in heard:
        pass
    return heard


async def seen(holds: Callable[[], object]) -> None:
    """Wait for what another process does, of which no event tells."""
    await until(holds)


def is_gone(pid: int | str) -> bool:
    return not Path(f"/proc/{pid}").exists()
