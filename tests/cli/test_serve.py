"""`dari mcp` and `dari up` as processes: the first reply, the banner, the stop."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import stat
import sys
from pathlib import Path

import pytest

from tests.support.wire import ROOT, HttpWire, StreamWire, call, initialize

PIPE = asyncio.subprocess.PIPE


async def dari(home: Path, *arguments: str) -> asyncio.subprocess.Process:
    environment = {"PATH": os.environ["PATH"], "DARI_HOME": str(home), "HOME": str(home), "DARI_BRIDGE_IDLE_S": "1"}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dari", *arguments), cwd=ROOT, env=environment, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )


async def test_mcp_serves_the_built_in_tools_over_stdio(tmp_path: Path) -> None:
    process = await dari(tmp_path, "mcp")
    assert process.stdin and process.stdout
    wire = StreamWire(process.stdout, process.stdin)
    opened = await wire.ask(initialize())
    assert opened["result"]["serverInfo"]["name"] == "dari"
    listed = await wire.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert {"dari_ping", "dari_version", "dari_doctor"} <= {tool["name"] for tool in listed["result"]["tools"]}
    assert (await wire.ask(call("dari_ping", 2)))["result"]["structuredContent"] == {"pong": True}
    doctor = await wire.ask(call("dari_doctor", 3))
    assert doctor["result"]["structuredContent"]["status"] in ("ok", "warning")  # somebody else may have port 3847
    process.stdin.close()
    assert await process.wait() == 0
    process._transport.close()  # type: ignore[attr-defined]


async def test_mcp_serves_over_stdio_where_nothing_can_be_written(tmp_path: Path) -> None:
    process = await dari(Path("/proc/nowhere"), "mcp")
    out, log = await process.communicate(json.dumps(initialize()).encode() + b"\n")
    assert process.returncode == 0, log.decode()
    assert json.loads(out)["id"] == "init"


async def test_strict_mcp_speaks_2024_11_05_only(tmp_path: Path) -> None:
    process = await dari(tmp_path, "mcp", "--protocol", "strict")
    sent = b"".join(json.dumps(initialize(version)).encode() + b"\n" for version in ("2025-11-25", "2024-11-05"))
    out, _ = await process.communicate(sent)
    refused, opened = map(json.loads, out.splitlines())
    assert refused["error"]["data"] == {"supported": ["2024-11-05"]}
    assert opened["result"]["protocolVersion"] == "2024-11-05"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_up_tells_how_to_connect_and_stops_on_a_signal(tmp_path: Path, number: int) -> None:
    process = await dari(tmp_path, "up", "--http-port", "0")
    assert process.stderr
    banner = (await process.stderr.readuntil(b"Ctrl-C stops it.")).decode()
    found = re.search(r"Dari is up at (http://127\.0\.0\.1:(\d+)/mcp)\n +token file +(\S+)\n", banner)
    assert found
    url, port, token_path = found[1], int(found[2]), Path(found[3])
    assert f"claude mcp add --transport http dari {url} --header" in banner
    assert stat.S_IMODE(token_path.stat().st_mode) == 0o600
    token = token_path.read_text().strip()
    assert token not in banner

    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    http = HttpWire(reader, writer, token)
    assert (await http.post(initialize(), Authorization="Bearer no")).status == 401
    assert (await http.ask(initialize()))["result"]["serverInfo"]["name"] == "dari"
    (socket,) = tmp_path.rglob("mcp.sock")
    reader, unix_writer = await asyncio.open_unix_connection(str(socket))
    assert (await StreamWire(reader, unix_writer).ask(initialize()))["id"] == "init"

    process.send_signal(number)
    assert await process.wait() == 0
    assert not socket.exists()
    assert token_path.exists()
    out, log = await process.communicate()
    assert out == b""
    assert "transport=http event=stop" in log.decode()
    for each in (writer, unix_writer):
        each.close()


@pytest.mark.parametrize("first_has", [(), ("--no-servers",)])
async def test_a_second_up_tells_where_the_first_one_is(tmp_path: Path, first_has: tuple[str, ...]) -> None:
    first = await dari(tmp_path, "up", "--http-port", "0", *first_has)
    assert first.stderr
    banner = (await first.stderr.readuntil(b"Ctrl-C stops it.")).decode()
    url = re.findall(r"Dari is up at (\S+)", banner)[0]
    for options in ((), ("--no-servers",)):
        second = await dari(tmp_path, "up", "--http-port", "0", *options)
        _, log = await second.communicate()
        assert second.returncode == 1
        assert f"Dari is up already at {url} (pid {first.pid})\nhint: " in log.decode()
        assert f"claude mcp add --transport http dari {url}" in log.decode()
    first.terminate()
    await first.communicate()
    assert first.returncode == 0


async def test_a_second_up_with_a_socket_of_its_own_tells_who_has_the_servers(tmp_path: Path) -> None:
    first = await dari(tmp_path, "up", "--http-port", "0")
    assert first.stderr
    await first.stderr.readuntil(b"Ctrl-C stops it.")
    second = await dari(tmp_path, "up", "--http-port", "0", "--socket", str(tmp_path / "own" / "mcp.sock"))
    _, log = await second.communicate()
    assert second.returncode == 1
    assert f"(pid {first.pid})\nhint: " in log.decode()
    first.terminate()
    await first.communicate()


async def test_a_token_that_others_can_read_stops_the_start_with_1(tmp_path: Path) -> None:
    (tmp_path / "mcp.token").write_text("secret\n")
    (tmp_path / "mcp.token").chmod(0o644)
    process = await dari(tmp_path, "up", "--http-port", "0")
    _, log = await process.communicate()
    assert process.returncode == 1
    assert f"hint: chmod 600 {tmp_path / 'mcp.token'}" in log.decode()
    assert "Traceback" not in log.decode()
