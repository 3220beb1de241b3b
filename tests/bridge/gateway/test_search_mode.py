"""Three tools in the place of all: find, describe, call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dari.bridge.gateway.selection import ServerSelection
from tests.bridge.gateway.test_questions import SAID, accepted
from tests.support.gateway import House, asked, called, demo, house, lab, replied, text_of
from tests.support.mcp_server import request
from tests.support.wire import Json, stateless

pytestmark = pytest.mark.local_mcp

SEARCH = ServerSelection(mode="search")


async def run(home: House, name: str, /, **arguments: object) -> Json:
    return await home.ask(asked(name, arguments=arguments))


async def test_a_model_sees_three_tools(tmp_path: Path) -> None:
    async with house(tmp_path, lab(), choice=SEARCH, own_tools=True) as home:
        assert await home.names() == ["find_tools", "describe_tool", "call_tool"]
        assert "find_tools with words" in (await home.agree())["instructions"]


async def test_tools_of_ours_and_of_others_are_found(tmp_path: Path) -> None:
    async with house(tmp_path, lab(), choice=SEARCH, own_tools=True) as home:
        found = (await run(home, "find_tools", query="add two numbers"))["result"]["structuredContent"]
        assert (found["tools"][0]["name"], found["tools"][0]["server"]) == ("lab__add", "lab")
        assert found["tools"][0]["arguments"] == ["a*", "b*"]
        assert found["known"] == len(home.front.full.tools)
        ours = (await run(home, "find_tools", query="echo", server="dari"))["result"]["structuredContent"]["tools"]
        assert ours[0]["name"] == "demo_echo"


async def test_a_tool_is_described_as_its_server_shows_it(tmp_path: Path) -> None:
    async with house(tmp_path, lab(), choice=SEARCH) as home:
        described = (await run(home, "describe_tool", name="lab__add"))["result"]["structuredContent"]
        assert described["inputSchema"]["required"] == ["a", "b"]
        assert described["annotations"] == {"readOnlyHint": True}


async def test_a_tool_that_was_found_is_called(tmp_path: Path) -> None:
    async with house(tmp_path, lab(), choice=SEARCH, own_tools=True) as home:
        result = (await run(home, "call_tool", name="lab__add", arguments={"a": 1, "b": 2}))["result"]
        assert result["structuredContent"] == {"sum": 3}
        ours = (await run(home, "call_tool", name="demo_echo", arguments={"text": "a"}))["result"]
        assert ours["structuredContent"] == {"text": "a", "times": 1}
        quick = (await run(home, "call_tool", name="demo_quick", arguments='{"text": "b"}'))["result"]
        assert quick["structuredContent"]["text"] == "b"


async def test_errors_are_those_of_a_direct_call(tmp_path: Path) -> None:
    async with house(tmp_path, lab(), choice=SEARCH, own_tools=True) as home:
        assert (await run(home, "call_tool", name="lab__refuse"))["error"]["code"] == -32123
        failed = (await run(home, "call_tool", name="demo_missing"))["result"]["_meta"]["dari/error"]
        assert failed["name"] == "not_found"
        denied = (await run(home, "call_tool", name="demo_admin"))["result"]["_meta"]["dari/error"]
        assert denied["name"] == "insufficient_scope"


async def test_a_name_with_a_slip_gets_a_suggestion(tmp_path: Path) -> None:
    async with house(tmp_path, lab(), choice=SEARCH) as home:
        for name in ("call_tool", "describe_tool"):
            error = (await run(home, name, name="lab__ad"))["result"]["_meta"]["dari/error"]
            assert error["hint"] == "did you mean lab__add?"


async def test_questions_and_progress_pass_through(tmp_path: Path) -> None:
    async with house(tmp_path, demo(), choice=SEARCH) as home:
        await run(home, "find_tools", query="greet")
        inner = {"name": "demo__demo_greet", "arguments": {}}
        result = (await run(home, "call_tool", **inner))["result"]
        ((key, question),) = result["inputRequests"].items()
        assert question["params"]["message"] == "Who are you?"
        state = {"requestState": result["requestState"], "inputResponses": {key: accepted(name="A")}}
        assert text_of(await home.ask(asked("call_tool", arguments=inner, **state))) == "hello A"
        wire = await home.client(sampling={})
        wire.send(called("call_tool", name="demo__demo_think", arguments={}))
        asking = await wire.messages.get()
        wire.send({"jsonrpc": "2.0", "id": asking["id"], "result": SAID})
        assert text_of(await wire.messages.get()) == "4"
        counting = {"name": "demo__demo_count", "arguments": {"to": 1}}
        message = request("tools/call", 9, name="call_tool", arguments=counting, _meta={"progressToken": 1})
        wire.send(message)
        heard = [await wire.messages.get() for _ in range(3)]
        assert heard[0]["method"] == "notifications/progress"
        assert text_of(heard[2]) == "counted to 1"


async def test_prompts_and_resources_stay_as_they_are(tmp_path: Path) -> None:
    async with house(tmp_path, lab(), choice=SEARCH) as home:
        await run(home, "find_tools", query="x")
        assert await home.names("prompts") == ["lab__hi"]
        reply = await home.ask(stateless(request("resources/read", uri="lab://item/1")))
        assert reply["result"]["contents"][0]["text"] == "contents"
        wire = await home.client()
        got = await replied(wire, request("prompts/get", name="lab__hi", arguments={"who": "A"}))
        assert got["result"]["messages"][0]["content"]["text"] == "hi A"
        wire.send(request("resources/subscribe", "sub", uri="lab://one"))
        heard = [await wire.messages.get(), await wire.messages.get()]
        assert {one.get("method", "reply") for one in heard} == {"reply", "notifications/resources/updated"}


async def test_the_file_may_ask_for_it(tmp_path: Path) -> None:
    async with house(tmp_path, lab(), gateway={"mode": "search"}) as home:
        assert await home.names() == ["find_tools", "describe_tool", "call_tool"]
    top: dict[str, Any] = {"profiles": {"diet": {"servers": ["*"], "mode": "search"}}}
    async with house(tmp_path, lab(), choice=ServerSelection(profile="diet"), **top) as home:
        assert await home.names() == ["find_tools", "describe_tool", "call_tool"]


async def test_what_changes_is_found(tmp_path: Path) -> None:
    async with house(tmp_path, lab(), choice=SEARCH) as home:
        await run(home, "find_tools", query="x")
        home.place.write(lab(), lab("two"))
        await home.until(lambda: "two__add" in home.front.full.tools)
        found = (await run(home, "find_tools", query="two add"))["result"]["structuredContent"]["tools"]
        assert "two__add" in [one["name"] for one in found]


async def test_the_first_three_come_with_their_schemas(tmp_path: Path) -> None:
    async with house(tmp_path, lab(), choice=SEARCH, own_tools=True) as home:
        found = (await run(home, "find_tools", query="add two numbers"))["result"]["structuredContent"]["tools"]
        described = (await run(home, "describe_tool", name="lab__add"))["result"]["structuredContent"]
        assert found[0]["inputSchema"]["properties"] == described["inputSchema"]["properties"]
        assert found[0]["inputSchema"]["required"] == ["a", "b"]
        everything = (await run(home, "find_tools", query="demo", limit=50))["result"]["structuredContent"]["tools"]
        assert ["inputSchema" in one for one in everything] == [at < 3 for at in range(len(everything))]


async def test_a_server_that_has_no_tools_here_is_answered_with_those_that_have(tmp_path: Path) -> None:
    async with house(tmp_path, lab(), choice=SEARCH, own_tools=True) as home:
        for asked_for in ("LAB", "lab"):
            found = (await run(home, "find_tools", query="add", server=asked_for))["result"]["structuredContent"]
            assert {one["server"] for one in found["tools"]} == {"lab"}
        failed = (await run(home, "find_tools", query="add", server="daemon"))["result"]
        assert failed["isError"] and "dari, lab" in str(failed)
