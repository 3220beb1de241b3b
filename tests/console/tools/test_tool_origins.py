"""`dari_tool_origins`: which server a tool is of, its name there, and what servers listed wrongly."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from dari.bridge.view import ServerView
from dari.console.tools.tool_origins import MAX_COMPLAINTS, ToolOriginTools
from dari.core.registry import Offer, Registry
from dari.core.scopes import ADMIN, CONTROL
from dari.core.tool import Tool


def tool(name: str, **more: Any) -> Tool:
    return Tool(name, "", CONTROL, {"type": "object"}, None, {}, lambda arguments, context: None, **more)


def upstream(id: str, complaints: list[str], held: list[str]) -> SimpleNamespace:
    return SimpleNamespace(id=id, complaints=lambda: complaints, unlisted_tools=lambda: held)


async def test_tools_are_told_with_their_server_and_their_name_there() -> None:
    registry = Registry()
    registry.offer("remote:files", Offer(tools=[tool("files__read_file", server="files", own_name="read file")]))
    view = cast(ServerView, SimpleNamespace(upstreams=lambda: (upstream("files", ["tools: odd"], ["held"]),)))
    toolkit = ToolOriginTools(view, registry)
    registry.add_toolkit(toolkit)
    told = await toolkit.origins()
    assert [(one.name, one.server, one.tool, one.scope) for one in told.tools] == [
        ("dari_tool_origins", "", "dari_tool_origins", ADMIN),
        ("files__read_file", "files", "read file", CONTROL),
    ]
    assert [(one.server, one.reason) for one in told.left_out] == [("files", "tools: odd")]
    assert [(one.server, one.tool) for one in told.held] == [("files", "held")]


async def test_what_is_wrong_is_bounded() -> None:
    many = cast(
        ServerView, SimpleNamespace(upstreams=lambda: tuple(upstream(f"s{n}", ["x"], ["y"]) for n in range(1000)))
    )
    told = await ToolOriginTools(many, Registry()).origins()
    assert len(told.left_out) == len(told.held) == MAX_COMPLAINTS
