"""What a server lists cannot stop those who use other servers."""

from __future__ import annotations

import json
from pathlib import Path

from tests.bridge.upstream.place import ME, Place, text_of
from tests.heartbeat import Heartbeat


async def test_a_schema_that_never_ends_holds_up_nobody_and_its_tool_still_answers(tmp_path: Path) -> None:
    levels = {f"l{at}": {"allOf": [{"$ref": f"#/$defs/l{at + 1}"}] * 8} for at in range(40)}
    trap = {"type": "object", "properties": {"x": {"$ref": "#/$defs/l0"}}, "$defs": {**levels, "l40": {}}}
    (tmp_path / "tools.json").write_text(json.dumps([{"name": "greet", "inputSchema": trap}]))
    async with Place(tmp_path).upstream() as upstream, Heartbeat() as heartbeat:
        await upstream.tools()
        before = heartbeat.beats
        assert text_of(await upstream.call_tool("greet", b'{"x":1}', ME)) == "hello"
        assert heartbeat.beats > before + 100
