"""Output of one hostile pane in every result of every tool that carries text: nothing that hides, nothing that obeys.

The pane prints, and sets as its title, directory, name, prompt and process name, text with control characters, bidi
overrides, zero-width characters and tags. What comes back may hold the marks around them, and none of them.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

from dari.terminal.policy.config import Security
from tests.support.terminal_tools import client_in

HIDDEN = "\u202e\u2066\u200b\u200d\u2060\ufeff\U000e0041\U000e007f\x85\x9b"
BAD = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
SGR = re.compile(r"\x1b\[[\d;:]*m")

SCRIPT = r"""
import base64, os, sys, time
hidden = base64.b64decode(sys.argv[1]).decode()
out = lambda text: (sys.stdout.buffer.write(text.encode()), sys.stdout.flush())
try:
    open("/proc/self/comm", "wb").write(("p" + hidden).encode()[:15])
except OSError:
    pass
out("\x1b]2;title" + hidden + "\a")
out("\x1b]52;c;" + base64.b64encode(("clip" + hidden).encode()).decode() + "\a")
out("NAME" + hidden + "  STATUS  PORTS\r\nweb" + hidden + "  Up  80\r\ndb" + hidden + "  Up  5432\r\n")
out("error[E0308]: mismatched" + hidden + "\r\n --> src/m" + hidden + ".rs:1:2\r\n")
out("E: command not found: f" + hidden + "oo\r\nbash: f" + hidden + "oo: command not found\r\n")
out('{"k' + hidden + '": "v' + hidden + '"}\r\n')
out("\x1b[31mred" + hidden + "\x1b[0m \x1b]8;;http://x/" + hidden + "\x1b\\link\x1b]8;;\x1b\\ done\r\n")
"""


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for key, each in value.items() for text in (*_texts(key), *_texts(each))]
    return [text for each in value for text in _texts(each)] if isinstance(value, list) else []


def _check(name: str, answer: Any, *, is_coloured: bool = False) -> None:
    for text in _texts(answer):
        found = BAD.search(SGR.sub("", text) if is_coloured else text)
        assert found is None, (name, found and hex(ord(found[0])), text[:300])


async def test_no_result_of_any_tool_carries_what_hides_or_obeys(tmp_path: Path) -> None:
    folder = tmp_path / f"dir{HIDDEN}"
    folder.mkdir()
    (tmp_path / "hostile.py").write_text(SCRIPT)
    run = f"python3 {tmp_path}/hostile.py {base64.b64encode(HIDDEN.encode()).decode()}"
    async with client_in(tmp_path, security=Security(approval_wait_ms=0, dangerous_patterns=())) as client:

        async def ask(tool: str, /, **arguments: Any) -> dict[str, Any]:
            reply = await client.ask("tools/call", name=f"crux_{tool}", arguments=arguments)
            result = reply.get("result", {"error": reply.get("error")})
            for block in result.get("content", ()):
                block.pop("data", None)
            _check(tool, result, is_coloured=tool == "get_formatted_output")
            return dict(result.get("structuredContent") or {})

        pane = (await ask("create_pane", cwd=str(folder)))["id"]
        done = await ask("execute_command", command=run, timeout_ms=30_000)
        assert done["exit_code"] == 0 and "red" in done["stdout"] and "U+202E" in done["stdout"], done
        asked = {
            "list_panes": {},
            "get_output": {"lines": 50},
            "wait_for_output": {"pattern": "mismatched", "mark": 0, "timeout_ms": 5000},
            "wait_command": {"command_id": done["command_id"]},
            "get_command_output": {"command_id": done["command_id"]},
            "get_current_directory": {},
            "get_running_process": {},
            "get_pane_state": {},
            "get_scrollback": {},
            "get_raw_text": {},
            "get_formatted_output": {},
            "get_selection": {},
            "screenshot_pane": {},
            "parse_output_structured": {"command_id": done["command_id"]},
            "detect_intent": {},
            "clipboard_context": {},
            "stream_output": {"command": run, "timeout_ms": 20_000},
            "coordinate_panes": {"steps": [{"command": run}]},
            "type_with_ime": {"text": f"x{HIDDEN[:5]}", "language": "korean", "mode": "text", "timeout_ms": 0},
            "paste_smart": {"text": f"echo {HIDDEN[:5]}", "form": "plain"},
            "list_contexts": {},
            "list_workspaces": {},
            "save_session": {"name": "s"},
            "list_sessions": {},
            "create_snapshot": {"name": "t"},
            "list_snapshots": {},
            "set_selection": {"start_row": 0, "end_row": 5},
            "rename_pane": {"name": f"n{HIDDEN}"},
            "focus_pane": {"pane_id": f"no{HIDDEN}"},
            "load_workspace": {"name": f"no{HIDDEN}"},
            "restore_session": {"session_id": f"no{HIDDEN}"},
            "interrupt_command": {"command_id": f"no{HIDDEN}"},
            "capture_pane": {},
            "list_captures": {},
            "visual_diff": {"command": run},
        }
        known = {each["name"] for each in (await client.ask("tools/list"))["result"]["tools"]}
        for tool, arguments in asked.items():
            if f"crux_{tool}" in known:
                await ask(tool, **arguments)
        missed = {name.removeprefix("crux_") for name in known} - set(asked)
        assert missed <= {
            *("create_pane", "execute_command", "close_pane", "resize_pane", "send_keys", "send_text", "zoom_pane"),
            *("select_layout", "clipboard_copy", "inject_context", "remove_context", "restore_snapshot", "scroll_pane"),
            *("remove_session", "remove_snapshot", "clear_selection"),
        }, missed
        for error in (
            {"command": f"echo '{HIDDEN}"},
            {"command": "true", "pane_id": f"no{HIDDEN}"},
        ):
            await ask("execute_command", **error)
        for uri in (f"crux://pane/{pane}/scrollback", f"crux://pane/{pane}/state"):
            _check(uri, await client.ask("resources/read", uri=uri))
        _check("resources", await client.ask("resources/list"))
        _check("notes", json.loads(json.dumps(client.notes)))
