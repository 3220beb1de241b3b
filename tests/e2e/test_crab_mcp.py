"""`crab-mcp`, as installed, with the official SDK's client and with raw bytes on the other end."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from tests.support.crab_processes import crab_mcp, crabd_pid, end_crabd, run_directory
from tests.support.proxy_tools import tool_call
from tests.support.real_clients import DARI, MODES, Person, http_client
from tests.support.wire import Json, Wire, initialize

pytestmark = pytest.mark.e2e

CRAB_MCP = (str(Path(sys.executable).with_name("crab-mcp")),)


@asynccontextmanager
async def sdk_over_stdio(run_dir: Path, mode: str, **options: Any) -> AsyncIterator[Client]:
    words = StdioServerParameters(
        command=CRAB_MCP[0], args=["--run-dir", str(run_dir)], env={"HOME": str(run_dir)}, cwd=run_dir
    )
    with (run_dir / "stderr").open("a") as log:
        async with Client(stdio_client(words, errlog=log), mode=mode, **options) as client:
            yield client


async def check(client: Client) -> None:
    """Read, write, read again; the SDK finds that each answer fits its schema."""
    names = [tool.name for tool in (await client.list_tools()).tools]
    assert len(names) > 60
    assert (await client.call_tool("crab_ping")).structured_content == {"pong": True}
    added = await client.call_tool("crab_rules_add", {"kind": "block", "matcher": "http://one.test/"})
    assert added.structured_content
    listed = await client.call_tool("crab_rules_list", {"kind": "block"})
    assert listed.structured_content
    assert added.structured_content["id"] in [rule["id"] for rule in listed.structured_content["rules"]]
    for name in ("crab_daemon_doctor", "crab_engine_config_get", "crab_traffic_tail", "crab_rules_dump"):
        assert not (await client.call_tool(name)).is_error
    refused = await client.call_tool("crab_env_snippet")
    assert refused.is_error
    assert refused.meta
    assert refused.meta["dari/error"]["code"] == -32002


@pytest.mark.parametrize("mode", MODES)
async def test_the_sdk_uses_it_over_stdio_and_finds_crabd_again(mode: str) -> None:
    with run_directory() as run_dir:
        async with sdk_over_stdio(run_dir, mode) as client:
            await check(client)
        pid = crabd_pid(run_dir)
        assert pid is not None, "crabd outlives the client"
        async with sdk_over_stdio(run_dir, mode) as client:
            await check(client)
        assert crabd_pid(run_dir) == pid
        assert "transport=stdio event=eof" in (run_dir / "stderr").read_text()


@pytest.mark.parametrize("mode", MODES)
async def test_the_sdk_uses_it_over_http(mode: str) -> None:
    with run_directory() as run_dir:
        async with crab_mcp(run_dir, transport="http", command=CRAB_MCP) as server:
            async with Client(http_client(server.url, token=server.token_now()), mode=mode) as client:
                await check(client)
            assert await server.stop() == 0


async def test_a_wait_is_told_of_and_ends_with_the_request() -> None:
    with run_directory() as run_dir:
        person = Person()
        async with sdk_over_stdio(run_dir, "legacy", message_handler=person.notice) as client:
            await client.call_tool("crab_engine_set_listen_addr", {"listen_addr": "127.0.0.1:0"})
            await client.call_tool("crab_proxy_start")
            await client.call_tool("crab_rules_add_map_local_text", {"matcher": "http://one.test/", "text": "hi"})
            seen: list[float] = []
            told = asyncio.Event()

            async def progress(done: float, total: float | None, message: str | None) -> None:
                seen.append(done)
                told.set()

            waiting = asyncio.create_task(
                client.call_tool("crab_traffic_wait", {"host": "one.test", "timeout_s": 15}, progress_callback=progress)
            )
            await told.wait()
            sent = await client.call_tool("crab_traffic_compose", {"url": "http://one.test/a"})
            assert sent.structured_content
            found = (await waiting).structured_content
            assert found
            assert str(found["flow"]["id"]) == sent.structured_content["request_id"]


async def ask(wire: Wire, name: str, **arguments: Any) -> Json:
    return dict((await wire.ask(tool_call(name, arguments, name)))["result"]["structuredContent"])


async def test_the_end_of_stdin_leaves_http_alone() -> None:
    with run_directory() as run_dir:
        async with crab_mcp(run_dir, command=CRAB_MCP) as server:
            stdio, http = server.stdio(), await server.http()
            for wire in (stdio, http):
                await wire.ask(initialize())
            await ask(stdio, "crab_rules_add_allow", matcher="one.test")
            assert server.process.stdin and server.process.stderr
            server.process.stdin.close()
            while b"transport=stdio event=eof" not in (line := await server.process.stderr.readline()):
                assert line
            assert await ask(http, "crab_rules_list_allow") == {"allowlist": ["one.test"]}
            server.process.send_signal(signal.SIGINT)
            assert await server.process.wait() == 0


async def test_a_client_of_the_next_crabd_needs_its_token() -> None:
    """A restart makes new tokens; the server sees the new file and lets the old token in no longer, nor any session
    that was begun with it."""
    with run_directory() as run_dir:
        async with crab_mcp(run_dir, transport="http", command=CRAB_MCP) as server:
            wire = await server.http()
            await wire.ask(initialize())
            old = server.token_now()
            assert await ask(wire, "crab_rpc", method="system.shutdown") == {"status": "shutting_down"}
            async with sdk_over_stdio(run_dir, "legacy") as client:  # starts the next one
                while (await client.call_tool("crab_ping")).is_error:
                    pass
            assert server.token_now() != old
            while (await wire.post(tool_call("crab_ping", {}))).status != 401:
                pass
            wire.headers["Authorization"] = f"Bearer {server.token_now()}"
            assert (await wire.post(tool_call("crab_ping", {}))).status == 404
            again = await server.http()
            again.headers["Authorization"] = f"Bearer {server.token_now()}"
            await again.ask(initialize())
            assert await ask(again, "crab_ping") == {"pong": True}


async def test_many_clients_call_at_once_and_a_wait_keeps_nobody_waiting() -> None:
    with run_directory() as run_dir:
        async with crab_mcp(run_dir, command=CRAB_MCP) as server:
            stdio = server.stdio()
            wires = [await server.http() for _ in range(6)]
            for wire in (stdio, *wires):
                await wire.ask(initialize())
            await ask(stdio, "crab_engine_set_listen_addr", listen_addr="127.0.0.1:0")
            await ask(stdio, "crab_proxy_start")
            waiting = asyncio.create_task(ask(wires[0], "crab_traffic_wait", host="never.test", timeout_s=300))

            async def use(wire: Wire, number: int) -> None:
                for turn in range(20):
                    matcher = f"{number}-{turn}.test"
                    await ask(wire, "crab_rules_add_allow", matcher=matcher)
                    assert matcher in (await ask(wire, "crab_rules_list_allow"))["allowlist"]

            async with asyncio.TaskGroup() as tasks:
                for number, wire in enumerate((stdio, *wires[1:])):
                    tasks.create_task(use(wire, number))
            assert len((await ask(stdio, "crab_rules_list_allow"))["allowlist"]) == 120
            assert not waiting.done()
            waiting.cancel()
            await asyncio.wait({waiting})


async def test_dari_mcp_offers_the_same_tools_and_starts_crabd_with_the_first_call() -> None:
    with run_directory() as home, run_directory_of(home / "run" / "crabd") as run_dir:
        env = {"HOME": str(home), "DARI_HOME": str(home), "DARI_BRIDGE_IDLE_S": "1"}  # the hub ends after its client
        words = StdioServerParameters(command=str(DARI), args=["mcp"], env=env, cwd=home)
        with (home / "stderr").open("w") as log:
            async with Client(stdio_client(words, errlog=log), mode="auto") as client:
                names = [tool.name for tool in (await client.list_tools()).tools]
                assert {"dari_ping", "crab_ping", "crab_traffic_search"} <= set(names)
                assert not run_dir.exists(), "to list tools starts nothing and writes nothing"
                await check(client)
                assert crabd_pid(run_dir) is not None


@contextmanager
def run_directory_of(path: Path) -> Iterator[Path]:
    """Where a daemon may appear; it is ended by its pid."""
    try:
        yield path
    finally:
        end_crabd(path)
