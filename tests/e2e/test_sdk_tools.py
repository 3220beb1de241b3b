"""The official SDK's client lists and calls our tools through every door, in every mode."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from mcp import MCPError

from tests.support.real_clients import DOORS, MODES, connected

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", DOORS)
async def test_tools_are_listed_called_and_fail_as_the_sdk_expects(name: str, mode: str, tmp_path: Path) -> None:
    async with connected(name, mode, tmp_path) as (client, _):
        assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
        if mode != "2026-07-28":
            assert client.server_info
            assert client.server_info.name == "workbench"
            assert client.instructions == "Try demo_echo."
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["demo_echo"].input_schema["additionalProperties"] is False
        assert tools["demo_echo"].output_schema
        # The SDK checks structured content against the output schema and raises when it does not fit.
        result = await client.call_tool("demo_echo", {"text": "안녕", "times": 2})
        assert result.structured_content == {"text": "안녕안녕", "times": 2}
        assert not result.is_error
        picture = await client.call_tool("demo_picture")
        assert picture.content[0].type == "image"
        assert (await client.call_tool("demo_routed", {"region": "대전"})).content[0].text == "대전:0"  # type: ignore[union-attr]

        failed = await client.call_tool("demo_missing")
        assert failed.is_error
        assert failed.structured_content is None
        assert failed.meta
        assert failed.meta["dari/error"]["code"] == -32004
        wrong = await client.call_tool("demo_echo", {"text": "a", "times": 10})
        assert wrong.is_error
        with pytest.raises(MCPError) as refused:
            await client.call_tool("nobody")
        assert refused.value.code == -32602


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", DOORS)
async def test_a_call_that_the_client_gives_up_is_cancelled_in_the_tool(name: str, mode: str, tmp_path: Path) -> None:
    async with connected(name, mode, tmp_path) as (client, _), anyio.create_task_group() as tasks:
        giving_up = anyio.CancelScope()

        async def hang() -> None:
            with giving_up:
                await client.call_tool("demo_hang")

        tasks.start_soon(hang)
        assert (await client.call_tool("work_is_hanging")).content[0].text == "true"  # type: ignore[union-attr]
        giving_up.cancel()
        assert (await client.call_tool("work_was_cancelled")).content[0].text == "true"  # type: ignore[union-attr]


@pytest.mark.parametrize("name", DOORS)
async def test_many_calls_at_once_each_get_their_own_result(name: str, tmp_path: Path) -> None:
    async with connected(name, "auto", tmp_path) as (client, _):
        seen: dict[int, object] = {}

        async def one(number: int) -> None:
            result = await client.call_tool("demo_echo", {"text": str(number)})
            seen[number] = result.structured_content

        async with anyio.create_task_group() as tasks:
            for number in range(40):
                tasks.start_soon(one, number)
    assert seen == {number: {"text": str(number), "times": 1} for number in range(40)}
