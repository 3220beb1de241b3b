"""What a model reads about an argument, and ids that go from one tool to the next as they are."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from dari.core.registry import Registry
from dari.core.scopes import MCP_GRANT
from dari.mcp.server import Info, Server
from dari.proxy.tools import ProxyTools
from dari.transport.sessions import HttpSessions
from tests.support.origins.origin import origin
from tests.support.proxy_tools import crab

MAX_DESCRIPTION_CHARS = 120


async def test_every_parameter_of_every_tool_is_described_in_a_few_words(tmp_path: Path) -> None:
    async with crab(tmp_path) as rig:
        found = {
            f"{tool.name}.{name}": shown.get("description", "")
            for tool in ProxyTools(rig.proxy.service).tools()
            for name, shown in tool.input_schema["properties"].items()
        }
    assert len(found) > 150
    assert {name for name, text in found.items() if not text.strip()} == set()
    assert {name for name, text in found.items() if len(text) > MAX_DESCRIPTION_CHARS} == set()


async def test_an_id_goes_from_search_to_every_other_tool_in_either_form(tmp_path: Path) -> None:
    async with origin() as site, crab(tmp_path, starts=True) as rig:
        await rig.proxy.get(site.url("/a"))
        await rig.call("traffic_wait", url_contains="/a", after_seq=0)
        (row,) = (await rig.call("traffic_search"))["flows"]
        request_id = row["request_id"]
        assert request_id == str(row["id"]) == (await rig.call("traffic_tail"))["entries"][0]["request_id"]
        for form in (request_id, int(request_id)):
            for name in ("traffic_get", "traffic_show", "traffic_body", "traffic_as_curl", "traffic_as_python"):
                assert await rig.call(name, request_id=form)
            assert (await rig.call("traffic_diff", first_id=form, second_id=form))["is_same"]
            assert (await rig.call("traffic_replay", request_id=form))["request_id"]
            assert (await rig.call("rules_mock", request_id=form))["id"]


async def test_a_session_id_is_a_uuid() -> None:
    session_id = HttpSessions(Server(Registry(), Info(name="x", version="1"))).draft(MCP_GRANT).id
    assert str(UUID(session_id)) == session_id and UUID(session_id).version == 4
