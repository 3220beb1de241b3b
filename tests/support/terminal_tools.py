"""The terminal's MCP server in memory, on real shells."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dari.mcp.server import Server
from dari.terminal.policy.config import Security
from dari.terminal.tools.toolkit import build_server
from tests.support.terminal_service import house_in
from tests.support.wire import Json, MemoryWire, initialize


class Client:
    """One client in memory. Questions are answered by `answer`; notifications are kept."""

    def __init__(self, server: Server, answer: Any = None) -> None:
        self.server = server
        self.notes: list[Json] = []
        self.questions: list[Json] = []
        self._answer = answer
        self._wire = MemoryWire(server)
        self._count = 0
        self._changed = asyncio.Event()
        self._waiting: dict[Any, asyncio.Future[Json]] = {}
        self._reading = asyncio.create_task(self._read())

    async def start(self) -> None:
        capabilities = {} if self._answer is None else {"elicitation": {}}
        await self.ask("initialize", **initialize("2025-11-25", **capabilities)["params"])
        self._wire.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def ask(self, method: str, **params: Any) -> Json:
        self._count += 1
        told: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[self._count] = told
        self._wire.send({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params})
        return await told

    async def call(self, tool: str, /, **arguments: Any) -> Json:
        """The structured result of a tool, or its error."""
        reply = await self.ask("tools/call", name=tool, arguments=arguments)
        if "error" in reply:
            return {"error": reply["error"]}
        if reply["result"].get("isError"):
            return {"error": reply["result"]["_meta"]["dari/error"]}
        return dict(reply["result"]["structuredContent"])

    async def noted(self, method: str) -> Json:
        """The next notification of this kind, also one that came before."""
        while True:
            for note in self.notes:
                if note["method"] == method:
                    self.notes.remove(note)
                    return note
            self._changed.clear()
            await self._changed.wait()

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        if self._wire.session is not None:
            self.server.close_session(self._wire.session)

    async def _read(self) -> None:
        while True:
            message = await self._wire.messages.get()
            if "method" not in message:
                self._waiting.pop(message["id"]).set_result(message)
            elif "id" in message:
                self.questions.append(message)
                self._wire.send({"jsonrpc": "2.0", "id": message["id"], "result": self._answer})
            else:
                self.notes.append(message)
                self._changed.set()


@asynccontextmanager
async def client_in(
    home: Path, *, security: Security | None = None, answer: Any = None, rate: float | None = 0
) -> AsyncIterator[Client]:
    async with house_in(home, security or Security(elicitation_clients=("test",))) as house:
        server = build_server(house.service, house.multiplexer, rate)
        client = Client(server, answer)
        try:
            await client.start()
            yield client
        finally:
            await client.close()
            server.close()
