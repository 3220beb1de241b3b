"""HTTP of one `dari mcp --transport http|both`: its listener is in that process, its sessions and calls are here.

The process keeps one connection open for as long as it serves, and sends each HTTP request that it has let in on
another one. What a client may do was checked there, so that nothing is asked for here.
"""

from __future__ import annotations

import asyncio
from typing import Any

from dari.core.scopes import Grant
from dari.mcp.server import Server
from dari.transport.endpoint import McpEndpoint
from dari.transport.guard import HttpGuard
from dari.transport.sessions import HttpSessions
from dari.transport.uvicorn_server import UvicornServer


class HttpAttachment:
    """Serves connections that are handed to it, from `start` until `stop` has let what runs finish."""

    def __init__(self, server: Server, grant: Grant) -> None:
        self._endpoint = McpEndpoint(server, HttpSessions(server), HttpGuard(None, None, ()), grant)
        self._server = UvicornServer(self._endpoint, [], _serve_nothing)

    async def start(self) -> None:
        await self._server.start()

    def take(self, transport: asyncio.Transport, heard: bytes) -> None:
        """Speak HTTP on a connection from here on."""
        protocol = self._server.protocol_for(self._endpoint)()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        if heard:
            protocol.data_received(heard)

    async def stop(self) -> None:
        await self._server.stop()


async def _serve_nothing(scope: Any, receive: Any, send: Any) -> None:
    """Only `/mcp` is forwarded."""
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b""})
