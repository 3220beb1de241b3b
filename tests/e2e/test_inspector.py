"""The MCP Inspector's command line in its three eras: over stdio, HTTP, and a Unix socket behind a byte bridge.

The Inspector itself can reach no Unix socket, so `unix_bridge.py` stands between: it only moves bytes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.installed_hub import dari_up
from tests.support.real_clients import DARI, ERAS, WORKBENCH, inspector
from tests.support.wire import demo_process

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("era", ERAS)
async def test_over_stdio_the_tools_are_listed_and_no_schema_is_complained_about(era: str, tmp_path: Path) -> None:
    words = (str(DARI), "mcp", "--method", "tools/list", "--strict", "--protocol-era", era)
    done = await inspector(tmp_path).run(*words)
    assert done.exit_code == 0, done.errors
    names = [tool["name"] for tool in done.output["result"]["tools"]]
    assert {"dari_ping", "dari_version", "dari_doctor"} <= set(names)


@pytest.mark.parametrize("era", ERAS)
async def test_over_stdio_a_tool_is_called_with_typed_arguments(era: str, tmp_path: Path) -> None:
    target = (sys.executable, "-m", WORKBENCH)
    call = ("--method", "tools/call", "--tool-name", "demo_echo", "--tool-arg", "text=hi", "times=3")
    done = await inspector(tmp_path).run(*target, *call, "--protocol-era", era)
    assert done.exit_code == 0, done.errors
    assert done.output["result"]["structuredContent"] == {"text": "hihihi", "times": 3}


@pytest.mark.parametrize("era", ERAS)
async def test_over_http_a_tool_is_called_with_the_bearer_token(era: str, tmp_path: Path) -> None:
    async with dari_up(tmp_path) as hub:
        target = (hub.url, "--transport", "http", "--header", f"Authorization: Bearer {hub.token}")
        call = ("--method", "tools/call", "--tool-name", "dari_ping")
        done = await inspector(tmp_path).run(*target, *call, "--protocol-era", era)
    assert done.exit_code == 0, done.errors
    assert done.output["result"]["structuredContent"] == {"pong": True}


async def test_a_failing_tool_ends_the_inspector_with_its_own_exit_code(tmp_path: Path) -> None:
    target = (sys.executable, "-m", WORKBENCH)
    done = await inspector(tmp_path).run(*target, "--method", "tools/call", "--tool-name", "demo_missing")
    assert done.exit_code == 5, done.errors
    assert done.output["result"]["_meta"]["dari/error"]["name"] == "not_found"


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_over_a_unix_socket_a_resource_is_read(era: str, tmp_path: Path) -> None:
    async with demo_process(tmp_path, module=WORKBENCH, transport="http") as server:
        bridge = (sys.executable, str(Path(__file__).with_name("unix_bridge.py")), str(server.socket))
        read = ("--method", "resources/read", "--uri", "demo://item/9")
        done = await inspector(tmp_path).run(*bridge, *read, "--protocol-era", era)
    assert done.exit_code == 0, done.errors
    assert done.output["result"]["contents"][0]["text"] == "item 9"
