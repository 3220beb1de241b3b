"""Tools that are made when somebody first asks for tools."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from dari.core.events import Event
from dari.core.registry import Registry
from dari.core.tool import Tool, tools_of
from dari.errors import Conflict
from dari.mcp.server import Info, Server
from tests.support.demo_server import DemoTools
from tests.support.wire import MemoryWire, call, initialize


def demo_tools() -> list[Tool]:
    return tools_of(DemoTools())


async def test_they_are_made_once_and_only_when_tools_are_asked_for() -> None:
    made: list[str] = []

    def make() -> list[Tool]:
        made.append("made")
        return demo_tools()

    registry = Registry()
    registry.defer(make)
    wire = MemoryWire(Server(registry, Info(name="demo", version="1")))
    assert "tools" in (await wire.ask(initialize()))["result"]["capabilities"]
    assert made == []
    for _ in range(2):
        listed = await wire.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert "demo_echo" in [tool["name"] for tool in listed["result"]["tools"]]
    assert (await wire.ask(call("demo_quick", 2, text="a")))["result"]["structuredContent"]["text"] == "a"
    assert made == ["made"]


async def test_the_first_call_makes_them_too() -> None:
    registry = Registry()
    registry.defer(demo_tools)
    wire = MemoryWire(Server(registry, Info(name="demo", version="1")))
    await wire.ask(initialize())
    assert (await wire.ask(call("demo_quick", 2, text="a")))["result"]["structuredContent"]["text"] == "a"


def test_they_come_after_the_tools_that_were_there_and_nobody_is_told_of_a_change() -> None:
    registry = Registry()
    told: list[Event] = []
    registry.defer(demo_tools)
    registry.add_tools(replace(demo_tools()[0], name="early"))
    registry.events.subscribe(told.append)
    assert list(registry.tools)[:2] == ["early", "demo_echo"]
    assert told == []


def test_two_tools_of_one_name_are_refused() -> None:
    registry = Registry()
    registry.defer(demo_tools)
    registry.defer(demo_tools)
    with pytest.raises(Conflict):
        _ = registry.tools
