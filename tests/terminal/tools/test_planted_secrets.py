"""What a pane prints is shown as it is; everything else that the terminal's tools know has its secrets hidden."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dari.core.tool import ToolSpec
from dari.terminal.tools.toolkit import FAMILIES
from dari.text.redact import MARK
from tests.support import planted_secrets
from tests.support.terminal_tools import Client, client_in

PRINTING = frozenset(
    {
        *("execute_command", "wait_command", "interrupt_command", "get_command_output", "send_keys", "send_text"),
        *("get_output", "wait_for_output", "get_selection", "get_scrollback", "get_raw_text", "get_formatted_output"),
        *(
            "set_selection",
            "screenshot_pane",
            "capture_pane",
            "visual_diff",
            "parse_output_structured",
            "stream_output",
        ),
        "coordinate_panes",
    }
)
"""The tools whose work is to show what a program printed."""


def test_only_tools_that_show_a_screen_show_it_as_it_is() -> None:
    specs: dict[str, ToolSpec] = {
        name: value.__dari_tool__
        for family in FAMILIES
        for name, value in vars(family).items()
        if hasattr(value, "__dari_tool__")
    }
    assert {name for name, spec in specs.items() if spec.output == "as_is"} == PRINTING & specs.keys()
    assert specs.keys() >= PRINTING


CALLS = {
    "create_pane": {"name": "token=amber-amber-aq"},
    "list_panes": {},
    "focus_pane": {},
    "resize_pane": {"cols": 100, "rows": 30},
    "get_pane_state": {"pane_id": "1"},
    "get_current_directory": {},
    "get_running_process": {"pane_id": "1"},
    "inject_context": {
        "env": {one.name: one.secret for one in planted_secrets.of("text")},
        "aliases": {"x": "echo api_key=plum"},
    },
    "list_contexts": {},
    "remove_context": {},
    "clipboard_copy": {"text": planted_secrets.text().decode()},
    "clipboard_context": {},
    "paste_smart": {},
    "type_with_ime": {"text": "a"},
    "detect_intent": {},
    "list_captures": {},
    "save_session": {"name": "work"},
    "list_sessions": {},
    "restore_session": {"session_id": "Bearer mF_9.B5f-4.1JqM"},
    "create_snapshot": {"name": "s"},
    "list_snapshots": {},
    "restore_snapshot": {"snapshot_id": "ghp_16C7e42F292c6912E7710c838347Ae178B4a"},
    "load_workspace": {"name": "AKIAZQ3DRSTUVWXY2345"},
    "list_workspaces": {},
    "close_pane": {},
}


@pytest.mark.timeout(120)
async def test_no_other_tool_or_resource_of_the_terminal_shows_a_planted_secret(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        await _sow(client, tmp_path)
        tools = {tool["name"].removeprefix("crux_") for tool in (await client.ask("tools/list"))["result"]["tools"]}
        assert CALLS.keys() | PRINTING == tools
        leaked = []
        for name, arguments in CALLS.items():
            reply = json.dumps(await client.ask("tools/call", name=f"crux_{name}", arguments=arguments))
            leaked += [(name, one.name) for one in planted_secrets.leaks(reply)] + (
                [(name, "plum")] if "plum" in reply else []
            )
            if name == "get_running_process":
                assert MARK in reply and "sleep" in reply
        for resource in (await client.ask("resources/list"))["result"]["resources"]:
            if resource["uri"].endswith("/state"):
                state = json.dumps(await client.ask("resources/read", uri=resource["uri"]))
                leaked += [(resource["uri"], one.name) for one in planted_secrets.leaks(state)]
    assert leaked == []


async def _sow(client: Client, folder: Path) -> None:
    """A pane whose program has a secret among its arguments and in its title."""
    script = folder / "sleep.sh"
    script.write_text("printf '\\033]0;password=amber-amber-aq\\007'; echo ready; read -r line\n")
    command = f"bash {script} --token=maple-maple-mq --password plum sleep"
    made = await client.call("crux_create_pane", command=command)
    assert "id" in made, made
    found = await client.call("crux_wait_for_output", pane_id=made["id"], pattern="ready", timeout_ms=30_000)
    assert "error" not in found, found
