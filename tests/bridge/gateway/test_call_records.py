"""A call through the gateway is one record, whoever runs the tool and however it was named."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from dari.bridge.gateway.selection import ServerSelection
from dari.core.audit.query import query
from dari.core.scopes import Grant
from dari.mcp.request import Request
from tests.support.gateway import House, asked, called, house, lab, replied

pytestmark = pytest.mark.local_mcp


def records(home: House) -> list[tuple[str, str, str, str]]:
    log = home.bridge.audit
    assert log is not None and log.flush()
    return [(one.part, one.server, one.tool, one.outcome) for one in query(log.directory, kind="call")[::-1]]


async def test_forwarded_calls_are_recorded_by_the_bridge_and_ours_by_the_server(tmp_path: Path) -> None:
    async with house(tmp_path, lab(), own_tools=True) as home:
        await home.agree()
        await replied(home.wire, called("lab__add", "lab__add", a=1, b=2))
        await replied(home.wire, asked("lab__add", arguments={"a": 1, "b": 2}))
        await replied(home.wire, called("demo_echo", "demo_echo", text="a"))
        await replied(home.wire, called("lab__refuse", "lab__refuse"))
        assert records(home) == [
            ("bridge", "lab", "add", "ok"),
            ("bridge", "lab", "add", "ok"),
            ("demo", "demo", "demo_echo", "ok"),
            ("bridge", "lab", "refuse", "error"),
        ]


async def test_a_tool_that_call_tool_runs_is_recorded_as_itself(tmp_path: Path) -> None:
    async with house(tmp_path, lab(), choice=ServerSelection(mode="search"), own_tools=True) as home:
        for name, arguments in (("lab__add", {"a": 1, "b": 2}), ("demo_echo", {"text": "a"}), ("demo_admin", {})):
            await home.ask(asked("call_tool", arguments={"name": name, "arguments": arguments}))
        await home.ask(asked("find_tools", arguments={"query": "add"}))
        assert records(home) == [
            ("bridge", "lab", "add", "ok"),
            ("demo", "demo", "demo_echo", "ok"),
            ("demo", "demo", "demo_admin", "denied"),
            ("bridge", "bridge", "find_tools", "ok"),
        ]


async def test_a_forwarded_call_that_is_refused_for_its_scope_is_recorded(tmp_path: Path) -> None:
    async with house(tmp_path, lab()) as home:
        home.wire.grant = Grant("reader", frozenset({"read"}))
        await replied(home.wire, asked("lab__add", arguments={"a": 1, "b": 2}))
        assert records(home) == [("bridge", "bridge", "lab__add", "denied")]


@pytest.mark.parametrize("tool", ["lab__add", "demo_echo"])
async def test_a_call_that_is_over_is_freed_at_once_and_not_left_to_the_garbage_collector(
    tmp_path: Path, tool: str
) -> None:
    arguments = {"text": "a"} if tool == "demo_echo" else {"a": 1, "b": 2}
    async with house(tmp_path, lab(), own_tools=True) as home:
        await home.agree()
        await replied(home.wire, called(tool, tool, **arguments))
        gc.collect()
        gc.disable()
        try:
            for _ in range(10):
                await replied(home.wire, called(tool, tool, **arguments))
            left = sum(type(one) is Request for one in gc.get_objects())
        finally:
            gc.enable()
        # The last one may still be on its way out of the frames that answered it.
        assert left <= 1
