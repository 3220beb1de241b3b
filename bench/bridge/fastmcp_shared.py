"""Peer: FastMCP's proxy over one upstream session that all calls share, with JSON replies instead of SSE.

`fastmcp run mcp.json` makes a client for every call, though it keeps the upstream; a connected client as the target is
shared by all of them. Run as `python fastmcp_shared.py <port> <command> <argument>…` in FastMCP's environment.
"""

import asyncio
import sys

import uvicorn
from fastmcp import Client  # type: ignore[import-not-found, unused-ignore]
from fastmcp.client.transports import StdioTransport  # type: ignore[import-not-found, unused-ignore]
from fastmcp.server import create_proxy  # type: ignore[import-not-found, unused-ignore]


async def main(port: int, command: str, arguments: list[str]) -> None:
    async with Client(StdioTransport(command, arguments)) as client:
        app = create_proxy(client).http_app(json_response=True)
        config = uvicorn.Config(app, port=port, loop="uvloop", http="httptools", log_level="warning", access_log=False)
        await uvicorn.Server(config).serve()


if __name__ == "__main__":
    import uvloop  # type: ignore[import-not-found, unused-ignore]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
