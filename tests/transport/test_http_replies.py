"""How a POST is answered: JSON or events, chosen per call; comments for silent calls; batches."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.support.transports import JSON_ONLY, Events, open_events, running
from tests.support.waiting import turn_until
from tests.support.wire import Json, call, initialize, stateless

PING: Json = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
INITIALIZED: Json = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def counting(request_id: int = 1) -> Json:
    message = call("demo_count", request_id, to=2)
    message["params"]["_meta"] = {"progressToken": "t"}
    return message


def batch(*messages: Json) -> bytes:
    return json.dumps(messages).encode()


async def test_a_call_that_says_nothing_is_answered_in_json() -> None:
    async with running() as rig:
        reply = await (await rig.session()).post(call("demo_echo", text="x"))
        assert reply.headers["content-type"] == "application/json"
        assert reply.json()["result"]["structuredContent"]["text"] == "x"


async def test_a_call_that_reports_is_answered_in_events_and_ends_with_its_result() -> None:
    async with running() as rig:
        reply = await (await rig.session()).post(counting())
        assert reply.headers["content-type"] == "text/event-stream"
        assert reply.headers["cache-control"] == "no-cache, no-transform"
        events = reply.events()
        methods = [event.get("method") for event in events]
        step = ["notifications/progress", "notifications/message"]
        assert methods == [*step, *step, None]
        assert (events[-1]["id"], events[-1]["result"]["content"][0]["text"]) == (1, "counted to 2")


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_a_client_that_takes_no_events_gets_the_result_alone(era: str) -> None:
    async with running() as rig:
        wire = await rig.session()
        message = counting() if era == "handshake" else stateless(counting())
        reply = await wire.post(message, **JSON_ONLY)
        assert reply.headers["content-type"] == "application/json"
        assert reply.json()["result"]["content"][0]["text"] == "counted to 2"


async def test_a_client_that_takes_no_events_cannot_be_asked_and_is_told_so() -> None:
    async with running() as rig:
        wire = await rig.session(elicitation={})
        reply = await wire.post(call("demo_greet"), **JSON_ONLY)
        error = reply.json()["result"]["_meta"]["dari/error"]
        assert (error["code"], error["hint"]) == (-32603, "send Accept: text/event-stream")


async def test_a_question_travels_in_the_stream_of_its_call_and_the_answer_in_a_post() -> None:
    async with running() as rig:
        wire = await rig.session(elicitation={})
        calling = await rig.again(wire)
        calling.send("POST", "/mcp", json.dumps(call("demo_greet", 5)).encode())
        assert (await calling.head())[0] == 200
        events = Events(calling)
        question = await events.message()
        assert question["method"] == "elicitation/create"
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"name": "Bo"}}}
        assert (await wire.post(answer)).status == 202
        assert (await events.message())["result"]["content"][0]["text"] == "hello Bo"


async def test_a_silent_call_becomes_a_stream_with_a_comment_now_and_then() -> None:
    async with running() as rig:
        wire = await rig.session()
        wire.send("POST", "/mcp", json.dumps(call("demo_hang", 9)).encode())
        await rig.tools.started.wait()
        now_s = asyncio.get_running_loop().time()
        rig.endpoint.keep_awake(now_s + 14)
        rig.endpoint.keep_awake(now_s + 16)
        rig.endpoint.keep_awake(now_s + 20)
        rig.endpoint.keep_awake(now_s + 32)
        rig.tools.release.set()
        reply = await wire.receive()
        assert reply.headers["content-type"] == "text/event-stream"
        assert reply.body.count(b": still here\n\n") == 2
        assert reply.json()["id"] == 9


async def test_a_request_whose_body_comes_slowly_gets_its_session_and_no_comment() -> None:
    async with running() as rig:
        wire = await rig.http()
        body = json.dumps(initialize()).encode()
        accepted = "Accept: application/json, text/event-stream\r\nContent-Type: application/json"
        head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{accepted}\r\nContent-Length: {len(body)}\r\n\r\n"
        wire.writer.write(head.encode() + body[:10])
        await turn_until(lambda: rig.endpoint.open)
        rig.endpoint.keep_awake(asyncio.get_running_loop().time() + 16)
        wire.writer.write(body[10:])
        reply = await wire.receive()
        assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
        assert reply.headers["mcp-session-id"]


async def test_a_silent_call_of_a_client_without_events_stays_json() -> None:
    async with running() as rig:
        wire = await rig.session()
        wire.send("POST", "/mcp", json.dumps(call("demo_hang", 9)).encode(), JSON_ONLY)
        await rig.tools.started.wait()
        rig.endpoint.keep_awake(asyncio.get_running_loop().time() + 3600)
        rig.tools.release.set()
        assert (await wire.receive()).headers["content-type"] == "application/json"


async def test_a_standing_stream_gets_comments_too() -> None:
    async with running() as rig:
        wire = await rig.session()
        events = await open_events(await rig.again(wire))
        await events.block()
        rig.endpoint.keep_awake(asyncio.get_running_loop().time() + 16)
        assert await events.block() == ": still here"


async def test_a_batch_of_2025_03_26_is_answered_as_one_array() -> None:
    async with running() as rig:
        wire = await rig.session("2025-03-26")
        reply = await wire.post(
            batch({**PING, "id": 1}, INITIALIZED, call("demo_echo", 2, text="x"), {**PING, "id": 3})
        )
        assert reply.status == 200
        assert [each["id"] for each in json.loads(reply.body)] == [1, 2, 3]


async def test_a_batch_that_needs_no_reply_is_202() -> None:
    async with running() as rig:
        wire = await rig.session("2025-03-26")
        reply = await wire.post(batch(INITIALIZED, {"jsonrpc": "2.0", "id": "s9", "result": {}}))
        assert (reply.status, reply.body) == (202, b"")
        assert (await wire.post(PING)).status == 200


async def test_a_batch_with_unreadable_parts_answers_each_of_them() -> None:
    async with running() as rig:
        wire = await rig.session("2025-03-26")
        reply = await wire.post(b'[{"jsonrpc":"2.0","id":1},7,{"jsonrpc":"2.0","id":2,"method":"ping"},[]]')
        assert reply.status == 200
        replies = json.loads(reply.body)
        assert [each.get("error", {}).get("code") for each in replies] == [-32600, -32600, None, -32600]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
async def test_a_batch_of_any_other_version_is_refused(version: str) -> None:
    async with running() as rig:
        wire = await rig.session(version)
        reply = await wire.post(batch(PING))
        assert (reply.status, reply.json()["error"]["code"]) == (400, -32600)
        assert (await wire.post(PING)).status == 200


async def test_an_empty_batch_is_refused() -> None:
    async with running() as rig:
        wire = await rig.session("2025-03-26")
        reply = await wire.post(b"[]")
        assert (reply.status, reply.json()["error"]["code"]) == (400, -32600)


async def test_a_batch_without_a_session_is_refused() -> None:
    async with running() as rig:
        reply = await (await rig.http()).post(batch(PING))
        assert reply.status == 400


async def test_a_batch_of_a_session_that_is_gone_is_404() -> None:
    async with running() as rig:
        wire = await rig.session("2025-03-26")
        assert (await wire.request("DELETE", "/mcp")).status == 204
        assert (await wire.post(batch(PING))).status == 404


async def test_a_batch_whose_tools_report_is_a_stream_that_ends_with_the_array() -> None:
    async with running() as rig:
        wire = await rig.session("2025-03-26")
        wire.send("POST", "/mcp", batch(counting(1), counting(2)))
        reply = await wire.receive()
        assert reply.headers["content-type"] == "text/event-stream"
        last = json.loads(reply.body.decode().rstrip().rpartition("data: ")[2])
        assert [each["id"] for each in last] == [1, 2]
        await turn_until(lambda: not rig.endpoint.open)
