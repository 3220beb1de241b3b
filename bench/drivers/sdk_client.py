"""The official SDK's client, as its documentation shows it."""

import httpx2
import uvloop
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from bench.drivers.arguments import ECHO_TEXT, Arguments, count, parse


async def measure(given: Arguments) -> None:
    if given.url:
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {given.token}"}) as http:
            await measure_with(Client(streamable_http_client(given.url, http_client=http)), given)
    else:
        program, *rest = given.command
        await measure_with(Client(StdioServerParameters(command=program, args=rest)), given)


async def measure_with(client: Client, given: Arguments) -> None:
    async with client:

        async def echo() -> str:
            result = await client.call_tool("echo", {"text": ECHO_TEXT})
            return str(result.content[0])

        await count(given, echo)


if __name__ == "__main__":
    uvloop.run(measure(parse()))
