"""A child that speaks MCP: started, greeted, and watched."""

from __future__ import annotations

from typing import Unpack

from dari.bridge.children.channel import SupervisedChannel
from dari.bridge.children.supervisor import SessionEnd
from dari.mcp.client.client import Client
from dari.process.child import Child, ChildSpec
from dari.process.children import Children
from dari.transport.connect import ClientOptions


class ChildSession:
    """What `Supervisor(name, lambda init_s: ChildSession.open(children, spec, open_timeout_s=init_s))` keeps alive."""

    def __init__(self, client: Client, child: Child) -> None:
        self.client = client
        self.child = child

    @classmethod
    async def open(cls, children: Children, spec: ChildSpec, **options: Unpack[ClientOptions]) -> ChildSession:
        """Raises what the server's start came to, with its exit status and the end of its stderr."""
        channel = SupervisedChannel(lambda: children.start(spec))
        client = Client(channel, **options)
        await client.open()
        assert channel.child is not None
        return cls(client, channel.child)

    @property
    def is_open(self) -> bool:
        return self.client.is_open

    async def ended(self) -> SessionEnd:
        error = await self.client.ended()
        return SessionEnd(error, is_fault=self.child.returncode != 0)

    async def close(self) -> None:
        await self.client.close()
