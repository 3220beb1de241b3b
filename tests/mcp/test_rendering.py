"""Whatever a tool returns becomes a `CallToolResult` that fits it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw, Struct

from dari.core.content import (
    AudioContent,
    Contents,
    EmbeddedResource,
    ImageContent,
    RawResult,
    ResourceLink,
    TextContent,
    ToolResult,
)
from dari.core.registry import Registry
from dari.core.tool import tool, typed_tool
from dari.mcp.server import Info, Server
from tests.support.mcp_server import Rig, ready, request
from tests.support.wire import Json, call, stateless


class Point(Struct):
    x: int
    y: int


async def result_of(value: Any) -> Json:
    @tool()
    async def give() -> Any:
        """Return the value."""
        return value

    registry = Registry()
    registry.add_tools(typed_tool(give))
    result = (await Rig(Server(registry, Info("give", "1"))).ask(stateless(call("give"))))["result"]
    assert result.pop("resultType") == "complete"
    return dict(result)


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", [{"type": "text", "text": "text"}]),
        ("", [{"type": "text", "text": ""}]),
        (5, [{"type": "text", "text": "5"}]),
        (None, [{"type": "text", "text": "null"}]),
        ([1, 2], [{"type": "text", "text": "[1,2]"}]),
        ([], []),
        (TextContent(text="a"), [{"type": "text", "text": "a"}]),
        (ImageContent.of(b"\x00", "image/png"), [{"type": "image", "data": "AA==", "mimeType": "image/png"}]),
        (AudioContent.of(b"\x00", "audio/wav"), [{"type": "audio", "data": "AA==", "mimeType": "audio/wav"}]),
        (
            EmbeddedResource(resource=Contents.of("demo://x", "body", "text/plain")),
            [{"type": "resource", "resource": {"uri": "demo://x", "text": "body", "mimeType": "text/plain"}}],
        ),
        (
            [TextContent(text="see"), ResourceLink(uri="demo://x", name="x", size=3)],
            [{"type": "text", "text": "see"}, {"type": "resource_link", "uri": "demo://x", "name": "x", "size": 3}],
        ),
        (
            TextContent(text="a", annotations={"audience": ["user"]}, meta={"k": 1}),
            [{"type": "text", "text": "a", "annotations": {"audience": ["user"]}, "_meta": {"k": 1}}],
        ),
    ],
)
async def test_content_is_content(value: Any, content: list[Json]) -> None:
    assert await result_of(value) == {"content": content}


@pytest.mark.parametrize("value", [Point(1, 2), {"x": 1, "y": 2}])
async def test_an_object_is_structured_and_stands_in_the_text_too(value: Any) -> None:
    assert await result_of(value) == {
        "content": [{"type": "text", "text": '{"x":1,"y":2}'}],
        "structuredContent": {"x": 1, "y": 2},
    }


async def test_a_result_may_be_spelled_out() -> None:
    spelled = ToolResult([TextContent(text="short")], structured_content={"long": True}, is_error=True, meta={"k": 1})
    assert await result_of(spelled) == {
        "content": [{"type": "text", "text": "short"}],
        "structuredContent": {"long": True},
        "isError": True,
        "_meta": {"k": 1},
    }
    assert await result_of(ToolResult([])) == {"content": []}


async def test_a_result_that_is_encoded_already_passes_unread() -> None:
    assert await result_of(RawResult(Raw(b'{"content":[],"extra":1}'))) == {"content": [], "extra": 1}


async def test_null_arguments_count_as_none() -> None:
    rig = await ready()
    message = request("tools/call", "n", name="demo_picture", arguments=None)
    assert "isError" not in (await rig.ask(message))["result"]
    missing = await rig.ask(request("tools/call", "m", name="demo_echo", arguments=None))
    assert "argument 'text' is missing" in missing["result"]["content"][0]["text"]
