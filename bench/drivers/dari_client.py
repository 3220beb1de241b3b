"""Our client, opened and called as any user of it does."""

from __future__ import annotations

from pathlib import Path

import uvloop

from bench.drivers.arguments import ECHO_TEXT, Arguments, count, parse
from dari.mcp.client import Client
from dari.transport.connect import connect


async def measure(given: Arguments) -> None:
    async with _client(given) as client:

        async def echo() -> str:
            result = await client.call_tool("echo", {"text": ECHO_TEXT})
            return str(result.content[0])

        await count(given, echo)


def _client(given: Arguments) -> Client:
    if given.url:
        return connect(given.url, bearer=given.token)
    return connect(given.command, cwd=Path.cwd())


if __name__ == "__main__":
    uvloop.run(measure(parse()))
