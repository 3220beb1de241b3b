"""What a tool returns fits the schema it announced. This is where structured output is validated: in tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from dari.app import build
from dari.core.registry import Registry
from dari.mcp.server import Info, Server
from dari.settings import ServeSettings
from tests.support.demo_server import demo_server
from tests.support.typed_tools import Kit
from tests.support.wire import MemoryWire, call, initialize, stateless

VERSIONS = ["2025-06-18", "2025-11-25", "2026-07-28"]
# Arguments that work, for the tools with an output schema that need any.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "demo_echo": {"text": "안녕", "times": 3},
    "demo_quick": {"text": ""},
    "kit_bounded": {"count": 4, "tags": ["x", "y"]},
    "kit_nested": {"place": {"host": "h"}},
    "kit_recursive": {"tree": {"name": "a", "children": [{"name": "b"}]}},
}


def kit_server() -> Server:
    registry = Registry()
    registry.add_toolkit(Kit())
    return Server(registry, Info("kit", "1"))


async def structured(server: Server, version: str, name: str) -> Any:
    wire, message = MemoryWire(server), call(name, **ARGUMENTS.get(name, {}))
    if version == "2026-07-28":
        reply = await wire.ask(stateless(message))
    else:
        await wire.ask(initialize(version))
        reply = await wire.ask(message)
    assert "isError" not in reply["result"], reply
    return reply["result"]["structuredContent"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_structured_content_of_every_tool_fits_its_output_schema(version: str, tmp_path: Path) -> None:
    built_in = build(ServeSettings(token_path=tmp_path / "token", socket_path=tmp_path / "sock", http_port=1))
    checked = []
    for server in (demo_server(), kit_server(), built_in):
        for tool in server.registry.tools.values():
            # Those of the other parts need a daemon or a repository: their own tests look at what they return.
            parts = ("crab_", "crux_", "kebab_", "crewx_tools_")
            if tool.output_schema is not None and not tool.name.startswith(parts):
                content = await structured(server, version, tool.name)
                jsonschema_rs.Draft202012Validator(tool.output_schema).validate(content)
                checked.append(tool.name)
    assert {"demo_echo", "demo_quick", "dari_ping", "dari_version", "dari_doctor", *ARGUMENTS} == set(checked)


async def test_the_text_beside_structured_content_is_the_same_as_json() -> None:
    wire = MemoryWire(demo_server())
    await wire.ask(initialize())
    result = (await wire.ask(call("demo_echo", text="a", times=2)))["result"]
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"] == {"text": "aa", "times": 2}


async def test_a_content_block_is_content_and_no_structured_output() -> None:
    server = demo_server()
    wire = MemoryWire(server)
    await wire.ask(initialize())
    assert server.registry.tools["demo_picture"].output_schema is None
    result = (await wire.ask(call("demo_picture")))["result"]
    assert result == {"content": [{"type": "image", "data": "iVBORw==", "mimeType": "image/png"}]}
