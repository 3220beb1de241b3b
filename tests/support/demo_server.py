"""A server for the tests: a tool for every kind of success, and one for every row of the error table.

Run as a program it is a server: `python -m tests.support.demo_server --transport both --http-port 0 …`.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from dari import log
from dari.core.content import ImageContent, PromptMessage, TextContent
from dari.core.context import Context
from dari.core.prompt import Prompt, PromptArgument
from dari.core.registry import Registry
from dari.core.resource import Resource, ResourceTemplate
from dari.core.tool import tool
from dari.errors import Conflict, NotFound, TimedOut, Unavailable
from dari.mcp.server import Info, Server
from dari.runtime import run_to_exit
from dari.settings import ServeSettings
from dari.transport.supervisor import TransportSupervisor


class ProxyNotRunning(Conflict):
    code = -32002
    name = "proxy_not_running"
    prefix = ""


class ProxyAlreadyRunning(Conflict):
    code = -32003
    name = "proxy_already_running"
    prefix = ""


class Echo(Struct):
    text: str
    times: int


class DemoTools:
    """Tools named `demo_<method>`."""

    prefix = "demo"

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.release = asyncio.Event()

    @tool()
    async def echo(self, text: str, times: Annotated[int, Meta(ge=1, le=9)] = 1) -> Echo:
        """Return the text."""
        return Echo(text * times, times)

    @tool()
    def quick(self, text: str) -> Echo:
        """Return the text without a task."""
        return Echo(text, 1)

    @tool()
    async def size(self, text: str) -> str:
        """Tell how long the text is."""
        return str(len(text))

    @tool()
    async def picture(self) -> ImageContent:
        """Return an image."""
        return ImageContent.of(b"\x89PNG", "image/png")

    @tool(scope="admin")
    async def admin(self) -> str:
        """Need a scope that the caller does not hold."""
        return "never"

    @tool()
    async def unreachable(self) -> str:
        """Fail because the daemon is away."""
        raise Unavailable("daemon unreachable", "start it with crabd serve")

    @tool()
    async def not_running(self) -> str:
        """Fail because the proxy is stopped."""
        raise ProxyNotRunning("Proxy not running", "call crab_proxy_start first")

    @tool()
    async def already_running(self) -> str:
        """Fail because the proxy runs."""
        raise ProxyAlreadyRunning("Proxy already running", "call crab_proxy_stop first")

    @tool()
    async def missing(self) -> str:
        """Fail because a thing does not exist."""
        raise NotFound("pane 7 does not exist", "crux_list_panes shows the panes")

    @tool()
    async def late(self) -> str:
        """Fail because time ran out."""
        raise TimedOut("no answer in 5 s", "try again")

    @tool()
    async def broken(self) -> str:
        """Fail with a bug."""
        raise RuntimeError("boom")

    @tool(timeout_s=0.05)
    async def endless(self) -> str:
        """Never end by itself."""
        await asyncio.Event().wait()
        return "never"

    @tool()
    async def hang(self) -> str:
        """Wait until released; say when it was cancelled."""
        self.started.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return "released"

    @tool()
    async def count(self, context: Context, to: int = 3) -> str:
        """Count with progress and log records."""
        for number in range(1, to + 1):
            await context.progress(number, to, f"step {number}")
            await context.log("info", {"number": number}, "demo")
        return f"counted to {to}"

    @tool()
    async def greet(self, context: Context) -> str:
        """Ask the person for a name."""
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        answer = await context.elicit("Who are you?", schema, key="who")
        if answer.action != "accept" or answer.content is None:
            return f"nobody ({answer.action})"
        return f"hello {answer.content['name']}"

    @tool()
    async def introduce(self, context: Context) -> str:
        """Ask twice, one after the other."""
        schema: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
        first = await context.elicit("first?", schema, key="first")
        context.state["seen"] = True
        second = await context.elicit("second?", schema, key="second")
        assert first.content and second.content
        return f"{first.content['x']} and {second.content['x']}"

    @tool()
    async def think(self, context: Context) -> str:
        """Ask the client's model."""
        message = {"role": "user", "content": {"type": "text", "text": "2+2"}}
        answer = await context.sample([message], 10)
        return str(answer["content"]["text"])

    @tool()
    async def folders(self, context: Context) -> str:
        """Ask which folders are open."""
        return ",".join(root["uri"] for root in await context.list_roots())

    @tool()
    async def routed(
        self, region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})], level: int = 0
    ) -> str:
        """Take an argument that is mirrored into a header."""
        return f"{region}:{level}"


def registry_of(tools: DemoTools) -> Registry:
    registry = Registry()
    registry.add_toolkit(tools)

    async def note(context: Context) -> str:
        return "a note"

    async def blob(context: Context) -> bytes:
        return b"\x00\x01"

    async def item(context: Context, values: dict[str, str]) -> str:
        return f"item {values['id']}"

    async def ids(typed: str, known: dict[str, str]) -> list[str]:
        return [value for value in ("one", "two", "three") if value.startswith(typed)]

    async def letter(context: Context, given: dict[str, str]) -> list[PromptMessage]:
        return [PromptMessage("user", TextContent(text=f"Dear {given['to']}"))]

    registry.add_resource(Resource("demo://note", "note", note, mime_type="text/plain"))
    registry.add_resource(Resource("demo://blob", "blob", blob, mime_type="application/octet-stream"))
    registry.add_template(ResourceTemplate("demo://item/{id}", "item", item, completers={"id": ids}))
    registry.add_prompt(Prompt("letter", letter, "Write a letter", [PromptArgument("to", "name", True, ids)]))
    return registry


def demo_server(tools: DemoTools | None = None, *, strict: bool = False) -> Server:
    return Server(registry_of(tools or DemoTools()), Info(name="demo", version="1"), strict=strict)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--transport", default="stdio")
    parser.add_argument("--http-port", type=int)
    parser.add_argument("--token-path", type=Path)
    parser.add_argument("--socket", type=Path)
    parser.add_argument("--protocol", default="negotiate")
    given = parser.parse_args()
    log.configure_logging()

    async def serve() -> int:
        settings = ServeSettings(
            transport=given.transport,
            http_port=given.http_port,
            token_path=given.token_path,
            socket_path=given.socket,
            protocol=given.protocol,
        )
        return await TransportSupervisor(demo_server(strict=given.protocol == "strict"), settings).run()

    return run_to_exit(serve)


if __name__ == "__main__":
    raise SystemExit(main())
