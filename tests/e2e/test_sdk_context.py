"""Progress, log records and questions reach the official SDK's client through every door, in every mode."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp import Client, MCPDeprecationWarning, MCPError

from tests.support.real_clients import DOORS, MODES, connected, door

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", DOORS)
async def test_progress_and_log_records_arrive_while_the_call_runs(name: str, mode: str, tmp_path: Path) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))

    async with connected(name, mode, tmp_path, log_level="info") as (client, person):
        result = await client.call_tool("demo_count", {"to": 3}, progress_callback=progress)
        assert result.content[0].text == "counted to 3"  # type: ignore[union-attr]
        await person.until(lambda: len(person.logs) == 3)
    assert told == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]
    assert [record.data for record in person.logs] == [{"number": 1}, {"number": 2}, {"number": 3}]
    assert {(record.level, record.logger) for record in person.logs} == {("info", "demo")}


@pytest.mark.parametrize("name", DOORS)
async def test_in_a_session_the_level_can_be_raised_and_ping_is_answered(name: str, tmp_path: Path) -> None:
    async with connected(name, "legacy", tmp_path) as (client, person):
        with pytest.warns(MCPDeprecationWarning):
            await client.set_logging_level("error")
        await client.call_tool("demo_count", {"to": 2})
        with pytest.warns(MCPDeprecationWarning):
            await client.send_ping()
        assert person.logs == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", DOORS)
async def test_the_person_the_model_and_the_folders_can_be_asked(name: str, mode: str, tmp_path: Path) -> None:
    async with connected(name, mode, tmp_path) as (client, person):
        greeted = await client.call_tool("demo_greet")
        assert greeted.content[0].text == "hello Minji"  # type: ignore[union-attr]
        assert person.asked[0].message == "Who are you?"
        twice = await client.call_tool("demo_introduce")
        assert twice.content[0].text == "y and y"  # type: ignore[union-attr]
        thought = await client.call_tool("demo_think")
        assert thought.content[0].text == "4"  # type: ignore[union-attr]
        assert person.asked[-1].max_tokens == 10
        folders = await client.call_tool("demo_folders")
        assert folders.content[0].text == "file:///a,file:///b"  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_answers_nothing_is_told_what_is_missing(mode: str, tmp_path: Path) -> None:
    async with door("http", tmp_path) as transport, Client(transport, mode=mode) as client:
        if mode == "legacy":
            result = await client.call_tool("demo_greet")
            assert result.meta
            assert result.meta["dari/error"]["name"] == "unavailable"
        else:
            with pytest.raises(MCPError) as refused:
                await client.call_tool("demo_greet")
            assert refused.value.code == -32021
