"""What a client finds: every tool of design 002 §3.2, described in one line, with typed arguments and results."""

from __future__ import annotations

from pathlib import Path

from tests.support.terminal_tools import client_in

DESIGN = {
    "crux_parse_output_structured",
    "crux_visual_diff",
    "crux_type_with_ime",
    "crux_clipboard_context",
    "crux_paste_smart",
    "crux_load_workspace",
    "crux_stream_output",
    "crux_coordinate_panes",
    "crux_inject_context",
    "crux_create_snapshot",
    "crux_restore_snapshot",
    "crux_detect_intent",
}
WITH_IMAGE = {"crux_visual_diff"}
"""Their result is content beside the data, so they declare no schema for it."""


async def test_every_special_tool_of_the_design_is_offered(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        listed = {tool["name"]: tool for tool in (await client.ask("tools/list"))["result"]["tools"]}
    assert set(listed) >= DESIGN
    for name in DESIGN:
        tool = listed[name]
        assert 20 < len(tool["description"]) <= 120
        assert tool["inputSchema"]["type"] == "object"
        assert ("outputSchema" in tool) is (name not in WITH_IMAGE)
    assert listed["crux_coordinate_panes"]["inputSchema"]["required"] == ["steps"]
    assert listed["crux_inject_context"]["annotations"]["readOnlyHint"] is False
    assert listed["crux_detect_intent"]["annotations"]["readOnlyHint"] is True
