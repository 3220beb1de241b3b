"""Output as data, as an intent and as a difference, through the tools, on real shells."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from dari.errors import NotFound
from dari.terminal.api import output_analysis
from tests.support.terminal_service import house_in
from tests.support.terminal_tools import client_in

DOCKER_PS = """CONTAINER ID   IMAGE          STATUS         PORTS
abc123         nginx:latest   Up 2 hours     80/tcp
def456         postgres:16    Up 5 hours     5432/tcp
"""
FAILED_TESTS = """running 3 tests
test test_ok ... ok
test test_pane_creation ... FAILED
test test_resize ... FAILED

failures:

---- test_pane_creation stdout ----
thread 'test_pane_creation' panicked at src/lib.rs:5:9:
assertion failed: false

failures:
    test_pane_creation
    test_resize

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""


def program(patch: pytest.MonkeyPatch, home: Path, name: str, prints: str, code: int = 0) -> None:
    """A program of this name that prints a recorded output."""
    patch.setenv("PATH", f"{home}/bin:/usr/bin:/bin")
    (home / "bin").mkdir(exist_ok=True)
    (home / f"{name}.out").write_text(prints)
    (home / "bin" / name).write_text(f"#!/bin/sh\ncat {home}/{name}.out\nexit {code}\n")
    (home / "bin" / name).chmod(0o755)


async def test_docker_ps_comes_back_as_the_table_of_the_design(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(monkeypatch, tmp_path, "docker", DOCKER_PS)
    async with client_in(tmp_path) as client:
        await client.call("crux_execute_command", command="docker ps")
        found = await client.call("crux_parse_output_structured")
        assert found["type"] == "table"
        assert found["headers"] == ["CONTAINER ID", "IMAGE", "STATUS", "PORTS"]
        assert found["rows"] == [
            ["abc123", "nginx:latest", "Up 2 hours", "80/tcp"],
            ["def456", "postgres:16", "Up 5 hours", "5432/tcp"],
        ]
        assert (found["parser"], found["command"], found["exit_code"]) == ("docker_ps", "docker ps", 0)
        assert found["confidence"] > 0.8


async def test_an_earlier_command_and_a_range_of_lines_can_be_read(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        first = await client.call("crux_execute_command", command="""echo '{"a": [1, 2]}'""")
        await client.call("crux_execute_command", command="echo plain words")
        parsed = await client.call("crux_parse_output_structured", command_id=first["command_id"])
        assert (parsed["type"], parsed["value"]) == ("json", {"a": [1, 2]})
        screen = (await client.call("crux_get_scrollback"))["text"].split("\n")
        at = screen.index('{"a": [1, 2]}')
        ranged = await client.call("crux_parse_output_structured", offset=at, limit=1)
        assert ranged["value"] == {"a": [1, 2]}
        both = await client.call("crux_parse_output_structured", offset=0, command_id=first["command_id"])
        assert both["error"]["name"] == "invalid_input"


async def test_rows_that_do_not_fit_are_left_out_with_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f"{n:<12}   image-{n:<8}   Up {n} hours\n" for n in range(500))
    program(monkeypatch, tmp_path, "docker", "CONTAINER ID   IMAGE            STATUS\n" + rows)
    async with client_in(tmp_path) as client:
        await client.call("crux_execute_command", command="docker ps")
        found = await client.call("crux_parse_output_structured", max_tokens=500)
        assert 5 < len(found["rows"]) < 100
        assert found["truncated"]
        assert f"{500 - len(found['rows'])} of 500 rows left out" in " ".join(found["notes"])


async def test_what_hides_in_the_output_is_made_visible(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        await client.call("crux_execute_command", command=r"""printf '{"name": "a\u200b\u202eb"}\n'""")
        found = await client.call("crux_parse_output_structured")
        assert found["type"] == "json"
        assert "\u200b" not in found["value"]["name"]
        assert "\u202e" not in found["value"]["name"]


async def test_a_failed_test_run_is_told_as_the_design_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(monkeypatch, tmp_path, "cargo", FAILED_TESTS, 101)
    async with client_in(tmp_path) as client:
        await client.call("crux_execute_command", command="cargo test")
        found = await client.call("crux_detect_intent")
        assert found["intent"] == "test_failure"
        assert found["confidence"] >= 0.9
        assert found["context"]["failed_tests"] == ["test_pane_creation", "test_resize"]
        assert "2 tests failed" in found["context"]["error_summary"]
        assert any("test_pane_creation" in action for action in found["suggested_actions"])
        assert found["evidence"]
        assert (found["command"], found["exit_code"]) == ("cargo test", 101)


async def test_a_question_that_waits_is_seen_while_the_command_runs(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        await client.call(
            "crux_execute_command", command="read -p 'Do you want to continue? [Y/n] ' answer", timeout_ms=300
        )
        found = await client.call("crux_detect_intent")
        assert (found["intent"], found["exit_code"]) == ("prompt_waiting", None)


async def test_a_missing_command_of_a_real_shell_is_recognised(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        await client.call("crux_execute_command", command="no-such-program-here --now")
        found = await client.call("crux_detect_intent")
        assert (found["intent"], found["exit_code"]) == ("missing_command", 127)


async def test_a_screen_before_and_after_a_command_is_compared_with_an_image(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        await client.call("crux_execute_command", command="echo first")
        reply = await client.ask("tools/call", name="crux_visual_diff", arguments={"command": "echo changed"})
        found: dict[str, Any] = reply["result"]["structuredContent"]
        assert not found["is_same"]
        assert any(row["after"] == "changed" and row["before"] == "" for row in found["rows"])
        assert found["pixels_changed"] > 0
        assert found["boxes"]
        image, note = reply["result"]["content"]
        assert image["type"] == "image"
        assert b64decode(image["data"]).startswith(b"\x89PNG")
        assert "+ changed" in note["text"]


async def test_two_captures_of_the_same_screen_are_the_same(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        await client.call("crux_execute_command", command="echo one")
        one = await client.call("crux_capture_pane")
        two = await client.call("crux_capture_pane")
        found = await client.call("crux_visual_diff", before=one["capture_id"], after=two["capture_id"])
        assert (found["is_same"], found["cells_changed"], found["rows"]) == (True, 0, [])
        assert len((await client.call("crux_list_captures"))["captures"]) == 2


async def test_captures_are_bounded_and_a_lost_one_names_the_tool_that_takes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_analysis, "MAX_CAPTURES", 3)
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("true")
        api = house.service.output_analysis
        taken = [(await api.capture()).capture_id for _ in range(5)]
        kept = [info.capture_id for info in (await api.list_captures()).captures]
        assert kept == taken[2:]
        with pytest.raises(NotFound) as refused:
            await api.visual_diff(taken[0])
        assert "crux_capture_pane" in refused.value.hint


@pytest.mark.parametrize(
    "tool", ["crux_parse_output_structured", "crux_detect_intent", "crux_capture_pane", "crux_visual_diff"]
)
async def test_an_unknown_pane_names_the_tool_that_lists_them(tool: str, tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        error = (await client.call(tool, pane_id="77"))["error"]
        assert error["name"] == "not_found"
        assert "crux_list_panes" in error["hint"]
