"""A server of the official SDK, for our client: `python -m tests.mcp.client.sdk_server [port [sse]]`."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from pydantic import BaseModel

server = MCPServer("sdk", instructions="A server of the SDK.")


class Person(BaseModel):
    name: str


@server.tool()
async def echo(text: str) -> str:
    """Return the text."""
    return text


@server.tool()
async def count(context: Context, to: int) -> str:
    """Count with progress."""
    for number in range(1, to + 1):
        await context.report_progress(number, to, f"step {number}")
    return f"counted to {to}"


@server.tool()
async def hang() -> str:
    """Never end."""
    await asyncio.Event().wait()
    return "never"


@server.tool()
async def fail() -> str:
    """Raise."""
    raise ValueError("on purpose")


def ask() -> Elicit[Person]:
    return Elicit("Who are you?", Person)


@server.tool()
async def greet(person: Annotated[Person, Resolve(ask)]) -> str:
    """Ask for a name."""
    return f"hello {person.name}"


@server.tool()
async def grow(context: Context) -> str:
    """Get a new tool."""
    server.add_tool(fail, name="grown")
    if context.protocol_version == "2026-07-28":
        await context.notify_tools_changed()
    else:
        await context.session.send_tool_list_changed()
    return "grown"


@server.resource("sdk://note")
def note() -> str:
    """A note."""
    return "a note"


@server.prompt()
def letter(to: str) -> str:
    """Write a letter."""
    return f"Dear {to}"


if __name__ == "__main__":
    if len(sys.argv) > 2:
        server.run("sse", port=int(sys.argv[1]))
    elif len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run("stdio")
