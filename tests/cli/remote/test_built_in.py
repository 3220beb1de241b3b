"""`crewx mcp list_tools` and `call_tool`: the tools that are built in (design 001 §7, §16.2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dari.cli.remote import built_in
from dari.core.audit.query import query
from dari.core.registry import Registry
from tests.support.command_result import CommandResult
from tests.support.demo_server import DemoTools
from tests.support.remote_command import Screen, Shop, shop

PROGRAM = "crewx mcp"


async def own(run: Shop, *words: str, **screen: Any) -> CommandResult:
    return await run(*words, program=PROGRAM, **screen)


async def test_built_in_tools_are_listed_with_their_server(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await own(run, "list_tools")
        assert done.code == 0 and "dari/dari_doctor" in done.out and "dari/crab_proxy_start" in done.out
        listed = (await own(run, "list_tools", "--json")).json
        assert {tool["server"] for tool in listed} == {"dari"}
        assert all("inputSchema" in tool for tool in listed)


async def test_profiles_are_not_among_them(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        await run("list-tools")
        assert "shop" not in (await own(run, "list_tools")).out
        assert (await own(run, "call_tool", "variety")).code == 1


async def test_a_built_in_tool_is_called_by_any_of_its_names(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        for name in ("dari_ping", "dari/dari_ping"):
            done = await own(run, "call_tool", name)
            assert done.code == 0 and done.out.startswith("✓ dari/dari_ping (") and '"pong": true' in done.out
        assert "did you mean dari_ping or crab_ping?" in (await own(run, "call_tool", "ping")).err
        assert (await own(run, "call_tool", "dari_ping", "--raw")).json["structuredContent"] == {"pong": True}


async def test_an_unknown_name_gets_the_one_that_was_meant(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await own(run, "call_tool", "dari_dcotor")
        assert done.code == 1 and "did you mean dari_doctor" in done.err
        done = await own(run, "list-tools")
        assert done.code == 1 and "list_tools'?" in done.err


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> DemoTools:
    tools = DemoTools()
    registry = Registry()
    registry.add_toolkit(tools)
    monkeypatch.setattr(built_in, "built_in_tools", lambda: registry.tools)
    return tools


async def test_arguments_are_json_or_flags_and_are_checked(tmp_path: Path, demo: DemoTools) -> None:
    async with shop(tmp_path) as run:
        assert (await own(run, "call_tool", "quick", "--text", "x")).out.startswith("✓ dari/demo_quick (")
        done = await own(run, "call_tool", "demo_echo", "--params", '{"text": "ab"}', "--times", "2", "--json")
        assert done.json["structuredContent"] == {"text": "abab", "times": 2}
        for words in ((), ("--txt", "x"), ("--text", "x", "--times", "99"), ("--params", "[]")):
            assert (await own(run, "call_tool", "demo_echo", *words)).code == 1
        assert "--times  (integer" in (await own(run, "call_tool", "demo_echo", "--help")).out


async def test_a_failure_of_the_tool_is_3_with_its_payload(tmp_path: Path, demo: DemoTools) -> None:
    async with shop(tmp_path) as run:
        for name in ("demo_missing", "demo_unreachable", "demo_broken"):
            done = await own(run, "call_tool", name, "--json")
            assert done.code == 3 and done.json["isError"] is True
        assert (await own(run, "call_tool", "demo_endless")).code == 2
        assert (await own(run, "call_tool", "demo_hang", "--timeout", "50")).code == 2
        assert demo.cancelled.is_set()


async def test_progress_and_questions_reach_the_person(tmp_path: Path, demo: DemoTools) -> None:
    async with shop(tmp_path) as run:
        done = await own(run, "call_tool", "demo_count", tty=True)
        assert "100%  step 3" in done.err and "counted to 3" in done.out
        done = await own(run, "call_tool", "demo_count", "--log")
        assert '[log] dari [info] {"number":3}' in done.err
        done = await own(run, "call_tool", "demo_greet", tty=True, answers=["Ada"])
        assert "hello Ada" in done.out
        screen = Screen()
        assert "nobody (decline)" in (await run.on(screen, "call_tool", "demo_greet", program=PROGRAM)).out
        assert (await own(run, "call_tool", "demo_think")).code == 3
        done = await own(run, "call_tool", "demo_picture", "--output", "kept")
        assert (run.cwd / "kept/demo_picture-1.png").read_bytes() == b"\x89PNG"


async def test_each_call_is_one_record(demo: DemoTools, tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        await own(run, "call_tool", "demo_echo", "text=a")
        await own(run, "call_tool", "demo_missing")
        await own(run, "call_tool", "demo_endless", "--timeout", "1")
        log = run.bridge.audit
        assert log is not None and log.flush()
        found = query(log.directory, kind="call")[::-1]
        assert [(one.part, one.tool, one.outcome) for one in found] == [
            ("demo", "demo_echo", "ok"),
            ("demo", "demo_missing", "error"),
            ("demo", "demo_endless", "timed_out"),
        ]
        assert {one.who for one in found} == {"mcp:cli"}
