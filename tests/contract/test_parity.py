"""One conversation over every transport: the replies are the same, to the last member."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dari.app import build
from dari.settings import ServeSettings
from tests.support.demo_server import demo_server
from tests.support.wire import Json, MemoryWire, Wire, call, demo_process, initialize, stateless

# Tools that never wait for a person, called with arguments that work.
WORKING: dict[str, Json] = {
    "demo_echo": {"text": "안녕", "times": 2},
    "demo_quick": {"text": "q"},
    "demo_size": {"text": "x" * 100_000},
    "demo_picture": {},
    "demo_routed": {"region": "eu"},
}
# Every row of design 000 §5.7 that a tool call can meet: name, arguments, code, message.
FAILING: list[tuple[str, Json, int, str]] = [
    ("demo_echo", {}, -32602, "Invalid params: argument 'text' is missing"),
    ("demo_echo", {"text": 1}, -32602, "Invalid params: argument 'text' is 1: expected str, got int"),
    ("demo_echo", {"text": "a", "times": 10}, -32602, "Invalid params: argument 'times' is 10: expected int <= 9"),
    ("demo_echo", {"text": "a", "tims": 2}, -32602, "Invalid params: unknown argument 'tims'"),
    ("demo_unreachable", {}, -32603, "Internal error: daemon unreachable"),
    ("demo_admin", {}, -32001, "Forbidden: insufficient scope"),
    ("demo_not_running", {}, -32002, "Proxy not running"),
    ("demo_already_running", {}, -32003, "Proxy already running"),
    ("demo_missing", {}, -32004, "Tool execution failed: pane 7 does not exist"),
    ("demo_late", {}, -32004, "Tool execution failed: no answer in 5 s"),
    ("demo_broken", {}, -32004, "Tool execution failed: RuntimeError: boom"),
    ("demo_endless", {}, -32004, "Tool execution failed: the time limit of 0.05 s passed"),
]
FAULTS: list[tuple[Json, int, str]] = [
    ({"jsonrpc": "2.0", "id": 1, "method": "no/such"}, -32601, "Method not found"),
    (call("nobody"), -32602, "Invalid params: unknown tool 'nobody'"),
    (
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}},
        -32602,
        "Invalid params: params.name is missing",
    ),
    ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": "x"}}, -32602, "Invalid params: cursor"),
    ({"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": {"name": "x"}}, -32602, "Invalid params: unknown"),
]
LISTS = ["tools/list", "resources/list", "resources/templates/list", "prompts/list"]
VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]


def conversation() -> list[Json]:
    """Every working tool, every failure, every fault, every list; ids of both kinds."""
    messages = [call(name, f"ok-{name}", **arguments) for name, arguments in WORKING.items()]
    messages += [call(name, 100 + n, **arguments) for n, (name, arguments, _, _) in enumerate(FAILING)]
    messages += [message for message, _, _ in FAULTS]
    messages += [{"jsonrpc": "2.0", "id": method, "method": method} for method in LISTS]
    messages.append({"jsonrpc": "2.0", "id": 7, "method": "resources/read", "params": {"uri": "demo://item/9"}})
    messages.append({"jsonrpc": "2.0", "id": 8, "method": "resources/read", "params": {"uri": "demo://nothing"}})
    messages.append(
        {"jsonrpc": "2.0", "id": 9, "method": "prompts/get", "params": {"name": "letter", "arguments": {"to": "one"}}}
    )
    reference = {"ref": {"type": "ref/prompt", "name": "letter"}, "argument": {"name": "to", "value": "t"}}
    messages.append({"jsonrpc": "2.0", "id": 10, "method": "completion/complete", "params": reference})
    return messages


async def talk(wire: Wire, version: str, messages: list[Json]) -> list[Json]:
    if version == "2026-07-28":
        region = {"Mcp-Param-Region": "eu"}
        if hasattr(wire, "headers") and isinstance(wire.headers, dict):
            replies = []
            for message in map(stateless, messages):
                is_routed = message.get("params", {}).get("name") == "demo_routed"
                replies.append((await wire.post(message, **(region if is_routed else {}))).json())  # type: ignore[attr-defined]
            return replies
        return [await wire.ask(stateless(message)) for message in messages]
    opened = await wire.ask(initialize(version))
    return [opened, *[await wire.ask(message) for message in messages]]


@pytest.mark.parametrize("version", VERSIONS)
async def test_every_transport_gives_the_same_replies(version: str, tmp_path: Path) -> None:
    messages = conversation()
    expected = await talk(MemoryWire(demo_server()), version, messages)
    async with demo_process(tmp_path) as server:
        wires: dict[str, Wire] = {
            "stdio": server.stdio(),
            "http": await server.http(),
            "unix": await server.unix(),
            "http on unix": await server.http_on_unix(),
        }
        for name, wire in wires.items():
            assert await talk(wire, version, messages) == expected, name
    (tmp_path / "lsp").mkdir()
    async with demo_process(tmp_path / "lsp") as server:
        assert await talk(server.stdio(lsp=True), version, messages) == expected, "Content-Length"


@pytest.mark.parametrize(("name", "arguments", "code", "message"), FAILING)
async def test_a_failing_tool_is_a_json_rpc_error_on_2024_11_05(
    name: str, arguments: Json, code: int, message: str
) -> None:
    _, reply = await talk(MemoryWire(demo_server()), "2024-11-05", [call(name, **arguments)])
    assert (reply["error"]["code"], reply["error"]["message"]) == (code, message)


@pytest.mark.parametrize("version", VERSIONS[1:])
@pytest.mark.parametrize(("name", "arguments", "code", "message"), FAILING)
async def test_a_failing_tool_is_a_result_with_the_same_code_on_later_versions(
    version: str, name: str, arguments: Json, code: int, message: str
) -> None:
    reply = (await talk(MemoryWire(demo_server()), version, [call(name, **arguments)]))[-1]
    error = reply["result"]["_meta"]["dari/error"]
    assert reply["result"]["isError"] is True
    assert (error["code"], error["message"]) == (code, message)
    assert error["hint"], "every failure names the next step"
    assert reply["result"]["content"][0]["text"].startswith(message)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("message", "code", "text"), FAULTS)
async def test_a_protocol_fault_is_a_json_rpc_error_in_every_version(
    version: str, message: Json, code: int, text: str
) -> None:
    reply = (await talk(MemoryWire(demo_server()), version, [message]))[-1]
    assert reply["error"]["code"] == code
    assert reply["error"]["message"].startswith(text)


async def test_a_version_mismatch_in_strict_mode_names_what_is_supported() -> None:
    reply = await MemoryWire(demo_server(strict=True)).ask(initialize("2025-11-25"))
    expected: Any = {
        "code": -32602,
        "message": "Invalid params: unsupported protocol version",
        "data": {"supported": ["2024-11-05"]},
    }
    assert reply["error"] == expected


async def test_every_built_in_tool_answers_alike_on_every_version(tmp_path: Path) -> None:
    settings = ServeSettings(token_path=tmp_path / "token", socket_path=tmp_path / "sock", http_port=1)
    server = build(settings)
    messages = [call(name, name) for name in server.registry.tools if name.startswith("dari_")]
    assert len(messages) == 3
    results = [(await talk(MemoryWire(server), version, messages))[-len(messages) :] for version in VERSIONS]
    structured = [[reply["result"]["structuredContent"] for reply in replies] for replies in results]
    for check in [check for replies in structured for reply in replies for check in reply.get("checks", ())]:
        if check["name"] == "disk":
            del check["found"]  # the free space is another at the next look
    assert all(one == structured[0] for one in structured)
