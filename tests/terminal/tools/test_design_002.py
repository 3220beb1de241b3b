"""Design 002 §3.1 and §6.3, row by row: names, arguments and results as they are written there."""

from __future__ import annotations

import inspect
from base64 import b64decode
from pathlib import Path

import pytest

from dari.ipc.remote import methods_of
from dari.terminal.desks.commands import CommandDesk
from dari.terminal.desks.panes import PaneDesk
from dari.terminal.desks.reading import ReadingDesk
from dari.terminal.desks.sessions import SessionDesk
from dari.terminal.tools.toolkit import CORE
from tests.terminal.service.house import house_in
from tests.terminal.tools.rig import Client, client_in

# tool: (arguments, optional arguments, result fields)
ROWS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    # §3.1.1
    "crux_create_pane": (("direction",), ("cwd",), ("id", "pid", "cwd")),
    "crux_close_pane": (("pane_id",), (), ("success",)),
    "crux_focus_pane": (("pane_id",), (), ("success",)),
    "crux_list_panes": ((), (), ("panes",)),
    "crux_resize_pane": (("pane_id", "cols", "rows"), (), ("success",)),
    # §3.1.2
    "crux_execute_command": (("pane_id", "command"), ("timeout_ms",), ("exit_code", "stdout")),
    "crux_send_keys": (("pane_id", "keys"), (), ("success",)),
    "crux_send_text": (("pane_id", "text"), (), ("success",)),
    "crux_get_output": (("pane_id",), ("lines",), ("text", "line_count")),
    "crux_wait_for_output": (("pane_id", "pattern", "timeout_ms"), (), ("matched", "text")),
    # §3.1.3
    "crux_get_current_directory": (("pane_id",), (), ("cwd",)),
    "crux_get_running_process": (("pane_id",), (), ("name", "pid")),
    "crux_get_pane_state": (("pane_id",), (), ("cols", "rows", "cursor", "scroll_pos")),
    "crux_get_selection": (("pane_id",), (), ("text",)),
    "crux_get_scrollback": (("pane_id",), ("offset", "limit"), ("text", "total_lines")),
    # §3.1.4
    "crux_screenshot_pane": (("pane_id",), (), ("image",)),
    "crux_get_raw_text": (("pane_id",), (), ("text",)),
    "crux_get_formatted_output": (("pane_id",), ("lines",), ("text",)),
    "crux_save_session": ((), ("name",), ("session_id",)),
    "crux_restore_session": (("session_id",), (), ("success",)),
}

VALUES = {
    "direction": "vertical",
    "cwd": "/",
    "pane_id": "1",
    "cols": 90,
    "rows": 30,
    "command": "echo row",
    "timeout_ms": 5000,
    "keys": "Enter",
    "text": "echo typed",
    "lines": 5,
    "pattern": "never printed",
    "offset": 0,
    "limit": 3,
    "name": "row",
    "session_id": "row",
}

# §6.3: PaneBackend method → MCP tool
BACKEND = {
    "spawn_pane": "crux_create_pane",
    "close_pane": "crux_close_pane",
    "focus_pane": "crux_focus_pane",
    "list_panes": "crux_list_panes",
    "resize_pane": "crux_resize_pane",
    "send_keys": "crux_send_keys",
    "send_text": "crux_send_text",
    "get_output": "crux_get_output",
    "get_cwd": "crux_get_current_directory",
    "get_process": "crux_get_running_process",
    "screenshot": "crux_screenshot_pane",
    "save_session": "crux_save_session",
    "restore_session": "crux_restore_session",
}


async def prepared(client: Client) -> None:
    await client.call("crux_create_pane", direction="horizontal")
    await client.call("crux_execute_command", command="echo ready")
    await client.call("crux_save_session", name="row")


async def test_there_are_20_core_tools_and_they_are_listed_first(tmp_path: Path) -> None:
    assert tuple(ROWS) == CORE
    async with client_in(tmp_path) as client:
        tools = (await client.ask("tools/list"))["result"]["tools"]
        assert tuple(tool["name"] for tool in tools[:20]) == CORE


@pytest.mark.parametrize("name", ROWS)
async def test_a_row_of_the_tool_tables(name: str, tmp_path: Path) -> None:
    arguments, optional, fields = ROWS[name]
    async with client_in(tmp_path) as client:
        await prepared(client)
        listed = {tool["name"]: tool for tool in (await client.ask("tools/list"))["result"]["tools"]}
        schema = listed[name]["inputSchema"]
        assert {*arguments, *optional} <= set(schema["properties"])
        assert not set(optional) & set(schema.get("required", ()))
        given = {argument: VALUES[argument] for argument in (*arguments, *optional)}
        if "timeout_ms" in given and name == "crux_wait_for_output":
            given["timeout_ms"] = 10
        result = await client.call(name, **given)
        assert "error" not in result
        assert set(fields) <= set(result)
        if listed[name].get("outputSchema"):
            assert set(fields) <= set(listed[name]["outputSchema"]["properties"])
        if "success" in fields:
            assert result["success"] is True


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if "pane_id" in row[0] and "focus" not in name])
async def test_without_a_pane_id_the_focused_pane_is_meant(name: str, tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        await prepared(client)
        given = {argument: VALUES[argument] for argument in ROWS[name][0] if argument != "pane_id"}
        if name == "crux_wait_for_output":
            given["timeout_ms"] = 10
        assert "error" not in await client.call(name, **given)


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if "pane_id" in row[0]])
async def test_an_unknown_pane_names_the_tool_that_lists_them(name: str, tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        await prepared(client)
        given = {argument: VALUES[argument] for argument in ROWS[name][0]} | {"pane_id": "404"}
        error = (await client.call(name, **given))["error"]
        assert error["name"] == "not_found"
        assert "404" in error["message"]
        assert "crux_list_panes" in error["hint"]


async def test_direction_is_horizontal_or_vertical(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        tools = {tool["name"]: tool for tool in (await client.ask("tools/list"))["result"]["tools"]}
        direction = tools["crux_create_pane"]["inputSchema"]["properties"]["direction"]
        assert direction["enum"] == ["horizontal", "vertical"]
        assert "error" in await client.call("crux_create_pane", direction="sideways")


async def test_a_screenshot_is_image_content_and_structured(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        await prepared(client)
        result = (await client.ask("tools/call", name="crux_screenshot_pane", arguments={}))["result"]
        image = result["content"][0]
        assert (image["type"], image["mimeType"]) == ("image", "image/png")
        assert b64decode(image["data"]).startswith(b"\x89PNG")
        assert result["structuredContent"]["image"] == image["data"]
        slim = await client.call("crux_screenshot_pane", structured=False)
        assert "image" not in slim


@pytest.mark.parametrize("method", BACKEND)
async def test_a_method_of_the_pane_backend_is_served_over_ipc(method: str, tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        served = {}
        for desk in house.service.desks:
            for exposed in methods_of(desk):
                served[exposed._method.__name__] = exposed.name  # type: ignore[attr-defined]
        assert served[method].startswith(("crux:pane/", "crux:session/"))
        assert BACKEND[method] in ROWS


def test_every_exposed_method_is_named_domain_and_action() -> None:
    for desk in (PaneDesk, CommandDesk, ReadingDesk, SessionDesk):
        for _, function in inspect.getmembers(desk, inspect.isfunction):
            mark = getattr(function, "__dari_exposed__", None)
            if mark is not None:
                domain, _, action = mark.name.removeprefix("crux:").partition("/")
                assert mark.name.startswith("crux:") and domain.isalpha() and action
