"""What a server behind the bridge may list, and what an agent may ask the terminal's policy."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.stalls.heartbeat import Stall, beside

_SERVER = """
import json, sys
tools = json.load(open(sys.argv[1]))
for line in sys.stdin:
    asked = json.loads(line)
    method, result = asked.get("method"), None
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        result["serverInfo"] = {"name": "x", "version": "1"}
    elif method == "tools/list":
        result = {"tools": tools}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "ok"}]}
    if result is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


async def _listed(tools: list[dict[str, Any]], call: bytes | None = None) -> Stall:
    """One server behind a bridge: its tools are listed, and one is called."""
    from dari.bridge.config.locations import ClientEnvironment
    from dari.bridge.service import Bridge
    from dari.bridge.upstream.caller import Caller
    from dari.errors import DariError

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "server.py").write_text(_SERVER)
        (root / "tools.json").write_text(json.dumps(tools))
        entry = {"id": "x", "kind": "stdio", "command": sys.executable}
        entry["args"] = [str(root / "server.py"), str(root / "tools.json")]  # type: ignore[assignment]
        file = root / "home/.config/crewx/mcp.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"version": "1", "servers": [entry]}))
        file.chmod(0o600)
        around = ClientEnvironment(root / "home", root, {"PATH": "/usr/bin:/bin", "HOME": str(root / "home")})
        async with Bridge(root / "state") as bridge:
            upstream = bridge.view(around).upstream("x")
            await upstream.about()

            async def ask() -> None:
                try:
                    await upstream.tools()
                    if call is not None:
                        await upstream.call_tool("t0", call, Caller("bench", session="s"))
                except DariError:
                    pass

            return await beside(ask)


async def a_schema_of_eight_to_the_fortieth() -> Stall:
    parts: dict[str, Any] = {f"l{at}": {"allOf": [{"$ref": f"#/$defs/l{at + 1}"}] * 8} for at in range(40)}
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/l0"}}, "$defs": {**parts, "l40": {}}}
    return await _listed([{"name": "t0", "inputSchema": schema}], b'{"x":1}')


async def a_list_at_its_limit() -> Stall:
    properties = {f"argument_{at}": {"type": "string", "description": "what people write here"} for at in range(30)}
    schema = {"type": "object", "properties": properties}
    return await _listed([{"name": f"t{at}", "description": "does it", "inputSchema": schema} for at in range(2_000)])


async def a_million_tools() -> Stall:
    return await _listed([{"name": f"t{at}"} for at in range(1_000_000)])


async def find_tools_on_long_texts() -> Stall:
    from dari.bridge.search.index import ToolIndex

    words = " ".join(f"word{at}" for at in range(20_000))
    tools = [{"name": f"t{at}", "description": f"{words} {at}"} for at in range(100)]
    index = ToolIndex()

    async def ask() -> None:
        await index.put_in_slices("x", tools)
        index.find("a word that is not there " + words[:50_000])

    return await beside(ask)


async def a_diff_of_long_texts() -> Stall:
    from dari.bridge.trust.diff_text import diff

    before, after = (json.dumps({"description": "\n".join(f"{kind}{at % 7}" for at in range(40_000))}) for kind in "ab")

    async def ask() -> None:
        diff(before.encode(), after.encode())

    return await beside(ask)


async def the_hardest_commands_to_judge() -> Stall:
    import asyncio

    from bench.terminal.policy_inputs import hard_texts
    from dari.terminal.policy.policy import Policy

    async def ask() -> None:
        for text in hard_texts().values():
            Policy().judge(text, "/")
            await asyncio.sleep(0)

    return await beside(ask)
