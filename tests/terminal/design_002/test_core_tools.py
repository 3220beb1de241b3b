"""Design 002 §3.1, row by row: names, arguments and results of the 20 core tools as they are written there.

The id of a test is the section and the tool of its row.
"""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass
from typing import Any

import pytest

from dari.terminal.tools.toolkit import CORE

# Type of a field as the design writes it → of its JSON value.
KINDS = {"string": str, "bool": bool, "i32": int, "u32": int, "u16": int, "u64": int, "object": dict, "list": list}
SCHEMA_KINDS = {"string": "string", "u16": "integer", "u32": "integer", "u64": "integer"}


@dataclass(frozen=True)
class Row:
    section: str
    tool: str
    arguments: str
    """As in the table; `?` where it may be left out."""
    result: str


ROWS = [
    Row("3.1.1", "crux_create_pane", "direction: string, cwd?: string", "id: string, pid: u32, cwd: string"),
    Row("3.1.1", "crux_close_pane", "pane_id: string", "success: bool"),
    Row("3.1.1", "crux_focus_pane", "pane_id: string", "success: bool"),
    Row("3.1.1", "crux_list_panes", "", "panes: list"),
    Row("3.1.1", "crux_resize_pane", "pane_id: string, cols: u16, rows: u16", "success: bool"),
    Row(
        "3.1.2",
        "crux_execute_command",
        "pane_id: string, command: string, timeout_ms?: u64",
        "exit_code: i32, stdout: string",
    ),
    Row("3.1.2", "crux_send_keys", "pane_id: string, keys: string", "success: bool"),
    Row("3.1.2", "crux_send_text", "pane_id: string, text: string", "success: bool"),
    Row("3.1.2", "crux_get_output", "pane_id: string, lines?: u32", "text: string, line_count: u32"),
    Row(
        "3.1.2",
        "crux_wait_for_output",
        "pane_id: string, pattern: string, timeout_ms: u64",
        "matched: bool, text: string",
    ),
    Row("3.1.3", "crux_get_current_directory", "pane_id: string", "cwd: string"),
    Row("3.1.3", "crux_get_running_process", "pane_id: string", "name: string, pid: u32"),
    Row("3.1.3", "crux_get_pane_state", "pane_id: string", "cols: u16, rows: u16, cursor: object, scroll_pos: u32"),
    Row("3.1.3", "crux_get_selection", "pane_id: string", "text: string"),
    Row(
        "3.1.3",
        "crux_get_scrollback",
        "pane_id: string, offset?: u32, limit?: u32",
        "text: string, total_lines: u32",
    ),
    Row("3.1.4", "crux_screenshot_pane", "pane_id: string", "image: string"),
    Row("3.1.4", "crux_get_raw_text", "pane_id: string", "text: string"),
    Row("3.1.4", "crux_get_formatted_output", "pane_id: string, lines?: u32", "text: string"),
    Row("3.1.4", "crux_save_session", "name?: string", "session_id: string"),
    Row("3.1.4", "crux_restore_session", "session_id: string", "success: bool"),
]
VALUES: dict[str, Any] = {
    "direction": "vertical",
    "cwd": "/",
    "pane_id": "other",
    "cols": 90,
    "rows": 30,
    "command": "echo row",
    "timeout_ms": 5000,
    "keys": "Enter",
    "text": "echo typed",
    "lines": 5,
    "pattern": "typed|row",
    "offset": 0,
    "limit": 3,
    "name": "row",
    "session_id": "row",
}
by_row = pytest.mark.parametrize("row", ROWS, ids=[f"{row.section}-{row.tool}" for row in ROWS])


def fields(written: str) -> dict[str, str]:
    return dict(part.split(": ") for part in written.split(", ") if part)


@pytest.fixture(scope="module")
def listed(line: Any) -> dict[str, Any]:
    return {tool["name"]: tool for tool in line.ask("tools/list")["result"]["tools"]}


def test_3_1_there_are_20_tools_and_they_come_first(listed: dict[str, Any]) -> None:
    """§3.1: "핵심 도구 (MVP, 20개)"; 5 in each of its four tables."""
    assert len(ROWS) == 20
    for number in (1, 2, 3, 4):
        assert sum(row.section == f"3.1.{number}" for row in ROWS) == 5
    assert tuple(listed)[:20] == tuple(row.tool for row in ROWS) == CORE


@by_row
def test_3_1_arguments(row: Row, listed: dict[str, Any]) -> None:
    schema = listed[row.tool]["inputSchema"]
    for written, kind in fields(row.arguments).items():
        name = written.removesuffix("?")
        assert schema["properties"][name]["type"] == SCHEMA_KINDS[kind]
        if written.endswith("?"):
            assert name not in schema.get("required", ())
    assert set(schema.get("required", ())) <= set(fields(row.arguments)), "nothing is asked for that the design lacks"


@by_row
def test_3_1_results(row: Row, client: Any, listed: dict[str, Any]) -> None:
    client.call("crux_create_pane", name="other", direction="horizontal")
    client.call("crux_execute_command", pane_id="other", command="echo row")
    if row.tool == "crux_restore_session":
        client.call("crux_save_session", name="row")
    given = {name.removesuffix("?"): VALUES[name.removesuffix("?")] for name in fields(row.arguments)}
    if row.tool == "crux_wait_for_output":
        given["timeout_ms"] = 1
    result = client.call(row.tool, **given)
    for name, kind in fields(row.result).items():
        assert isinstance(result[name], KINDS[kind]), name
        if listed[row.tool].get("outputSchema"):
            assert name in listed[row.tool]["outputSchema"]["properties"]
    if "success" in result:
        assert result["success"] is True


@pytest.mark.parametrize("row", [row for row in ROWS if "pane_id" in row.arguments], ids=lambda row: row.tool)
def test_3_1_an_unknown_pane_names_the_tool_that_lists_them(row: Row, client: Any) -> None:
    given = {name: VALUES[name] for name in fields(row.arguments) if not name.endswith("?")} | {"pane_id": "404"}
    error = client.fails(row.tool, **given)
    assert error["name"] == "not_found"
    assert "404" in error["message"] and "crux_list_panes" in error["hint"]


@pytest.mark.parametrize(
    "row", [row for row in ROWS if "pane_id" in row.arguments and "focus" not in row.tool], ids=lambda row: row.tool
)
def test_3_1_without_a_pane_id_the_focused_pane_is_meant(row: Row, client: Any) -> None:
    if row.tool == "crux_close_pane":
        client.call("crux_create_pane", name="other")
    given = {name: VALUES[name] for name in fields(row.arguments) if name != "pane_id" and not name.endswith("?")}
    if row.tool == "crux_wait_for_output":
        given["timeout_ms"] = 1
    client.call(row.tool, **given)
    if row.tool == "crux_close_pane":
        assert [pane["name"] for pane in client.call("crux_list_panes")["panes"]] == ["main"]
    if row.tool == "crux_send_text":
        client.call("crux_send_keys", keys="C-u")


def test_3_1_1_direction(client: Any, listed: dict[str, Any]) -> None:
    """`direction: "horizontal" | "vertical"`: 패널 분할 생성. Another word is refused, and the two are named."""
    assert listed["crux_create_pane"]["inputSchema"]["properties"]["direction"]["enum"] == ["horizontal", "vertical"]
    beside = client.call("crux_create_pane", direction="horizontal", cwd="/usr")
    below = client.call("crux_create_pane", direction="vertical", cwd="/usr", pane_id=beside["id"])
    assert (beside["left"] > 0, beside["top"], beside["cwd"]) == (True, 0, "/usr")
    assert (below["left"], below["top"] > 0) == (beside["left"], True)
    error = client.fails("crux_create_pane", direction="sideways")
    assert error["name"] == "invalid_input" and error["hint"] == "one of horizontal, vertical"


def test_3_1_1_list_panes(client: Any) -> None:
    """`Vec<PaneInfo>`: 전체 패널 목록 + 메타데이터."""
    made = client.call("crux_create_pane", name="other")
    panes = {pane["name"]: pane for pane in client.call("crux_list_panes")["panes"]}
    assert set(panes) == {"main", "other"}
    assert {name: panes["other"][name] for name in ("id", "pid", "cwd")} == {
        name: made[name] for name in ("id", "pid", "cwd")
    }
    assert panes["other"]["is_focused"] and not panes["main"]["is_focused"]


@pytest.mark.parametrize(("cols", "rows"), [(0, 10), (10, 0), (-5, 10), (100_000, 10)])
def test_3_1_1_a_size_that_is_none_is_refused(cols: int, rows: int, client: Any) -> None:
    assert client.fails("crux_resize_pane", cols=cols, rows=rows)["name"] == "invalid_input"


def test_3_1_4_screenshot(client: Any) -> None:
    """`{ image: base64_png }`: as image content, which models see, and in the structured result."""
    result = client.result("crux_screenshot_pane")
    image = result["content"][0]
    assert (image["type"], image["mimeType"]) == ("image", "image/png")
    assert b64decode(image["data"]).startswith(b"\x89PNG")
    assert result["structuredContent"]["image"] == image["data"]
    assert "image" not in client.call("crux_screenshot_pane", structured=False)


def test_3_1_4_raw_and_formatted(client: Any) -> None:
    """`crux_get_raw_text`: ANSI 코드 제거된 순수 텍스트. `crux_get_formatted_output`: ANSI 코드 포함 출력."""
    client.call("crux_execute_command", command=r"printf '\033[1;31mred\033[0m plain\n'")
    assert "red plain" in client.call("crux_get_raw_text")["text"].split("\n")
    formatted = client.call("crux_get_formatted_output", lines=5)["text"]
    assert "\x1b[" in formatted and "red" in formatted and "red plain" not in formatted
