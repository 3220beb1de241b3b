"""Questions of servers of either era reach clients of either era, and the answers find their way back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dari.bridge.gateway.suspended_calls import SuspendedCalls
from tests.support.gateway import EVERYTHING, House, asked, called, demo, house, lab, replied, seen, text_of
from tests.support.wire import Json, MemoryWire

pytestmark = pytest.mark.local_mcp

SERVERS = ["handshake", "stateless"]


def accepted(**content: Any) -> Json:
    return {"action": "accept", "content": content}


SAID = {"role": "assistant", "content": {"type": "text", "text": "4"}, "model": "m", "odd": [1]}


async def questioned(home: House, name: str, answers: list[Json], era: str) -> tuple[Json, list[Json]]:
    """Call a tool and answer what it asks, in the client's era; the final reply and the questions."""
    if era == "handshake":
        return await _in_place(await home.client(**EVERYTHING), name, answers)
    asked_for: list[Json] = []
    reply = await home.ask(asked(name))
    for answer in answers:
        result = reply["result"]
        assert result["resultType"] == "input_required"
        ((key, question),) = result["inputRequests"].items()
        asked_for.append(question)
        reply = await home.ask(asked(name, inputResponses={key: answer}, requestState=result["requestState"]))
    return reply, asked_for


async def _in_place(wire: MemoryWire, name: str, answers: list[Json]) -> tuple[Json, list[Json]]:
    asked_for: list[Json] = []
    wire.send(called(name))
    for answer in answers:
        while "method" not in (question := await wire.messages.get()) or "id" not in question:
            pass
        asked_for.append({"method": question["method"], "params": question["params"]})
        wire.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
    return await wire.messages.get(), asked_for


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("client", SERVERS)
async def test_a_form_is_filled_in_across_the_eras(tmp_path: Path, server: str, client: str) -> None:
    async with house(tmp_path, demo(era=server)) as home:
        await home.names()
        reply, questions = await questioned(home, "demo__demo_greet", [accepted(name="Minji")], client)
        assert text_of(reply) == "hello Minji"
        assert [one["method"] for one in questions] == ["elicitation/create"]
        assert questions[0]["params"]["message"] == "Who are you?"
        assert questions[0]["params"]["requestedSchema"]["required"] == ["name"]


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("client", SERVERS)
async def test_the_clients_model_is_asked_across_the_eras(tmp_path: Path, server: str, client: str) -> None:
    async with house(tmp_path, demo(era=server)) as home:
        await home.names()
        reply, questions = await questioned(home, "demo__demo_think", [SAID], client)
        assert text_of(reply) == "4"
        assert questions[0]["method"] == "sampling/createMessage"
        assert questions[0]["params"]["maxTokens"] == 10


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("client", SERVERS)
async def test_one_question_follows_another(tmp_path: Path, server: str, client: str) -> None:
    async with house(tmp_path, demo(era=server)) as home:
        await home.names()
        reply, questions = await questioned(home, "demo__demo_introduce", [accepted(x="a"), accepted(x="b")], client)
        assert text_of(reply) == "a and b"
        assert [one["params"]["message"] for one in questions] == ["first?", "second?"]


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("client", SERVERS)
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_may_say_no(tmp_path: Path, server: str, client: str, action: str) -> None:
    async with house(tmp_path, demo(era=server)) as home:
        await home.names()
        reply, _ = await questioned(home, "demo__demo_greet", [{"action": action}], client)
        assert text_of(reply) == f"nobody ({action})"


async def test_an_error_of_the_client_reaches_the_server_with_its_code(tmp_path: Path) -> None:
    async with house(tmp_path, lab()) as home:
        await home.names()
        wire = await home.client(**EVERYTHING)
        wire.send(called("lab__elicit"))
        question = await wire.messages.get()
        error = {"code": -1, "message": "the person said no", "data": {"x": 1}}
        wire.send({"jsonrpc": "2.0", "id": question["id"], "error": error})
        assert '"refused": {"code": -1, "message": "the person said no", "data": {"x": 1}}' in text_of(
            await wire.messages.get()
        )


async def test_a_client_that_cannot_be_asked_is_not_asked(tmp_path: Path) -> None:
    async with house(tmp_path, lab(), demo()) as home:
        await home.names()
        wire = await home.client()
        assert "cannot answer" in text_of(await replied(wire, called("lab__elicit")))
        # A server that cannot go on without an answer: the client learns what it would have to declare.
        reply = await home.ask(asked("demo__demo_greet", {}))
        assert reply["error"]["code"] == -32021
        assert reply["error"]["data"] == {"requiredCapabilities": {"elicitation": {}}}
        # One that only wanted to know is told, and goes on.
        assert "were not declared: elicitation" in text_of(await home.ask(asked("lab__elicit", {})))
        assert "were not declared" in text_of(await home.ask(asked("lab__elicit", {"sampling": {}})))


async def test_a_tool_that_fails_for_want_of_an_answer_tells_what_to_declare(tmp_path: Path) -> None:
    async with house(tmp_path, demo(era="handshake")) as home:
        await home.names()
        nothing: Json = {}
        for capabilities in (nothing, {"elicitation": {}}):
            reply = await home.ask(asked("demo__demo_think", capabilities))
            assert reply["error"]["code"] == -32021
            assert reply["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}


async def test_answers_are_passed_on_as_they_are(tmp_path: Path) -> None:
    async with house(tmp_path, lab()) as home:
        await home.names()
        answer = {**accepted(name="Minji", extra=[1, {"a": None}]), "_meta": {"x/y": 1}}
        for client in SERVERS:
            reply, _ = await questioned(home, "lab__elicit", [answer], client)
            assert text_of(reply) == (
                '{"action": "accept", "content": {"name": "Minji", "extra": [1, {"a": null}]}, "_meta": {"x/y": 1}}'
            )


async def test_a_parked_call_belongs_to_one_state_and_is_taken_up_once(tmp_path: Path) -> None:
    async with house(tmp_path, lab()) as home:
        await home.names()
        result = (await home.ask(asked("lab__elicit")))["result"]
        ((key, _),) = result["inputRequests"].items()
        retry = {"inputResponses": {key: accepted(name="A")}, "requestState": result["requestState"]}
        parking = home.front.gateway.calling.parking
        assert len(parking) == 1
        forged = await home.ask(asked("lab__elicit", **{**retry, "requestState": "x" + result["requestState"]}))
        assert forged["error"]["code"] == -32602
        other = await home.ask(asked("lab__greet", **retry))
        assert other["error"]["code"] == -32602, "the state is bound to the tool"
        assert len(parking) == 1
        assert '"name": "A"' in text_of(await home.ask(asked("lab__elicit", **retry)))
        again = await home.ask(asked("lab__elicit", **retry))
        assert "does not wait any more" in again["error"]["message"]
        assert len(parking) == 0


async def test_a_bad_answer_can_be_corrected(tmp_path: Path) -> None:
    async with house(tmp_path, lab()) as home:
        await home.names()
        result = (await home.ask(asked("lab__elicit")))["result"]
        ((key, _),) = result["inputRequests"].items()
        state = {"requestState": result["requestState"]}
        bad = await home.ask(asked("lab__elicit", inputResponses={key: "yes"}, **state))
        assert bad["error"]["code"] == -32602
        good = await home.ask(asked("lab__elicit", inputResponses={key: {"action": "decline"}}, **state))
        assert '"action": "decline"' in text_of(good)


async def test_a_call_that_nobody_takes_up_again_ends(tmp_path: Path) -> None:
    async with house(tmp_path, lab(env={"LAB_LOG": str(tmp_path / "lab.log")})) as home:
        await home.names()
        home.front.gateway.calling.parking = parking = SuspendedCalls(ttl_s=0.05)
        result = (await home.ask(asked("lab__elicit")))["result"]
        await seen(lambda: len(parking) == 0)
        ((key, _),) = result["inputRequests"].items()
        late = await home.ask(
            asked("lab__elicit", inputResponses={key: accepted(name="A")}, requestState=result["requestState"])
        )
        assert "does not wait any more" in late["error"]["message"]
        await seen(lambda: any(line.startswith("cancelled") for line in home.place.noted()))


async def test_only_so_many_calls_wait_at_once(tmp_path: Path) -> None:
    async with house(tmp_path, lab(isolation="per-call")) as home:
        await home.names()
        home.front.gateway.calling.parking = SuspendedCalls(most_calls=1)
        assert (await home.ask(asked("lab__elicit")))["result"]["resultType"] == "input_required"
        assert "too many calls wait" in text_of(await home.ask(asked("lab__elicit")))


async def test_two_clients_of_one_server_are_never_asked_for_each_other(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with house(tmp_path, lab()) as home:
        await home.names()
        first, second = await home.client(**EVERYTHING), await home.client(**EVERYTHING)
        first.send(called("lab__wait", until=str(gate), steps=1))
        reply = await replied(second, called("lab__elicit"))
        assert "more than one client uses it" in text_of(reply)
        gate.touch()
        assert text_of(await first.messages.get()) == "waited"
