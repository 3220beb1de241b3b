"""What a server lists cannot stop those who use other servers."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from dari.bridge.trust.items import ServerListing as Shown
from dari.bridge.trust.pin_diff import MAX_COMPARISONS
from dari.bridge.trust.pin_store import PinStore
from dari.bridge.trust.pins import Pins
from dari.bridge.upstream.lists import MAX_COMPLAINTS, MAX_ITEM_BYTES, MAX_ITEMS, prepared_items
from dari.errors import Failed
from dari.mcp.client.listing import fetch_list
from dari.mcp.client.results import ListResult
from tests.support.bridge import ME, Place, text_of
from tests.support.heartbeat import Heartbeat

pytestmark = pytest.mark.local_mcp


async def test_a_schema_that_never_ends_holds_up_nobody_and_its_tool_still_answers(tmp_path: Path) -> None:
    levels = {f"l{at}": {"allOf": [{"$ref": f"#/$defs/l{at + 1}"}] * 8} for at in range(40)}
    trap = {"type": "object", "properties": {"x": {"$ref": "#/$defs/l0"}}, "$defs": {**levels, "l40": {}}}
    (tmp_path / "tools.json").write_text(json.dumps([{"name": "greet", "inputSchema": trap}]))
    async with Place(tmp_path).upstream() as upstream, Heartbeat() as heartbeat:
        await upstream.tools()
        before = heartbeat.beats
        assert text_of(await upstream.call_tool("greet", b'{"x":1}', ME)) == "hello"
        assert heartbeat.beats > before + 100


def listing(*items: object) -> ListResult:
    return ListResult([Raw(json.dumps(item).encode()) for item in items])


async def test_a_list_at_its_limit_is_read_in_slices() -> None:
    properties = {f"argument_{at}": {"type": "string", "description": "as long as people write"} for at in range(20)}
    tools = listing(*({"name": f"t{at}", "inputSchema": {"properties": properties}} for at in range(2_000)))
    async with Heartbeat() as heartbeat:
        found = await prepared_items("lab", "tools", tools)
    assert len(found) == 2_000
    assert heartbeat.beats > 5


async def test_more_tools_than_a_server_may_list_are_refused_before_one_is_read() -> None:
    unreadable = ListResult([Raw(b"{")] * (MAX_ITEMS["tools"] + 1))
    with pytest.raises(Failed, match="2,000"):
        await prepared_items("lab", "tools", unreadable)


async def test_a_huge_or_deep_item_is_left_out_and_the_others_stay(caplog: pytest.LogCaptureFixture) -> None:
    deep: dict[str, object] = {}
    for _ in range(150):
        deep = {"not": deep}
    tools = listing(
        {"name": "huge", "description": "x" * MAX_ITEM_BYTES}, {"name": "deep", "inputSchema": deep}, {"name": "fine"}
    )
    complaints: list[str] = []
    assert [one.listed["name"] for one in await prepared_items("lab", "tools", tools, complaints)] == ["fine"]
    assert caplog.text.count("left out") == 2
    assert len(complaints) == 3 and "inputSchema" in complaints[2]


async def test_items_without_a_name_or_schema_are_named_and_their_number_is_bounded() -> None:
    complaints: list[str] = []
    odd = listing({"description": "no name"}, "text", {"name": "bare", "inputSchema": []}, *([{}] * 500))
    await prepared_items("lab", "tools", odd, complaints)
    assert complaints[:3] == [
        "tools: an item needs a name, got 'None'",
        "tools: an item must be an object, got str",
        "tools: 'bare' needs an inputSchema that is an object, got '[]'",
    ]
    assert len(complaints) == MAX_COMPLAINTS


@pytest.mark.parametrize(
    "page",
    [
        b'{"tools":[' + b",".join([b'{"name":"t"}'] * 1_000_000) + b"]}",
        b'{"tools":[' + b",".join([b"{}"] * 20_000) + b"]}",
        b'{"tools":[{"name":"' + b"x" * (33 * 1024 * 1024) + b'"}]}',
    ],
    ids=["a million", "twenty thousand", "32 MiB"],
)
async def test_an_answer_with_too_many_tools_is_refused_by_the_client(page: bytes) -> None:
    async def ask(method: str, params: bytes) -> Raw:
        return Raw(page)

    with pytest.raises(Failed, match="10,000"):
        await fetch_list("tools", ask)


async def test_pages_without_end_are_refused_by_their_sum() -> None:
    pages = 0

    async def ask(method: str, params: bytes) -> Raw:
        nonlocal pages
        pages += 1
        items = b",".join([b'{"name":"t"}'] * 500)
        return Raw(b'{"tools":[' + items + b'],"nextCursor":"%d"}' % pages)

    with pytest.raises(Failed, match="10,000"):
        await fetch_list("tools", ask)
    assert pages == 21


async def test_a_server_that_renames_all_its_tools_causes_a_bounded_number_of_comparisons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []

    class Counted(difflib.SequenceMatcher[str]):
        def __init__(self, *given: Any, **named: Any) -> None:
            made.append(given)
            super().__init__(*given, **named)

    monkeypatch.setattr(difflib, "SequenceMatcher", Counted)
    store = PinStore(tmp_path / "pins" / "pins.db")
    pins = Pins(store)
    tools = [{"name": f"old_{at}", "description": f"does this and that {at}"} for at in range(300)]
    pins.review("lab", Shown(tools=tools))
    review = pins.review("lab", Shown(tools=[{**tool, "name": f"new{tool['name']}"} for tool in tools]))
    store.close()
    assert len(review.held) == 300
    assert 0 < len(made) <= MAX_COMPARISONS


async def test_a_server_with_a_million_tools_is_refused_and_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps([{"name": f"t{at}"} for at in range(1_000_000)]))
    async with Place(tmp_path).upstream() as upstream, Heartbeat() as heartbeat:
        with pytest.raises(Failed):
            await upstream.tools()
        assert heartbeat.beats > 50
