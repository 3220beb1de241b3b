"""Progress goes to those who gave a token, log records to those who asked for their level."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dari.core.context import LEVELS, Context, LoggingMessage
from dari.core.registry import Registry
from dari.core.tool import tool, typed_tool
from dari.mcp.server import Info, Server
from tests.support.mcp_server import LATEST, VERSIONS, Rig, ready, request
from tests.support.wire import META, Json, call, stateless

LOG_LEVEL = "io.modelcontextprotocol/logLevel"


def count(meta: Json, to: int = 2) -> Json:
    return request("tools/call", "c", name="demo_count", arguments={"to": to}, _meta=meta)


async def until_reply(rig: Rig, message: Json) -> list[Json]:
    """Everything that came before the reply, and the reply last."""
    messages = [await rig.ask(message)]
    while "id" not in messages[-1]:
        messages.append(await rig.next())
    return messages


@pytest.mark.parametrize("version", [*VERSIONS, "2026-07-28"])
@pytest.mark.parametrize("token", [0, 7, "", "t"])
async def test_progress_carries_the_token_the_numbers_and_the_message(version: str, token: int | str) -> None:
    meta: Json = {"progressToken": token}
    if version == "2026-07-28":
        rig, message = Rig(), count({**META, **meta})
    else:
        rig, message = await ready(version), count(meta)
        await rig.ask(request("logging/setLevel", level="emergency"))
    *told, reply = await until_reply(rig, message)
    assert [note["method"] for note in told] == ["notifications/progress"] * 2
    assert [note["params"] for note in told] == [
        {"progressToken": token, "progress": number, "total": 2, "message": f"step {number}"} for number in (1, 2)
    ]
    assert reply["result"]["content"][0]["text"] == "counted to 2"


@pytest.mark.parametrize("envelope", [False, True])
async def test_without_a_token_there_is_no_progress(envelope: bool) -> None:
    rig = await ready()
    await rig.ask(request("logging/setLevel", level="emergency"))
    message = call("demo_count")
    (reply,) = await until_reply(rig, stateless(message) if envelope else message)
    assert "result" in reply


async def test_two_calls_with_one_token_each_keep_their_own_order() -> None:
    rig = await ready()
    rig.send(count({"progressToken": "a"}, 3))
    rig.send({**count({"progressToken": "b"}, 3), "id": "d"})
    seen: dict[str, list[float]] = {"a": [], "b": []}
    replies = 0
    while replies < 2:
        message = await rig.next()
        replies += "id" in message
        if message.get("method") == "notifications/progress":
            seen[message["params"]["progressToken"]].append(message["params"]["progress"])
    assert seen == {"a": [1, 2, 3], "b": [1, 2, 3]}


@tool()
async def talkative(context: Context) -> str:
    """Log at every level."""
    for level in LEVELS:
        await context.log(level, level)
    return "said"


def logging_rig() -> Rig:
    registry = Registry()
    registry.add_tools(typed_tool(talkative))
    return Rig(Server(registry, Info("logs", "1")))


async def levels_told(rig: Rig, message: Json) -> list[str]:
    *told, _ = await until_reply(rig, message)
    assert all(note["method"] == "notifications/message" for note in told)
    return [note["params"]["level"] for note in told]


async def test_a_session_hears_info_and_above_until_it_says_otherwise() -> None:
    rig = logging_rig()
    await rig.agree()
    assert await levels_told(rig, call("talkative")) == list(LEVELS[1:])


@pytest.mark.parametrize("level", LEVELS)
async def test_a_session_hears_the_level_it_set_and_above(level: Any) -> None:
    rig = logging_rig()
    await rig.agree()
    await rig.ask(request("logging/setLevel", level=level))
    assert await levels_told(rig, call("talkative")) == list(LEVELS[LEVELS.index(level) :])


@pytest.mark.parametrize("level", LEVELS)
async def test_a_stateless_call_hears_the_level_in_its_envelope_and_above(level: Any) -> None:
    message = request("tools/call", name="talkative", _meta={**META, LOG_LEVEL: level})
    assert await levels_told(logging_rig(), message) == list(LEVELS[LEVELS.index(level) :])


@pytest.mark.parametrize("meta", [META, {**META, LOG_LEVEL: "loud"}])
async def test_a_stateless_call_without_a_known_level_hears_nothing(meta: Json) -> None:
    assert await levels_told(logging_rig(), request("tools/call", name="talkative", _meta=meta)) == []


async def test_the_level_of_a_session_does_not_count_for_a_stateless_call() -> None:
    rig = logging_rig()
    await rig.agree(LATEST)
    await rig.ask(request("logging/setLevel", level="debug"))
    assert await levels_told(rig, stateless(call("talkative"))) == []


async def test_a_record_carries_its_data_and_its_logger() -> None:
    rig = await ready()
    (first, _) = await until_reply(rig, call("demo_count", to=1))
    assert first["params"] == {"level": "info", "data": {"number": 1}, "logger": "demo"}


async def test_secrets_in_a_record_are_hidden_in_a_call_and_outside_of_one() -> None:
    rig = logging_rig()
    await rig.agree()
    await rig.ask(request("logging/setLevel", level="debug"))
    rig.server.log_to_sessions(LoggingMessage("info", {"Authorization": "Bearer ghp_" + "a1B2" * 9}, "other"))
    told = await rig.next()
    assert told["method"] == "notifications/message" and "ghp_" not in json.dumps(told)
