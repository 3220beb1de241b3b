"""Design 002 §5, §6 and §1.5, and the Claude Desktop entry of §8: who speaks to whom, and in which words."""

from __future__ import annotations

import json
import re
import shutil
import stat
import subprocess
from typing import Any

import pytest

from dari.terminal.daemon import cruxd_client as ipc_client
from tests.support.crux_processes import new_home
from tests.support.terminal_clients import BIN, HttpConnection, ProcessConnection, Terminal

# §5


def test_5_1_unix_socket(crux: Terminal) -> None:
    """`Unix socket: ~/.crux/mcp.sock`, for its owner only."""
    socket = crux.path / ".crux" / "mcp.sock"
    assert crux.home.place.mcp_socket == socket and stat.S_ISSOCK(socket.stat().st_mode)
    assert stat.S_IMODE(socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700


def test_5_1_http_fallback(crux: Terminal) -> None:
    """`HTTP fallback: 127.0.0.1:{port}`, with a token, and for pages of this machine only."""
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/mcp", crux.url)
    for token in ("", "wrong"):
        connection = HttpConnection(crux.url, token)
        assert connection.status({"jsonrpc": "2.0", "id": 1, "method": "ping"}) == 401
        connection.close()
    with crux.client("http") as connection:
        assert connection.call("crux_list_panes")


def test_5_1_more_than_20_handlers(client: Any) -> None:
    """`도구 핸들러 20+ (Phase 1)`."""
    assert len(client.ask("tools/list")["result"]["tools"]) >= 32


@pytest.mark.parametrize(
    ("transport", "used_for"),
    [("socket", "Crux ↔ MCP 브릿지"), ("http", "개발/테스트, 원격 접근"), ("bridge", "브릿지 바이너리 전용 (stdio)")],
)
def test_5_2_transport(transport: str, used_for: str, client: Any, crux: Terminal) -> None:
    """Each row of the table of transports reaches the same panes."""
    with crux.client(transport) as connection:
        assert connection.call("crux_list_panes") == client.call("crux_list_panes"), used_for


def test_5_2_bridge_says_nothing_of_its_own(crux: Terminal) -> None:
    """§1.4 "stdout에 출력하면 JSON-RPC 메시지가 오염됨": every line of stdout is a message, the rest is stderr."""
    words = [str(BIN / "crux-mcp-bridge"), "--socket", "~/.crux/mcp.sock"]
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    ran = subprocess.run(
        words, env=crux.home.env, input=json.dumps(message).encode() + b"\n", capture_output=True, timeout=30
    )
    assert (ran.returncode, json.loads(ran.stdout), ran.stderr) == (0, {"jsonrpc": "2.0", "id": 1, "result": {}}, b"")


def test_5_3_one_slow_call_does_not_hold_up_others(client: Any, crux: Terminal) -> None:
    """§5.3: requests are handled beside each other; while one waits, another is answered."""
    with crux.client() as other:
        message = {"name": "crux_wait_for_output", "arguments": {"pattern": "^go$", "timeout_ms": 20_000}}
        other.tell({"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": message})
        assert other.call("crux_execute_command", command="echo g''o")["stdout"] == "go"
        (slow,) = other.late or [other.receive()]
        assert (slow["id"], slow["result"]["structuredContent"]["matched"]) == ("slow", True)


# §8: the Claude Desktop entry

ENTRY = json.loads(
    """
    {
      "mcpServers": {
        "crux-terminal": {
          "command": "crux-mcp-bridge",
          "args": ["--socket", "~/.crux/mcp.sock"]
        }
      }
    }
    """
)["mcpServers"]["crux-terminal"]


def test_8_claude_desktop_entry() -> None:
    """The entry as written, with what such a client hands on: HOME and PATH. It starts the daemon that is not there."""
    with new_home() as home:
        command = shutil.which(ENTRY["command"], path=str(BIN))
        assert command is not None
        connection = ProcessConnection([command, *ENTRY["args"]], {"HOME": str(home.path), "PATH": "/usr/bin:/bin"})
        try:
            opened = connection.start()["result"]
            assert opened["serverInfo"]["name"] == "crux" and "tools" in opened["capabilities"]
            done = connection.call("crux_execute_command", command="echo from claude; (exit 3)")
            assert (done["exit_code"], done["stdout"]) == (3, "from claude")
        finally:
            code, errors = connection.end()
        assert (code, errors) == (0, "")
        assert home.daemon_pid is not None, "panes live on"
        assert home.place.mcp_socket == home.path / ".crux" / "mcp.sock"


# §6

BACKEND = {
    # §6.3 method: (its name on the wire, MCP tool, arguments)
    "spawn_pane": ("crux:pane/split", "crux_create_pane", {"direction": "vertical"}),
    "close_pane": ("crux:pane/close", "crux_close_pane", {"pane_id": "PANE"}),
    "focus_pane": ("crux:pane/focus", "crux_focus_pane", {"pane_id": "PANE"}),
    "list_panes": ("crux:pane/list", "crux_list_panes", {}),
    "resize_pane": ("crux:pane/resize", "crux_resize_pane", {"pane_id": "PANE", "cols": 70, "rows": 20}),
    "send_keys": ("crux:pane/send-keys", "crux_send_keys", {"keys": "C-l"}),
    "send_text": ("crux:pane/send-text", "crux_send_text", {"text": " "}),
    "get_output": ("crux:pane/get-output", "crux_get_output", {"lines": 3}),
    "get_cwd": ("crux:pane/get-cwd", "crux_get_current_directory", {}),
    "get_process": ("crux:pane/get-process", "crux_get_running_process", {}),
    "screenshot": ("crux:pane/screenshot", "crux_screenshot_pane", {}),
    "save_session": ("crux:session/save", "crux_save_session", {"name": "backend"}),
    "restore_session": ("crux:session/restore", "crux_restore_session", {"session_id": "backend"}),
}
CHANGING = {
    "tab_id",
    "id",
    "pid",
    "tty",
    "mark",
    "size_bytes",
    "panes",
    "cols",
    "rows",
    "left",
    "top",
    "process",
    "is_at_prompt",
}


@pytest.mark.parametrize("method", BACKEND)
async def test_6_3_pane_backend(method: str, client: Any, crux: Terminal) -> None:
    """`crux:<domain>/<action>` (§6.1) answers what the MCP tool of its row (§6.3) answers."""
    wire, tool, given = BACKEND[method]
    assert re.fullmatch(r"crux:[a-z]+/[a-z-]+", wire)
    client.call("crux_save_session", name="backend")
    async with ipc_client(crux.home.place, "cli", starts=False) as ipc:
        inner = await ipc.call(wire, _filled(client, given))
        outer = client.call(tool, **_filled(client, given))
    assert isinstance(inner, dict)
    changing = set() if method == "list_panes" else CHANGING
    for name in inner.keys() | outer.keys():
        assert type(inner[name]) is type(outer[name])
        if name not in changing:
            assert inner[name] == outer[name], name


def _filled(client: Any, given: dict[str, Any]) -> dict[str, Any]:
    if "pane_id" not in given:
        return given
    return {**given, "pane_id": client.call("crux_create_pane")["id"]}


def test_6_1_the_command_line_speaks_it(client: Any, crux: Terminal) -> None:
    """`crux pane split --direction horizontal` of the table: ours is `crux split-pane`, over the same wire."""
    words = [str(BIN / "crux"), "split-pane", "--direction", "right"]
    ran = subprocess.run(words, env=crux.home.env, capture_output=True, text=True, timeout=30)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.strip() in [pane["id"] for pane in client.call("crux_list_panes")["panes"]]


# §1.5


def test_1_5_resource(client: Any) -> None:
    """`crux://pane/1/scrollback`, "Pane 1 Scrollback Buffer", `text/plain`; and updates for who subscribed."""
    pane = client.main
    listed = {each["uri"]: each for each in client.ask("resources/list")["result"]["resources"]}
    uri = f"crux://pane/{pane}/scrollback"
    assert (listed[uri]["name"], listed[uri]["mimeType"]) == (f"Pane {pane} Scrollback Buffer", "text/plain")
    assert f"crux://pane/{pane}/state" in listed
    client.ask("resources/subscribe", uri=uri)
    client.call("crux_execute_command", command="echo into the scrollback")
    assert client.noted("notifications/resources/updated")["params"]["uri"] == uri
    text = client.ask("resources/read", uri=uri)["result"]["contents"][0]
    assert text["mimeType"] == "text/plain" and "into the scrollback" in text["text"]
    client.ask("resources/unsubscribe", uri=uri)


def test_1_5_prompt(client: Any) -> None:
    """`debug-session`: "Set up multi-pane debugging layout", argument `project_dir`, required."""
    listed = {each["name"]: each for each in client.ask("prompts/list")["result"]["prompts"]}
    found = listed["debug-session"]
    assert found["description"] == "Set up multi-pane debugging layout"
    assert [(each["name"], each["required"]) for each in found["arguments"]] == [("project_dir", True)]
    told = client.ask("prompts/get", name="debug-session", arguments={"project_dir": "/srv/app"})["result"]
    assert "/srv/app" in told["messages"][0]["content"]["text"]
    assert "error" in client.ask("prompts/get", name="debug-session", arguments={})


def test_1_6_capabilities(crux: Terminal) -> None:
    """서버 Capabilities: `tools`, `resources`, `prompts`, `logging`."""
    connection = crux.connection("socket")
    try:
        assert {"tools", "resources", "prompts", "logging"} <= set(connection.start()["result"]["capabilities"])
    finally:
        connection.close()
