"""`dari_crab_endpoint_*`: the switch `Enable MCP (HTTP)` of design 000."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from dari.console.crab_endpoint import CrabEndpointState
from dari.core.scopes import ADMIN
from dari.core.tool import tool

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends


class CrabToken(Struct, frozen=True):
    secret: str
    """Empty before crabd has made one."""


class CrabEndpointTools:
    """Tools named `dari_crab_endpoint_<method>`."""

    prefix = "dari_crab_endpoint"

    def __init__(self, backends: ConsoleBackends) -> None:
        self._endpoint = backends.crab_endpoint

    @tool(scope=ADMIN, read_only=True)
    async def status(self) -> CrabEndpointState:
        """Tell whether crab-mcp serves HTTP, where, with which token file, and why not."""
        return self._endpoint.state()

    @tool(scope=ADMIN)
    async def start(
        self,
        port: Annotated[
            int, Meta(ge=0, le=65535, description="Port on 127.0.0.1; 0: the next free one after the hub's")
        ] = 0,
    ) -> CrabEndpointState:
        """Start crab-mcp over HTTP; it runs until it is stopped or the hub ends."""
        return await self._endpoint.start(port)

    @tool(scope=ADMIN, destructive=True)
    async def stop(self) -> CrabEndpointState:
        """Stop crab-mcp; clients that use it lose their sessions."""
        return await self._endpoint.stop()

    @tool(scope=ADMIN, read_only=True, output="as_is")
    async def token(self) -> CrabToken:
        """Return the token that callers of crab-mcp send, to copy it."""
        return CrabToken(self._endpoint.token())
