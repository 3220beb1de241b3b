"""A process that owns a crab endpoint as the hub does: `crab_endpoint_hub.py PORT`. Prints its state, then waits."""

from __future__ import annotations

import asyncio
import sys

import msgspec

from dari.app import new_children, proxy_client, proxy_service
from dari.console.crab_endpoint import CrabEndpoint


async def main(port: int) -> None:
    async with new_children() as children:
        endpoint = CrabEndpoint(
            children, lambda starts: proxy_service(proxy_client("app", starts=starts)), lambda: "http://127.0.0.1:1/mcp"
        )
        state = await endpoint.start(port)
        sys.stdout.write(msgspec.json.encode(state).decode() + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


asyncio.run(main(int(sys.argv[1])))
