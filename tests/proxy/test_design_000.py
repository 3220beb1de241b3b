"""Design 000 §12, the definition of done: one test per line, in its order, each on the real commands."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import stat
import sys
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dari.cli.crab_mcp import make_parser
from tests.proxy.tools.conversation import content, conversation, known_paths, talk
from tests.proxy.tools.reference import TOOLS
from tests.support.crab_processes import CRAB_MCP, crab_mcp, crabd_pid, run_directory
from tests.support.origins.origin import origin
from tests.support.proxy_tools import tool_call
from tests.support.wire import ROOT, HttpWire, Json, StreamWire, Wire, initialize

LIST = {"jsonrpc": "2.0", "id": "list", "method": "tools/list"}


async def structured(wire: Wire, name: str, **arguments: Any) -> Json:
    reply = await wire.ask(tool_call(name, arguments, name))
    assert "error" not in reply and not reply["result"].get("isError"), reply
    return dict(reply["result"]["structuredContent"])


async def test_1_stdio_and_streamable_http_offer_the_same_32_tools() -> None:
    with run_directory() as run_dir:
        async with crab_mcp(run_dir, "--tools", "core") as server:
            listed = []
            for wire in (server.stdio(), await server.http()):
                await wire.ask(initialize("2024-11-05"))
                listed.append(await wire.ask(LIST))
    assert listed[0] == listed[1]
    assert [tool["name"] for tool in listed[0]["result"]["tools"]] == list(TOOLS)
    assert len(TOOLS) == 32


async def test_2_transport_both_serves_stdio_and_http_at_once() -> None:
    with run_directory() as run_dir:
        async with crab_mcp(run_dir) as server:
            stdio, http = server.stdio(), await server.http()
            for wire in (stdio, http):
                await wire.ask(initialize())

            async def ask_often(wire: Wire) -> list[Json]:
                return [await structured(wire, "crab_ping") for _ in range(50)]

            async with asyncio.timeout(40):
                answers = await asyncio.gather(ask_often(stdio), ask_often(http))
            assert answers == [[{"pong": True}] * 50] * 2

            assert server.process.stdin and server.process.stderr
            server.process.stdin.close()
            while b"transport=stdio event=eof" not in (line := await server.process.stderr.readline()):
                assert line, "the end of stdin is logged"
            assert await structured(http, "crab_proxy_status") == {"status": "stopped"}, "HTTP goes on"
            server.process.send_signal(signal.SIGTERM)
            assert await server.process.wait() == 0


async def dari_proxy(run_dir: Path, *words: str) -> Json:
    """`dari proxy … --json`, as somebody types it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dari", "proxy", *words, "--json", "--run-dir", str(run_dir)),
        env={"PATH": os.environ["PATH"], "HOME": str(run_dir), "DARI_HOME": str(run_dir / "home")},
        cwd=ROOT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return dict(json.loads(said))


async def test_3_the_http_server_is_switched_on_and_off_and_tells_endpoint_and_token() -> None:
    """The design's app is our command line: `dari proxy mcp start|status|stop`."""
    with run_directory() as run_dir:
        try:
            on = await dari_proxy(run_dir, "mcp", "start", "--port", "0")
            assert on["status"] == "running"
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/mcp", on["url"])
            token = Path(on["token_path"]).read_text().strip()
            port = int(on["url"].split(":")[2].partition("/")[0])
            wire = HttpWire(*await asyncio.open_connection("127.0.0.1", port), token=token)
            await wire.ask(initialize())
            assert await structured(wire, "crab_ping") == {"pong": True}
            wire.writer.close()
            assert (await dari_proxy(run_dir, "mcp", "status"))["url"] == on["url"]
        finally:
            off = await dari_proxy(run_dir, "mcp", "stop")
        assert off["status"] == "stopped"
        assert (await dari_proxy(run_dir, "mcp", "status"))["status"] == "stopped"
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)


async def fetch(address: str, url: str) -> bytes:
    """A program that uses the proxy."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    name = url.split("/")[2]
    writer.write(f"GET {url} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\nCookie: sid=hush\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return answer


@pytest.fixture(scope="module")
def sdk() -> None:
    """Imported before the deadline of a test begins: it takes seconds."""
    import tests.support.real_clients  # noqa: F401


@pytest.mark.usefixtures("sdk")
@pytest.mark.parametrize("door", ["stdio", "http"])
async def test_4_rules_and_traffic_can_be_used_from_an_ide(door: str) -> None:
    """With the official SDK's client, the one most IDEs are built on."""
    with run_directory() as run_dir:
        async with origin() as site, sdk_client(door, run_dir) as client:

            async def call(name: str, **arguments: Any) -> Json:
                result = await client.call_tool(name, arguments)
                assert not result.is_error, result
                return dict(result.structured_content or {})

            await call("crab_engine_set_listen_addr", listen_addr="127.0.0.1:0")
            assert await call("crab_proxy_start") == {"status": "running"}
            address = (await call("crab_proxy_info"))["address"]
            url = f"http://127.0.0.1:{site.port}/orders/7"
            assert b"200 OK" in await fetch(address, url)
            (entry,) = (await call("crab_traffic_tail"))["entries"]
            assert (entry["url"], entry["status"]) == (url, 200)
            assert "hush" not in json.dumps(entry)

            await call("crab_rules_add_map_local_text", matcher=url, text='{"id": 7}', status_code=201)
            assert b"201 Created" in await fetch(address, url)
            await call("crab_rules_add_status_rewrite", matcher=url, to_status_code=503)
            assert b"503 Service Unavailable" in await fetch(address, url)
            (newest, *_) = (await call("crab_traffic_tail", max_entries=1))["entries"]
            assert (newest["status"], newest["map_local"]) == (503, url)
            assert (await call("crab_traffic_get", request_id=newest["request_id"]))["entry"] == newest
            assert len((await call("crab_rules_dump"))["map_local"]) == 1
            assert (await call("crab_rules_remove_map_local", matcher=url))["removed"] == 1
            assert await call("crab_rules_clear") == {"ok": True}
            assert b"200 OK" in await fetch(address, url)
            assert await call("crab_proxy_stop") == {"status": "stopped"}


@asynccontextmanager
async def sdk_client(door: str, run_dir: Path) -> AsyncIterator[Any]:
    from mcp import Client, StdioServerParameters, stdio_client

    from tests.support.real_clients import http_client

    if door == "http":
        async with (
            crab_mcp(run_dir, transport="http") as server,
            Client(http_client(server.url, token=server.token_now()), mode="auto") as client,
        ):
            yield client
        return
    words = StdioServerParameters(command=sys.executable, args=[*CRAB_MCP[1:], "--run-dir", str(run_dir)], cwd=ROOT)
    with (run_dir / "stderr").open("w") as log:
        async with Client(stdio_client(words, errlog=log), mode="auto") as client:
            yield client


async def test_5_the_defaults_are_safe_loopback_token_origin_and_scope() -> None:
    assert make_parser().parse_args([]).http_bind == "127.0.0.1"
    with run_directory() as run_dir:
        async with crab_mcp(run_dir, "--protocol", "strict", transport="http") as server:
            for address in other_addresses():
                with pytest.raises(OSError):
                    await asyncio.open_connection(address, server.port)
            assert stat.S_IMODE((run_dir / "mcp.token").stat().st_mode) == 0o600
            assert stat.S_IMODE(run_dir.stat().st_mode) == 0o700
            ping = tool_call("crab_ping", {})
            wire = await server.http()
            for headers, status in (
                ({"Authorization": ""}, 401),
                ({"Authorization": "Bearer no"}, 401),
                ({"Origin": "https://evil.example"}, 403),
                ({"Origin": "http://localhost.evil.example"}, 403),
                ({"Host": "evil.example"}, 403),
            ):
                assert (await wire.post(ping, **headers)).status == status, headers
            await wire.ask(initialize("2024-11-05"))
            assert await structured(wire, "crab_ping") == {"pong": True}
            assert (await wire.post(ping, Origin="http://localhost:5173")).status == 200
            refused = await wire.ask(tool_call("crab_rpc", {"method": "system.rotate_token"}))
            assert refused["error"]["code"] == -32001
            assert refused["error"]["message"] == "Forbidden: insufficient scope"


def other_addresses() -> list[str]:
    """Loopback addresses that are not 127.0.0.1: a server on every interface would answer there, too."""
    return ["127.0.0.2"] if sys.platform == "linux" else []


@pytest.mark.parametrize("is_lsp", [False, True], ids=["newlines", "Content-Length"])
async def test_6_stdio_works_as_it_did(is_lsp: bool) -> None:
    """initialize, tools/list, tools/call; the original's framing and MCP's; exit 0 at the end of stdin."""
    with run_directory() as run_dir:
        async with crab_mcp(run_dir, transport="stdio") as server:
            wire: StreamWire = server.stdio(lsp=is_lsp)
            opened = (await wire.ask(initialize("2024-11-05")))["result"]
            assert opened["protocolVersion"] == "2024-11-05"
            assert opened["serverInfo"]["name"] == "crab-mcp"
            assert opened["instructions"]
            wire.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            assert [tool["name"] for tool in (await wire.ask(LIST))["result"]["tools"]][:32] == list(TOOLS)
            assert await structured(wire, "crab_version") == {"engine": "0.1.0", "protocol": 1}
            assert (await wire.ask({"jsonrpc": "2.0", "id": 3, "method": "ping"}))["result"] == {}
            assert server.process.stdin
            server.process.stdin.close()
            assert await server.process.wait() == 0
            assert crabd_pid(run_dir) is not None, "the proxy outlives the client that started it"


async def test_7_the_parity_test_passes_with_32_tools_and_the_error_codes(tmp_path: Path) -> None:
    """In full, with every version and every error: tests/contract/test_crab_parity.py and test_crab_errors.py."""
    with run_directory() as run_dir:
        steps = [step for step in conversation(tmp_path) if step[0] in TOOLS or step[0] in NEEDED]
        failing = [("crab_rules_add_allow", {}), ("crab_traffic_get", {"request_id": "none"})]
        async with crab_mcp(run_dir) as server:
            await talk(server.stdio(), "2024-11-05", steps, known_paths(run_dir))
            over_http = await talk(await server.http(), "2024-11-05", steps + failing, known_paths(run_dir))
            over_stdio = await talk(server.stdio(), "2024-11-05", steps + failing, known_paths(run_dir))
    assert TOOLS.keys() <= {name for name, _ in steps}
    assert over_http[:2] == over_stdio[:2]
    assert [content(reply) for reply in over_http[2:]] == [content(reply) for reply in over_stdio[2:]]
    assert [reply["error"]["code"] for reply in over_http[-2:]] == [-32602, -32004]


# Beside the 32, what makes a CA to load, a request to look at, and the same start for the next run.
NEEDED = ("crab_ca_generate", "crab_traffic_compose", "crab_logs_clear")


@pytest.mark.parametrize("client", ["Claude Desktop", "Claude Code", "Cursor", "VS Code", "Codex"])
def test_8_there_is_a_guide_for_each_ide(client: str) -> None:
    """Its configuration can be read by a machine, and its options are ones that `crab-mcp` has."""
    text = (ROOT / "docs" / "guide" / "crab-mcp.md").read_text()
    found = re.search(rf"^## {client}\n(.*?)(?=^## |\Z)", text, re.S | re.M)
    assert found, f"no part for {client}"
    part = found[1]
    assert "crab-mcp" in part
    for language, block in re.findall(r"```(json|toml)\n(.*?)```", part, re.S):
        settings = json.loads(block) if language == "json" else tomllib.loads(block)
        servers = settings.get("mcpServers") or settings.get("mcp_servers") or settings.get("servers")
        for server in servers.values():
            assert server.get("command", "crab-mcp").endswith("crab-mcp")
            assert server.get("url", "http://127.0.0.1:3847/mcp") == "http://127.0.0.1:3847/mcp"
    for option in set(re.findall(r"crab-mcp(?: \S+)* (--[a-z-]+)", part)):
        assert option in make_parser().format_help()
