"""Questions in a session: the request goes out, the answer comes back, and every other end is told."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from dari.core.context import ClientRequest, Context, Elicit, ElicitUrl, Roots, Sample
from dari.core.registry import Registry
from dari.core.tool import tool, typed_tool
from dari.mcp.server import Info, Server
from tests.support.mcp_server import VERSIONS, Rig, answer, failure_of, notification, ready, refusal, text_of
from tests.support.wire import Json, call

EVERYTHING: Json = {"elicitation": {}, "sampling": {}, "roots": {}}
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
FORM = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "x": {"type": "number"},
        "yes": {"type": "boolean"},
        "many": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        "color": {"type": "string", "enum": ["red", "blue"]},
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
    },
}


def asking(questions: dict[str, ClientRequest]) -> Rig:
    """A server whose one tool asks these questions and tells the answers."""

    @tool(name="ask")
    async def ask(context: Context) -> str:
        """Ask everything."""
        return repr(await context.ask(questions))

    registry = Registry()
    registry.add_tools(typed_tool(ask))
    return Rig(Server(registry, Info("asking", "1")))


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_form_goes_out_and_the_answer_comes_back(version: str) -> None:
    rig = await ready(version, **EVERYTHING)
    question = await rig.ask(call("demo_greet", "g"))
    assert question["method"] == "elicitation/create"
    assert question["params"] == {"message": "Who are you?", "requestedSchema": SCHEMA}
    rig.send(answer(question, action="accept", content={"name": "Minji"}))
    reply = await rig.next()
    assert (reply["id"], text_of(reply)) == ("g", "hello Minji")


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_may_refuse(action: str) -> None:
    rig = await ready(**EVERYTHING)
    rig.send(answer(await rig.ask(call("demo_greet")), action=action))
    assert text_of(await rig.next()) == f"nobody ({action})"


async def test_a_model_can_be_asked() -> None:
    rig = await ready(**EVERYTHING)
    question = await rig.ask(call("demo_think"))
    assert question["method"] == "sampling/createMessage"
    assert question["params"]["maxTokens"] == 10
    content = {"type": "text", "text": "4"}
    rig.send(answer(question, role="assistant", content=content, model="m", stopReason="endTurn"))
    assert text_of(await rig.next()) == "4"


async def test_the_open_folders_can_be_asked_for() -> None:
    rig = await ready(**EVERYTHING)
    question = await rig.ask(call("demo_folders"))
    assert (question["method"], question["params"]) == ("roots/list", {})
    rig.send(answer(question, roots=[{"uri": "file:///a"}, {"uri": "file:///b", "name": "b"}]))
    assert text_of(await rig.next()) == "file:///a,file:///b"


async def test_an_error_from_the_client_is_told() -> None:
    rig = await ready(**EVERYTHING)
    rig.send(refusal(await rig.ask(call("demo_greet")), message="the person said no"))
    failure = failure_of(await rig.next())
    assert failure["code"] == -32004
    assert "the person said no" in failure["message"]


async def test_nobody_answering_ends_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dari.mcp.request.QUESTION_TIMEOUT_S", 0.01)
    rig = await ready(**EVERYTHING)
    question = await rig.ask(call("demo_greet"))
    assert await rig.next() == notification("notifications/cancelled", requestId=question["id"])
    failure = failure_of(await rig.next())
    assert (failure["code"], failure["name"]) == (-32004, "timed_out")
    rig.send(answer(question, action="accept", content={"name": "too late"}))
    await rig.quiet()


@pytest.mark.parametrize(
    ("question", "capabilities", "missing"),
    [
        (Elicit("?", SCHEMA), {}, "elicitation"),
        (Elicit("?", SCHEMA), {"sampling": {}, "roots": {}}, "elicitation"),
        (ElicitUrl("?", "https://x.test", "e1"), {}, "elicitation"),
        (ElicitUrl("?", "https://x.test", "e1"), {"elicitation": {}}, "elicitation"),
        (ElicitUrl("?", "https://x.test", "e1"), {"elicitation": {"form": {}}}, "elicitation"),
        (ElicitUrl("?", "https://x.test", "e1"), {"elicitation": True}, "elicitation"),
        (ElicitUrl("?", "https://x.test", "e1"), {"elicitation": "url"}, "elicitation"),
        (Sample([], 1), {"elicitation": {}}, "sampling"),
        (Roots(), {"elicitation": {}}, "roots"),
    ],
)
async def test_what_the_client_did_not_declare_is_not_asked(
    question: ClientRequest, capabilities: Json, missing: str
) -> None:
    rig = asking({"q": question})
    await rig.agree(**capabilities)
    failure = failure_of(await rig.ask(call("ask")))
    assert (failure["code"], failure["name"]) == (-32603, "unavailable")
    assert missing in failure["message"]


async def test_a_page_is_asked_with_its_address() -> None:
    rig = asking({"q": ElicitUrl("Sign in", "https://x.test/in", "e1")})
    await rig.agree(elicitation={"url": {}})
    question = await rig.ask(call("ask"))
    assert question["params"] == {
        "mode": "url",
        "message": "Sign in",
        "url": "https://x.test/in",
        "elicitationId": "e1",
    }
    rig.send(answer(question, action="accept"))
    assert "accept" in text_of(await rig.next())


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"action": "maybe"},
        {"action": "accept"},
        {"action": "accept", "content": {}},
        {"action": "accept", "content": {"name": 5}},
        {"action": "accept", "content": {"name": None}},
        {"action": "accept", "content": ["name"]},
    ],
)
async def test_an_answer_that_does_not_fit_the_form_is_refused(wrong: Json) -> None:
    rig = await ready(**EVERYTHING)
    rig.send(answer(await rig.ask(call("demo_greet")), **wrong))
    failure = failure_of(await rig.next())
    assert failure["code"] == -32602
    assert "'who'" in failure["message"]


@pytest.mark.parametrize(
    ("content", "fits"),
    [
        ({"n": 1, "x": 1.5, "yes": True, "many": ["a"], "color": "red", "size": "s"}, True),
        ({"x": 2}, True),
        ({}, True),
        ({"n": True}, False),
        ({"n": 1.5}, False),
        ({"x": False}, False),
        ({"yes": 1}, False),
        ({"many": "a"}, False),
        ({"many": ["c"]}, False),
        ({"color": "green"}, False),
        ({"size": "m"}, False),
    ],
)
async def test_every_kind_of_field_is_checked(content: Json, fits: bool) -> None:
    rig = asking({"form": Elicit("?", FORM)})
    await rig.agree(elicitation={})
    rig.send(answer(await rig.ask(call("ask")), action="accept", content=content))
    reply = await rig.next()
    assert reply["result"].get("isError", False) is not fits, reply


@pytest.mark.parametrize("junk", [5, "x", None, []])
async def test_an_answer_that_is_no_object_is_refused(junk: Any) -> None:
    rig = await ready(**EVERYTHING)
    question = await rig.ask(call("demo_think"))
    rig.send({"jsonrpc": "2.0", "id": question["id"], "result": junk})
    assert failure_of(await rig.next())["code"] == -32602


async def test_an_answer_that_breaks_json_rpc_ends_the_question() -> None:
    rig = await ready(**EVERYTHING)
    question = await rig.ask(call("demo_greet", "g"))
    rig.send({"jsonrpc": "2.0", "id": question["id"], "error": "no"})
    replies = [await rig.next(), await rig.next()]
    assert failure_of(next(reply for reply in replies if reply["id"] == "g"))["code"] == -32004


async def test_several_questions_go_out_together_and_may_be_answered_in_any_order() -> None:
    rig = asking({"form": Elicit("?", SCHEMA), "folders": Roots()})
    await rig.agree(**EVERYTHING)
    form, folders = await rig.ask(call("ask")), await rig.next()
    assert (form["method"], folders["method"]) == ("elicitation/create", "roots/list")
    rig.send(answer(folders, roots=[]))
    rig.send(answer(form, action="accept", content={"name": "x"}))
    assert "'folders': {'roots': []}" in text_of(await rig.next())


async def test_when_one_question_fails_the_others_are_not_waited_for() -> None:
    rig = asking({"form": Elicit("?", SCHEMA), "folders": Roots()})
    await rig.agree(**EVERYTHING)
    await rig.ask(call("ask"))
    rig.send(refusal(await rig.next()))
    assert failure_of(await rig.next())["code"] == -32004
    assert not rig.wire.session._waiting


async def test_another_client_cannot_answer() -> None:
    rig = await ready(**EVERYTHING)
    question = await rig.ask(call("demo_greet"))
    other = Rig(rig.server)
    await other.agree()
    other.send(answer(question, action="accept", content={"name": "Mallory"}))
    await other.quiet()
    rig.send(answer(question, action="accept", content={"name": "Minji"}))
    assert text_of(await rig.next()) == "hello Minji"


async def test_an_answer_that_nobody_waits_for_is_dropped() -> None:
    rig = await ready(**EVERYTHING)
    for unknown in ("s99", 1, None, 1.5):
        rig.send({"jsonrpc": "2.0", "id": unknown, "result": {}})
    await rig.quiet()


async def test_a_cancelled_call_stops_waiting_for_its_answer() -> None:
    rig = await ready(**EVERYTHING)
    question = await rig.ask(call("demo_greet", "g"))
    rig.send(notification("notifications/cancelled", requestId="g"))
    (running,) = rig.server.calls
    await running.task
    assert not rig.wire.session._waiting
    assert await rig.next() == notification("notifications/cancelled", requestId=question["id"])
    rig.send(answer(question, action="accept", content={"name": "late"}))
    await rig.quiet()


async def test_a_client_that_closes_its_end_is_unavailable_and_no_bug(caplog: pytest.LogCaptureFixture) -> None:
    rig = await ready(**EVERYTHING)
    await rig.ask(call("demo_greet"))
    with caplog.at_level(logging.ERROR):
        rig.wire.session.fail_questions(ConnectionError("the client closed its end"))
        failure = failure_of(await rig.next())
    assert (failure["code"], failure["name"]) == (-32603, "unavailable")
    assert caplog.records == []


async def test_a_link_that_cannot_carry_questions_is_told_so() -> None:
    rig = await ready(**EVERYTHING)
    rig.wire.can_ask = False
    failure = failure_of(await rig.ask(call("demo_greet")))
    assert (failure["code"], failure["name"]) == (-32603, "unavailable")
