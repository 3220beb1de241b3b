"""Every row of design 000 §5.7 on `crab-mcp`, over stdio and HTTP alike, in every protocol version."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.crab_processes import crab_mcp, crabd, end_crabd, run_directory, started
from tests.support.proxy_tools import tool_call
from tests.support.wire import HttpWire, Json, Wire, initialize, stateless

VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]


class Row(NamedTuple):
    """A tool that fails; `{run_dir}` stands for the run directory."""

    tool: str
    arguments: Json
    code: int
    message: str


ROWS = [
    Row("crab_rules_add_allow", {}, -32602, "Invalid params: argument 'matcher' is missing"),
    Row(
        "crab_engine_set_listen_addr", {"listen_addr": "localhost:1"}, -32602,
        "Invalid params: listen_addr must be host:port",
    ),
    Row("crab_rpc", {"method": "system.rotate_token"}, -32001, "Forbidden: insufficient scope"),
    Row("crab_env_snippet", {}, -32002, "Proxy not running"),
    Row("crab_traffic_compose", {"url": "http://one.test/"}, -32002, "Proxy not running"),
    Row(
        "crab_engine_load_ca", {"cert_path": "/no/ca.pem", "key_path": "/no/key.pem"}, -32004,
        "Tool execution failed: file not found: /no/ca.pem",
    ),
    Row(
        "crab_traffic_get", {"request_id": "77"}, -32004,
        "Tool execution failed: request_id not found in current log window: 77",
    ),
    Row("crab_rpc", {"method": "no.such"}, -32004, "Tool execution failed: unknown method: no.such"),
]  # fmt: skip


async def opened(wire: Wire, version: str) -> None:
    if version != "2026-07-28":
        await wire.ask(initialize(version))


async def ask(wire: Wire, version: str, message: Json) -> Json:
    return await wire.ask(stateless(message) if version == "2026-07-28" else message)


def told(reply: Json, version: str) -> Json:
    """Code and message, from the place where this version has them; a hint is always there."""
    if version == "2024-11-05":
        error = reply["error"]
        assert error["data"]["hint"]
        return {"code": error["code"], "message": error["message"]}
    result = reply["result"]
    assert result["isError"] is True
    error = result["_meta"]["dari/error"]
    assert error["hint"]
    assert result["content"][0]["text"].startswith(error["message"])
    return {"code": error["code"], "message": error["message"]}


async def test_a_failing_tool_has_the_code_and_message_of_the_design() -> None:
    with run_directory() as run_dir:
        async with crab_mcp(run_dir) as server:
            wires: dict[str, Wire] = {"stdio": server.stdio(), "http": await server.http()}
            for version in VERSIONS:
                for name, wire in wires.items():
                    await opened(wire, version)
                    for row in ROWS:
                        reply = await ask(wire, version, tool_call(row.tool, row.arguments))
                        expected = {"code": row.code, "message": row.message}
                        assert told(reply, version) == expected, (version, name, row.tool)
                await already_running(wires, version)


async def already_running(wires: dict[str, Wire], version: str) -> None:
    start = tool_call("crab_proxy_start", {})
    listen = tool_call("crab_engine_set_listen_addr", {"listen_addr": "127.0.0.1:0"})
    await ask(wires["stdio"], version, listen)
    assert (await ask(wires["stdio"], version, start))["result"]["structuredContent"] == {"status": "running"}
    for name, wire in wires.items():
        reply = await ask(wire, version, start)
        assert told(reply, version) == {"code": -32003, "message": "Proxy already running"}, name
    # Stopping twice is no error: the proxy is then where the caller wants it.
    for wire in wires.values():
        reply = await ask(wire, version, tool_call("crab_proxy_stop", {}))
        assert reply["result"]["structuredContent"] == {"status": "stopped"}


async def test_a_daemon_that_is_away_is_told_by_each_call() -> None:
    with run_directory() as run_dir:
        async with crabd(run_dir), crab_mcp(run_dir, "--ensure-daemon=false") as server:
            wires: list[Wire] = [server.stdio(), await server.http()]
            for wire in wires:
                await opened(wire, VERSIONS[0])
                reply = await wire.ask(tool_call("crab_ping", {}))
                assert reply["result"]["structuredContent"] == {"pong": True}
            end_crabd(run_dir, signal.SIGKILL)
            for version in VERSIONS:
                for wire in wires:
                    await opened(wire, version)
                replies = [await ask(wire, version, tool_call("crab_ping", {})) for wire in wires]
                assert replies[0] == replies[1]
                assert told(replies[0], version) == {"code": -32603, "message": "Internal error: daemon unreachable"}


FAULTS: list[tuple[Json, int, str]] = [
    ({"jsonrpc": "2.0", "id": 1, "method": "no/such"}, -32601, "Method not found"),
    (tool_call("crab_nothing", {}), -32602, "Invalid params: unknown tool 'crab_nothing'"),
    ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}}, -32602, "Invalid params: params.name"),
    (
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "crab_ping", "arguments": []}},
        -32602,
        "Invalid params: ",
    ),
]


async def test_protocol_faults_are_told_alike_in_every_version() -> None:
    with run_directory() as run_dir:
        async with crab_mcp(run_dir) as server:
            wires: list[Wire] = [server.stdio(), await server.http()]
            for version in VERSIONS:
                for wire in wires:
                    await opened(wire, version)
                for message, code, text in FAULTS:
                    replies = [await ask(wire, version, message) for wire in wires]
                    assert replies[0] == replies[1]
                    error = failure(replies[0])
                    assert error["code"] == code
                    assert error["message"].startswith(text)


def failure(reply: Json) -> Any:
    """Wrong arguments are the tool's business on later versions, so they may come as a result."""
    return reply["error"] if "error" in reply else reply["result"]["_meta"]["dari/error"]


async def test_strict_refuses_another_version_and_names_the_one_it_speaks() -> None:
    with run_directory() as run_dir:
        async with crab_mcp(run_dir, "--protocol", "strict") as server:
            for wire in (server.stdio(), await server.http()):
                reply = await wire.ask(initialize("2025-11-25"))
                assert reply["error"] == {
                    "code": -32602,
                    "message": "Invalid params: unsupported protocol version",
                    "data": {"supported": ["2024-11-05"]},
                }
                reply = await wire.ask(initialize("2024-11-05"))
                assert reply["result"]["protocolVersion"] == "2024-11-05"
                assert reply["result"]["serverInfo"]["name"] == "crab-mcp"


# The transport's own table, on strict: status and body.
HTTP_ROWS: list[tuple[str, dict[str, str], int, str]] = [
    ("no token", {"Authorization": ""}, 401, "invalid or missing token"),
    ("another token", {"Authorization": "Bearer nonsense"}, 401, "invalid or missing token"),
    ("a foreign page", {"Origin": "https://evil.example"}, 403, "origin not allowed"),
    ("not JSON", {"Content-Type": "text/plain"}, 415, "expected application/json"),
    ("no session", {}, 400, "missing Mcp-Session-Id header"),
    ("an unknown session", {"Mcp-Session-Id": "gone"}, 401, "session expired or invalid"),
]


async def test_the_http_rows_of_the_error_table_hold_on_strict() -> None:
    with run_directory() as run_dir:
        async with crab_mcp(run_dir, "--protocol", "strict", transport="http") as server:
            for name, headers, status, error in HTTP_ROWS:
                wire: HttpWire = await server.http()
                reply = await wire.post(tool_call("crab_ping", {}), **headers)
                assert (reply.status, reply.json()) == (status, {"error": error}), name


@pytest.mark.parametrize("transport", ["stdio", "http", "both"])
async def test_without_a_daemon_to_start_it_ends_with_1_and_says_why(transport: str, tmp_path: Path) -> None:
    with run_directory() as run_dir:
        server = await started(
            run_dir, "--transport", transport, "--http-port", "0", "--daemon-path", str(tmp_path / "no-crabd")
        )
        try:
            assert server.process.stderr
            said = (await server.process.stderr.read()).decode()
            assert await server.process.wait() == 1
        finally:
            await server.close()
    assert "daemon unreachable" in said
    assert "no-crabd" in said
