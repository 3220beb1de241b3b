"""Our client and a server of the official SDK."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dari.core.content import TextContent
from dari.core.context import Progress
from dari.core.events import ListChanged
from dari.errors import TimedOut, Unavailable
from dari.mcp.client import Client, RemoteError
from dari.transport.client.child import ChildChannel
from dari.transport.connect import connect
from tests.support.mcp_client import ROOT, say_yes
from tests.support.ports import reserved_port

COMMAND = (sys.executable, "-m", "tests.mcp.client.sdk_server")
ENV = {"PYTHONPATH": str(ROOT)}

pytestmark = pytest.mark.parametrize("mode", ["handshake", "auto"])
through_every_door = pytest.mark.parametrize("door", ["stdio", "http"])


@asynccontextmanager
async def sdk(door: str, mode: Any, **options: Any) -> AsyncIterator[Client]:
    if door == "stdio":
        async with connect(COMMAND, env=ENV, mode=mode, **options) as client:
            yield client
        return
    with reserved_port() as port:
        process = await asyncio.create_subprocess_exec(
            *COMMAND, str(port), env=ENV, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        try:
            client = connect(f"http://127.0.0.1:{port}/mcp", mode=mode, **options)
            await _open(client)
            try:
                yield client
            finally:
                await client.close()
        finally:
            process.kill()
            await process.wait()


async def _open(client: Client) -> None:
    """The server says nothing when it is ready."""
    while True:
        try:
            await client.open()
            return
        except Unavailable:
            await asyncio.sleep(0.05)


@through_every_door
async def test_everything_a_server_offers(door: str, mode: Any) -> None:
    seen: list[Progress] = []
    async with sdk(door, mode, on_elicit=say_yes) as client:
        assert client.era == ("handshake" if mode == "handshake" else "stateless")
        assert client.agreement.server.name == "sdk"
        assert client.agreement.instructions == "A server of the SDK."
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert tools["echo"].input_schema["required"] == ["text"]
        assert (await client.call_tool("echo", {"text": "안녕"})).content == [TextContent(text="안녕")]
        assert (await client.call_tool("count", {"to": 3}, progress=seen.append)).text == "counted to 3"
        assert [report.progress for report in seen] == [1, 2, 3]
        assert (await client.call_tool("fail")).is_error
        assert (await client.read_resource("sdk://note")).contents[0].text == "a note"
        prompt = await client.get_prompt("letter", {"to": "Ada"})
        assert prompt.messages[0].content == TextContent(text="Dear Ada")
        with pytest.raises(RemoteError) as caught:
            await client.request("no/such")
        assert caught.value.remote_code == -32601
        results = await asyncio.gather(*(client.call_tool("echo", {"text": str(n)}) for n in range(50)))
        assert [result.text for result in results] == [str(n) for n in range(50)]
        with pytest.raises(TimedOut):
            await client.call_tool("hang", timeout_s=0.1)
        assert (await client.call_tool("greet")).text == "hello Ada"
        await client.ping()


@through_every_door
async def test_changes_are_heard(door: str, mode: Any) -> None:
    async with sdk(door, mode) as client, client.events(lists=["tools"]) as events:
        await client.call_tool("grow")
        assert await anext(events) == ListChanged("tools")
        assert "grown" in {tool.name for tool in await client.list_tools()}


async def test_the_end_of_the_server_is_noticed_on_a_pipe(mode: Any) -> None:
    async with sdk("stdio", mode) as client:
        channel = client._channel
        assert isinstance(channel, ChildChannel)
        call = asyncio.create_task(client.call_tool("hang"))
        await client.call_tool("echo", {"text": "x"})
        assert channel._process is not None
        channel._process._popen.kill()
        with pytest.raises(Unavailable, match="SIGKILL"):
            await call
