"""`dari mcp` and `dari up`, as installed, with the official SDK's client on the other end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client

from tests.support.installed_hub import dari_up
from tests.support.real_clients import DARI, MODES, http_client, unix_client

pytestmark = pytest.mark.e2e


async def check(client: Client) -> None:
    """Every built-in tool answers, and the SDK finds that each answer fits its schema."""
    names = {tool.name for tool in (await client.list_tools()).tools}
    assert {"dari_ping", "dari_version", "dari_doctor"} <= names
    assert (await client.call_tool("dari_ping")).structured_content == {"pong": True}
    version = (await client.call_tool("dari_version")).structured_content
    assert version
    assert "2026-07-28" in version["protocols"]
    diagnosis = (await client.call_tool("dari_doctor")).structured_content
    assert diagnosis
    assert {found["name"] for found in diagnosis["checks"]} >= {"token", "socket", "port"}


@pytest.mark.parametrize("mode", MODES)
async def test_dari_mcp_serves_the_client_that_started_it(mode: str, tmp_path: Path) -> None:
    with (tmp_path / "stderr").open("w") as log:
        env = {"HOME": str(tmp_path), "DARI_BRIDGE_IDLE_S": "1"}  # the hub ends after its client
        words = StdioServerParameters(command=str(DARI), args=["mcp"], cwd=tmp_path, env=env)
        async with Client(stdio_client(words, errlog=log), mode=mode) as client:
            await check(client)
    said = (tmp_path / "stderr").read_text()
    assert "transport=stdio event=start" in said
    assert "transport=stdio event=eof" in said


@pytest.mark.parametrize("mode", MODES)
async def test_dari_up_serves_http_with_a_token_and_a_unix_socket(mode: str, tmp_path: Path) -> None:
    async with dari_up(tmp_path) as hub:
        for transport in (
            http_client(hub.url, token=hub.token),
            http_client("http://localhost/mcp", uds=hub.socket),
            unix_client(hub.socket),
        ):
            async with Client(transport, mode=mode) as client:
                await check(client)


@pytest.mark.parametrize("token", ["", "wrong"])
async def test_without_the_token_the_sdk_is_refused(token: str, tmp_path: Path) -> None:
    async with dari_up(tmp_path) as hub:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with httpx2.AsyncClient(headers=headers) as http:
            refused = await http.post(hub.url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
        assert refused.status_code == 401
        with pytest.raises(ExceptionGroup) as failed:
            async with Client(http_client(hub.url, token=token), mode="legacy"):
                pass
        assert failed.group_contains(MCPError)


async def test_two_sdk_clients_share_one_hub(tmp_path: Path) -> None:
    async with dari_up(tmp_path) as hub:

        async def one(mode: str) -> None:
            async with Client(http_client(hub.url, token=hub.token), mode=mode) as client:
                await check(client)

        async with asyncio.TaskGroup() as tasks:
            for mode in [*MODES, *MODES]:
                tasks.create_task(one(mode))
