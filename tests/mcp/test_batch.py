"""Batches: 2025-03-26 answers them with one array, every other version refuses them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rpc.test_fuzz import all_replies, is_request, likely, possible, values
from tests.support.mcp_server import Rig, notification, ready, request
from tests.support.wire import Json, call

BATCHING = "2025-03-26"


async def ask(rig: Rig, batch: list[Any]) -> Any:
    rig.server.receive(json.dumps(batch).encode(), rig.wire)
    return await rig.next()


async def test_the_replies_come_as_one_array_in_the_order_of_the_requests() -> None:
    rig = await ready(BATCHING)
    tools = [call("demo_echo", "task", text="a"), request("ping", "now"), call("demo_quick", 3, text="b")]
    replies = await ask(rig, [*tools, request("no/such", "fault")])
    assert [reply["id"] for reply in replies] == ["task", "now", 3, "fault"]
    assert replies[0]["result"]["structuredContent"] == {"text": "a", "times": 1}
    assert replies[3]["error"]["code"] == -32601


async def test_a_slow_call_holds_its_batch_and_nothing_else() -> None:
    rig = await ready(BATCHING)
    rig.server.receive(json.dumps([request("ping", 1), call("demo_hang", 2)]).encode(), rig.wire)
    await rig.tools.started.wait()
    await rig.quiet()
    rig.tools.release.set()
    batch: Any = await rig.next()
    assert [reply["id"] for reply in batch] == [1, 2]


async def test_notifications_in_a_batch_are_not_answered() -> None:
    rig = await ready(BATCHING)
    note = notification("notifications/initialized")
    assert [reply["id"] for reply in await ask(rig, [note, request("ping", 1), note])] == [1]
    rig.server.receive(json.dumps([note, note]).encode(), rig.wire)
    await rig.quiet()


async def test_what_a_call_says_on_its_way_is_not_part_of_the_array() -> None:
    rig = await ready(BATCHING)
    progress = request("tools/call", 1, name="demo_count", arguments={"to": 1}, _meta={"progressToken": "t"})
    rig.server.receive(json.dumps([progress]).encode(), rig.wire)
    assert (await rig.next())["method"] == "notifications/progress"
    assert (await rig.next())["method"] == "notifications/message"
    assert isinstance(await rig.next(), list)


async def test_a_question_from_inside_a_batch_is_answered_outside_of_it() -> None:
    rig = await ready(BATCHING, elicitation={})
    question = await ask(rig, [call("demo_greet", 1)])
    assert question["method"] == "elicitation/create"
    rig.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
    replies: Any = await rig.next()
    assert replies[0]["result"]["content"][0]["text"] == "nobody (decline)"


async def test_a_call_cancelled_inside_a_batch_does_not_keep_the_others_from_their_replies() -> None:
    rig = await ready(BATCHING)
    cancel = notification("notifications/cancelled", requestId=1)
    replies = await ask(rig, [call("demo_hang", 1), request("ping", 2), cancel])
    assert [reply["id"] for reply in replies] == [1, 2]
    assert replies[0]["error"]["code"] == -32800


@pytest.mark.parametrize(
    "batch", [[], [{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in range(1001)]], ids=["empty", "too many"]
)
async def test_a_batch_of_none_or_too_many_is_one_error(batch: list[Json]) -> None:
    rig = await ready(BATCHING)
    reply = await ask(rig, batch)
    assert (reply["id"], reply["error"]["code"]) == (None, -32600)
    await rig.quiet()


async def test_a_thousand_messages_are_not_too_many() -> None:
    rig = await ready(BATCHING)
    assert len(await ask(rig, [request("ping", number) for number in range(1000)])) == 1000


@pytest.mark.parametrize(
    ("part", "code", "request_id"),
    [
        (1, -32600, None),
        ("x", -32600, None),
        (None, -32600, None),
        ({}, -32600, None),
        ([], -32600, None),
        ([request("ping")], -32600, None),
        ({"jsonrpc": "2.0", "id": 7}, -32600, 7),
        ({"jsonrpc": "1.0", "id": 7, "method": "ping"}, -32600, 7),
        ({"jsonrpc": "2.0", "id": 7, "method": "ping", "params": 5}, -32602, 7),
    ],
)
async def test_each_wrong_part_is_answered_by_itself(part: Any, code: int, request_id: int | None) -> None:
    rig = await ready(BATCHING)
    wrong, good = await ask(rig, [part, request("ping", "good")])
    assert (wrong["id"], wrong["error"]["code"]) == (request_id, code)
    assert good == {"jsonrpc": "2.0", "id": "good", "result": {}}


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25", ""])
async def test_every_other_version_refuses_a_batch(version: str) -> None:
    rig = Rig()
    if version:
        await rig.agree(version)
    reply = await ask(rig, [request("ping")])
    assert (reply["id"], reply["error"]["code"]) == (None, -32600)


@pytest.mark.parametrize("data", [b"[", b"[{]", b"[" * 100_000, b'[{"jsonrpc":"2.0"'])
async def test_a_batch_that_is_not_json_is_one_error(data: bytes) -> None:
    rig = await ready(BATCHING)
    rig.server.receive(data, rig.wire)
    assert "error" in await rig.next()
    await rig.quiet()


# What may cancel another call, stay open, or change the version has rules of its own.
APART = ("notifications/cancelled", "subscriptions/listen", "initialize")
parts = (likely | possible | values).filter(lambda part: not isinstance(part, dict) or part.get("method") not in APART)


@settings(deadline=None, max_examples=150)
@given(st.lists(parts, min_size=1, max_size=5))
def test_any_batch_gets_one_array_with_one_reply_for_each_request(batch: list[Any]) -> None:
    batch = [{**part, "id": f"r{place}"} if is_request(part) else part for place, part in enumerate(batch)]
    received: list[Any] = asyncio.run(all_replies(BATCHING, json.dumps(batch).encode()))
    arrays = [message for message in received if isinstance(message, list)]
    assert len(arrays) <= 1
    ids = [part["id"] for part in batch if is_request(part)]
    assert [reply["id"] for array in arrays for reply in array if reply["id"] in ids] == ids
