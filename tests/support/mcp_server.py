"""A demo server on a memory wire, agreed on a version, and the messages that tests send it."""

from __future__ import annotations

from typing import Any

from dari.mcp.server import Server
from tests.support.demo_server import DemoTools, demo_server
from tests.support.wire import Json, MemoryWire, initialize

VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
LATEST = "2025-11-25"
STATELESS = "2026-07-28"


class Rig:
    """Everything one test needs to talk to one server."""

    def __init__(self, server: Server | None = None) -> None:
        self.tools = DemoTools()
        self.server = server or demo_server(self.tools)
        self.wire = MemoryWire(self.server)
        self.ask = self.wire.ask
        self.send = self.wire.send
        self.next = self.wire.messages.get

    async def agree(self, version: str = LATEST, **capabilities: Any) -> Json:
        return dict((await self.ask(initialize(version, **capabilities)))["result"])

    async def quiet(self) -> None:
        """Nothing was sent before the answer to this ping: the wire keeps the order."""
        self.send(request("ping", "quiet?"))
        while (message := await self.next())["id"] != "quiet?":
            raise AssertionError(f"unexpected: {message}")


async def ready(version: str = LATEST, **capabilities: Any) -> Rig:
    rig = Rig()
    await rig.agree(version, **capabilities)
    return rig


def request(method: str, request_id: int | str = 1, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def notification(method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def answer(question: Json, **result: Any) -> Json:
    return {"jsonrpc": "2.0", "id": question["id"], "result": result}


def refusal(question: Json, code: int = -1, message: str = "the person said no") -> Json:
    return {"jsonrpc": "2.0", "id": question["id"], "error": {"code": code, "message": message}}


def text_of(reply: Json) -> str:
    return str(reply["result"]["content"][0]["text"])


def failure_of(reply: Json) -> Json:
    assert reply["result"]["isError"] is True
    return dict(reply["result"]["_meta"]["dari/error"])
