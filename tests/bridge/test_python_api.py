"""`from dari import remote`: servers from a script."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dari import remote
from dari.core.context import Progress
from dari.errors import Failed, InvalidInput, NotFound
from tests.support.bridge import LAB, Place
from tests.support.demo_server import demo_server
from tests.support.mcp_client import serving


class Sum(msgspec.Struct):
    sum: int


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "dari"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return Place(tmp_path)


async def test_a_script_lists_and_calls_a_server_by_the_name_of_its_profile() -> None:
    async with remote.server("lab") as server:
        assert "add" in [tool.name for tool in await server.tools()]
        result = await server.call("add", a=1, b=2)
        assert (result.text, result.structured_content, result.is_error) == ("3", {"sum": 3}, False)
        assert (await server.call("add", {"a": 2, "b": 2})).text == "4"
        assert (await server.about()).name == "lab"


async def test_structured_content_comes_as_the_type_that_was_asked_for() -> None:
    async with remote.server("lab") as server:
        assert await server.call("add", a=1, b=2, returns=Sum) == Sum(3)
        with pytest.raises(Failed, match="it did not work"):
            await server.call("fail", returns=Sum)
        with pytest.raises(Failed, match="no structured content"):
            await server.call("greet", returns=Sum)


async def test_resources_and_prompts_are_typed_too() -> None:
    async with remote.server("lab") as server:
        assert [(one.uri, one.name) for one in await server.resources()] == [("lab://one", "one")]
        assert [one.uri_template for one in await server.templates()] == ["lab://item/{id}"]
        assert [one.name for one in await server.prompts()] == ["hi"]
        assert (await server.read("lab://one")).contents[0].text == "contents"
        assert (await server.prompt("hi", who="Ada")).messages[0].content.text == "hi Ada"  # type: ignore[union-attr]


async def test_progress_and_questions_have_callbacks() -> None:
    told: list[Progress] = []
    asked: list[str] = []

    async def answer(method: str, params: Any) -> Any:
        asked.append(params["message"])
        return {"action": "accept", "content": {"name": "Ada"}}

    async with remote.server("lab", ask=answer) as server:
        await server.call("wait", steps=2, on_progress=told.append)
        assert "Ada" in (await server.call("elicit")).text
    assert [one.progress for one in told] == [1, 2]
    assert asked == ["Who?"]


async def test_an_address_and_a_command_need_no_profile() -> None:
    async with serving(demo_server()) as hub, remote.server(hub.url) as server:
        assert (await server.call("demo_echo", text="hi")).structured_content == {"text": "hi", "times": 1}
    async with remote.server([sys.executable, str(LAB)]) as server:
        assert (await server.call("greet")).text == "hello"


async def test_several_servers_share_one_block(place: Place) -> None:
    async with remote.servers() as servers:
        assert servers.names == ["lab"] and servers.problems == ()
        assert (await servers["lab"].call("greet")).text == "hello"
        assert (await servers.run([sys.executable, str(LAB)], env={"LAB_SAYS": "${x}"}).call("greet")).text == "${x}"
        with pytest.raises(NotFound, match="'lob'"):
            servers["lob"]
        with pytest.raises(InvalidInput):
            servers.run("npx server")


async def test_nothing_is_left_running(place: Place) -> None:
    async with remote.server("lab") as server:
        pid = int((await server.call("pid")).text)
    assert not Path(f"/proc/{pid}").exists() or sys.platform != "linux"


async def test_a_key_and_headers_count_for_a_profile_too_and_are_refused_where_nothing_takes_them(place: Place) -> None:
    command = [sys.executable, str(LAB)]
    for name in ("lab", command):
        with pytest.raises(InvalidInput):
            async with remote.server(name, key="k"):
                pass
        with pytest.raises(InvalidInput):
            async with remote.server(name, headers={"X-Team": "a"}):
                pass


async def test_arguments_that_no_json_can_hold_are_refused() -> None:
    async with remote.server("lab") as server:
        for value in (object(), "half of an emoji: \ud83d"):
            with pytest.raises(InvalidInput, match="the arguments of 'add'"):
                await server.call("add", a=value, b=1)
