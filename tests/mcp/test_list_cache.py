"""Lists come in pages, are encoded once, and are true again as soon as the registry changes."""

from __future__ import annotations

import pytest

from dari.core.registry import Registry
from dari.core.tool import tool, typed_tool
from dari.mcp.server import Info, Server
from tests.support.demo_server import DemoTools, registry_of
from tests.support.mcp_server import Rig, request
from tests.support.wire import Json, stateless

LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}


def paged(size: int, registry: Registry | None = None) -> Rig:
    return Rig(Server(registry or registry_of(DemoTools()), Info("demo", "1"), page_size=size))


@tool()
async def fresh() -> str:
    """Be new."""
    return "new"


async def all_pages(rig: Rig, method: str, *, envelope: bool) -> list[list[Json]]:
    pages, cursor = [], {}
    while True:
        message = request(method, **cursor)
        result = (await rig.ask(stateless(message) if envelope else message))["result"]
        pages.append(result[LISTS[method]])
        if "nextCursor" not in result:
            return pages
        cursor = {"cursor": result["nextCursor"]}


@pytest.mark.parametrize("envelope", [False, True])
@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize("size", [1, 2, 3, 500])
async def test_all_pages_together_are_the_whole_list_in_order(method: str, size: int, envelope: bool) -> None:
    rig = paged(size)
    await rig.agree()
    pages = await all_pages(rig, method, envelope=envelope)
    whole = await all_pages(paged(10_000, rig.server.registry), method, envelope=True)
    assert [item for page in pages for item in page] == whole[0]
    assert all(len(page) == size for page in pages[:-1])
    assert 1 <= len(pages[-1]) <= size


async def test_a_list_that_fills_its_last_page_has_no_empty_one_after_it() -> None:
    rig = paged(len(registry_of(DemoTools()).tools))
    await rig.agree()
    assert "nextCursor" not in (await rig.ask(request("tools/list")))["result"]


@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize("cursor", ["x", "", "p", "p-1", "p1.5", "px", "1", "p" + "9" * 10, "p１", "P1", "p1", "p3"])
async def test_a_cursor_that_is_not_ours_is_refused(method: str, cursor: str) -> None:
    rig = paged(2)
    await rig.agree()
    reply = await rig.ask(request(method, cursor=cursor))
    assert reply["error"]["code"] == -32602
    assert reply["error"]["data"]["hint"]


async def test_a_null_cursor_is_the_first_page() -> None:
    rig = paged(2)
    await rig.agree()
    assert await rig.ask(request("tools/list", cursor=None)) == await rig.ask(request("tools/list"))


async def test_a_cursor_past_the_end_is_an_empty_page_and_fills_no_memory() -> None:
    rig = paged(2)
    await rig.agree()
    for offset in range(100, 1100, 2):
        result = (await rig.ask(request("tools/list", cursor=f"p{offset}")))["result"]
        assert result == {"tools": []}
    assert len(rig.server.lists._pages) < 100


async def test_a_list_is_encoded_once_until_the_registry_changes() -> None:
    rig = paged(500)
    lists = rig.server.lists
    first = lists.page("tools", None, False)
    assert lists.page("tools", None, False) is first
    rig.server.registry.add_tools(typed_tool(fresh))
    second = lists.page("tools", None, False)
    assert second is not first
    assert b'"fresh"' in second
    rig.server.registry.remove_tools("fresh")
    assert lists.page("tools", None, False) == first


async def test_a_change_shows_in_the_next_list_of_both_eras() -> None:
    rig = paged(500)
    await rig.agree()
    for message in (request("tools/list"), stateless(request("tools/list"))):
        await rig.ask(message)
    rig.server.registry.add_tools(typed_tool(fresh))
    assert (await rig.next())["method"] == "notifications/tools/list_changed"
    for message in (request("tools/list"), stateless(request("tools/list"))):
        names = [shown["name"] for shown in (await rig.ask(message))["result"]["tools"]]
        assert names[-1] == "fresh"


async def test_an_empty_registry_lists_nothing() -> None:
    rig = paged(5, Registry())
    await rig.agree()
    for method, key in LISTS.items():
        assert (await rig.ask(request(method)))["result"] == {key: []}
