"""What servers ask: elicitation, sampling and roots through the same callbacks in both eras."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dari.core.context import Elicited
from dari.errors import Denied, Failed, Unavailable
from dari.mcp.client import Client
from dari.mcp.client.callbacks import Elicitation, Sampling, fill_in
from dari.mcp.client.errors import RemoteError
from dari.mcp.versions import MISSING_CAPABILITY
from tests.support.demo_server import demo_server
from tests.support.mcp_client import (
    DISCOVERED,
    ERAS,
    Json,
    ScriptedChannel,
    four,
    handshake_script,
    memory_client,
    say_yes,
    two_folders,
)
from tests.support.waiting import until

both_eras = pytest.mark.parametrize("mode", ERAS)


@both_eras
async def test_a_form_is_filled_in(mode: Any) -> None:
    asked: list[Elicitation] = []

    async def on_elicit(question: Elicitation) -> Elicited:
        asked.append(question)
        return Elicited("accept", {"name": "Ada"})

    async with memory_client(demo_server(), mode=mode, on_elicit=on_elicit) as client:
        assert (await client.call_tool("demo_greet")).text == "hello Ada"
    assert asked[0].message == "Who are you?"
    assert asked[0].mode == "form"
    assert b"Who are you?" in bytes(asked[0].raw)


@both_eras
async def test_a_form_is_declined(mode: Any) -> None:
    async def on_elicit(question: Elicitation) -> Elicited:
        return Elicited("decline")

    async with memory_client(demo_server(), mode=mode, on_elicit=on_elicit) as client:
        assert (await client.call_tool("demo_greet")).text == "nobody (decline)"


@both_eras
async def test_a_callback_may_answer_with_a_plain_dict(mode: Any) -> None:
    async def on_elicit(question: Elicitation) -> Json:
        return {"action": "accept", "content": {"name": "Bob"}}

    async with memory_client(demo_server(), mode=mode, on_elicit=on_elicit) as client:
        assert (await client.call_tool("demo_greet")).text == "hello Bob"


@both_eras
async def test_two_questions_come_one_after_the_other(mode: Any) -> None:
    async with memory_client(demo_server(), mode=mode, on_elicit=say_yes) as client:
        assert (await client.call_tool("demo_introduce")).text == "Ada and Ada"


@both_eras
async def test_the_model_is_asked(mode: Any) -> None:
    async with memory_client(demo_server(), mode=mode, on_sample=four) as client:
        assert (await client.call_tool("demo_think")).text == "4"


@both_eras
async def test_the_folders_are_told(mode: Any) -> None:
    async with memory_client(demo_server(), mode=mode, on_roots=two_folders) as client:
        assert (await client.call_tool("demo_folders")).text == "file:///a,file:///b"
        client.roots_changed()


@both_eras
async def test_without_a_callback_the_server_is_told_so(mode: Any) -> None:
    async with memory_client(demo_server(), mode=mode) as client:
        if mode == "handshake":
            assert (await client.call_tool("demo_greet")).is_error
        else:
            with pytest.raises(RemoteError) as refused:
                await client.call_tool("demo_greet")
            assert refused.value.remote_code == MISSING_CAPABILITY


@both_eras
async def test_a_person_who_says_no_ends_the_call(mode: Any) -> None:
    async def on_sample(question: Sampling) -> Json:
        raise Denied("the person said no")

    async with memory_client(demo_server(), mode=mode, on_sample=on_sample) as client:
        if mode == "handshake":
            assert "the person said no" in (await client.call_tool("demo_think")).text
        else:
            with pytest.raises(Denied, match="the person said no"):
                await client.call_tool("demo_think")


async def test_a_question_is_answered_while_a_call_waits() -> None:
    def script(channel: ScriptedChannel, message: Json) -> None:
        if message.get("method") == "tools/call":
            channel.send({"jsonrpc": "2.0", "id": "q1", "method": "roots/list"})
            channel.send({"jsonrpc": "2.0", "id": "q2", "method": "ping"})
            channel.send({"jsonrpc": "2.0", "id": "q3", "method": "no/such"})
        elif message.get("id") == "q1":
            channel.reply(channel.sent[-1] | {"id": call_of(channel)["id"]}, {"content": []})

    channel = ScriptedChannel(handshake_script(script))
    async with Client(channel, mode="handshake", on_roots=two_folders) as client:
        await client.call_tool("x")
        await settled(lambda: "q3" in answers_in(channel))
    answers = answers_in(channel)
    assert answers["q1"]["result"] == {"roots": [{"uri": "file:///a"}, {"uri": "file:///b"}]}
    assert answers["q2"]["result"] == {}
    assert answers["q3"]["error"]["code"] == -32601


async def test_a_question_that_the_server_takes_back_is_dropped() -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def on_elicit(question: Elicitation) -> Elicited:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    channel = ScriptedChannel(handshake_script(lambda channel, message: None))
    async with Client(channel, mode="handshake", on_elicit=on_elicit):
        channel.send({"jsonrpc": "2.0", "id": 9, "method": "elicitation/create", "params": {"message": "?"}})
        await asked.wait()
        channel.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}})
        await ended.wait()
    assert answers_in(channel) == {}


async def test_too_many_questions_at_once_are_refused() -> None:
    async def on_elicit(question: Elicitation) -> Elicited:
        await asyncio.Event().wait()
        raise AssertionError

    channel = ScriptedChannel(handshake_script(lambda channel, message: None))
    async with Client(channel, mode="handshake", on_elicit=on_elicit):
        for number in range(70):
            channel.send({"jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": {"message": "?"}})
        await settled(lambda: len(answers_in(channel)) == 6)


def rounds_of(results: list[Json]) -> ScriptedChannel:
    """A stateless server that answers each `tools/call` with the next of these."""

    def script(channel: ScriptedChannel, message: Json) -> None:
        if message["method"] == "server/discover":
            channel.reply(message, DISCOVERED)
        elif "id" in message:
            channel.reply(message, results.pop(0) if len(results) > 1 else results[0])

    return ScriptedChannel(script)


ASK: Json = {
    "resultType": "input_required",
    "inputRequests": {"k": {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {}}}},
    "requestState": "opaque",
}
DONE: Json = {"resultType": "complete", "content": []}


async def test_a_round_repeats_the_call_with_answers_and_state_under_a_new_id() -> None:
    channel = rounds_of([ASK, DONE])
    async with Client(channel, on_elicit=say_yes) as client:
        await client.call_tool("x", {"a": 1})
    first, second = channel.sent[1:]
    assert first["id"] != second["id"]
    assert second["params"]["name"] == "x" and second["params"]["arguments"] == {"a": 1}
    assert second["params"]["requestState"] == "opaque"
    assert second["params"]["inputResponses"] == {"k": {"action": "accept", "content": {}}}


async def test_state_that_was_not_given_is_not_sent() -> None:
    channel = rounds_of([{key: value for key, value in ASK.items() if key != "requestState"}, DONE])
    async with Client(channel, on_elicit=say_yes) as client:
        await client.call_tool("x")
    assert "requestState" not in channel.sent[2]["params"]


async def test_a_server_that_only_wants_to_be_asked_again_is_asked_again() -> None:
    channel = rounds_of([{"resultType": "input_required", "requestState": "busy"}, DONE])
    async with Client(channel) as client:
        await client.call_tool("x")
    assert channel.sent[2]["params"]["requestState"] == "busy"
    assert "inputResponses" not in channel.sent[2]["params"]


async def test_a_server_that_never_stops_asking_is_given_up() -> None:
    channel = rounds_of([ASK])
    async with Client(channel, on_elicit=say_yes) as client:
        with pytest.raises(Failed, match="10"):
            await client.call_tool("x")
    assert len(channel.sent) == 1 + 11


async def test_a_question_without_a_callback_names_what_is_missing() -> None:
    async with Client(rounds_of([ASK])) as client:
        with pytest.raises(Unavailable, match="elicitation/create"):
            await client.call_tool("x")


async def test_a_raw_request_may_keep_the_question_for_itself() -> None:
    async with Client(rounds_of([ASK])) as client:
        raw = await client.request("tools/call", {"name": "x"}, answer_questions=False)
    assert b"input_required" in bytes(raw)


async def test_a_result_without_a_type_is_complete_even_if_it_mentions_the_word() -> None:
    async with Client(rounds_of([{"content": [{"type": "text", "text": '"input_required"'}]}])) as client:
        assert (await client.call_tool("x")).text == '"input_required"'


def test_a_form_takes_the_defaults_of_its_schema() -> None:
    schema = {
        "properties": {
            "name": {"type": "string", "default": "John"},
            "age": {"type": "integer", "default": 0},
            "open": {"type": "boolean", "default": False},
            "free": {"type": "string"},
            "given": {"type": "string", "default": "no"},
        }
    }
    assert fill_in(schema, {"given": "yes"}) == {"given": "yes", "name": "John", "age": 0, "open": False}
    assert fill_in({}, None) == {}


def answers_in(channel: ScriptedChannel) -> dict[Any, Json]:
    return {message["id"]: message for message in channel.sent if "method" not in message}


def call_of(channel: ScriptedChannel) -> Json:
    return next(message for message in channel.sent if message.get("method") == "tools/call")


async def settled(is_true: Any) -> None:
    await until(is_true)
