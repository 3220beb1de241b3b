"""HTTP servers of before the transport was settled: CrewX's own, and ones that know no handshake at all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dari.mcp.client import RemoteError
from dari.transport.connect import connect
from tests.support.mcp_client import Peer, http_script

TOOLS = {"tools": [{"name": "crewx_listAgents", "inputSchema": {"type": "object"}, "annotations": {}}]}
# CrewX puts fields of its own beside the content.
CALLED = {"content": [{"type": "text", "text": "2 agents"}], "isError": False, "success": True, "taskId": "t1"}


def crewx(methods: dict[str, Any], seen: list[str]) -> Any:
    """`McpController` of CrewX: every answer is a 202 without a session, what it does not know a 404 with an error."""

    async def handler(peer: Peer) -> None:
        while await peer.request():
            method = peer.body.get("method", "")
            seen.append(method or peer.method)
            if peer.method != "POST":
                peer.respond(404, b'{"statusCode":404}', content_type="application/json; charset=utf-8")
            elif "id" not in peer.body:
                peer.respond(202)
            elif method in methods:
                body = json.dumps({"jsonrpc": "2.0", "id": peer.body["id"], "result": methods[method]}).encode()
                peer.respond(202, body, content_type="application/json; charset=utf-8")
            else:
                error = {"code": -32601, "message": f"Method '{method}' not found", "data": None}
                body = json.dumps({"jsonrpc": "2.0", "id": peer.body["id"], "error": error}).encode()
                peer.respond(404, body, content_type="application/json; charset=utf-8")

    return handler


INITIALIZED = {
    "protocolVersion": "2024-11-05",
    "capabilities": {"logging": {}, "prompts": {}, "resources": {}, "tools": {}},
    "serverInfo": {"name": "crewx"},
    "instructions": "",
}


@pytest.mark.parametrize("mode", ["auto", "handshake"])
async def test_a_crewx_server_lists_and_calls_although_it_only_says_accepted(mode: Any) -> None:
    methods = {"initialize": INITIALIZED, "tools/list": TOOLS, "tools/call": CALLED, "prompts/list": {"prompts": []}}
    async with http_script(crewx(methods, [])) as url, connect(url, mode=mode) as client:
        assert client.version == "2024-11-05" and client.agreement.server.name == "crewx"
        assert [tool.name for tool in await client.list_tools()] == ["crewx_listAgents"]
        result = await client.call_tool("crewx_listAgents")
        assert result.text == "2 agents"


@pytest.mark.parametrize("mode", ["auto", "handshake"])
async def test_a_server_without_any_handshake_lists_and_calls(mode: Any) -> None:
    seen: list[str] = []
    methods = {"tools/list": TOOLS, "tools/call": CALLED}
    async with http_script(crewx(methods, seen)) as url, connect(url, mode=mode) as client:
        assert [tool.name for tool in await client.list_tools()] == ["crewx_listAgents"]
        assert (await client.call_tool("crewx_listAgents")).text == "2 agents"
    assert "notifications/initialized" not in seen and "DELETE" not in seen


async def test_a_server_that_knows_neither_handshake_nor_tools_is_no_server() -> None:
    async with http_script(crewx({}, [])) as url:
        with pytest.raises(RemoteError, match="'initialize' not found"):
            await connect(url).open()
