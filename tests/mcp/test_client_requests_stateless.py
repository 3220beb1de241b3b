"""Questions without a session: the call ends with `input_required`, and the client calls again with the answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dari.core.content import PromptMessage, TextContent
from dari.core.context import ClientRequest, Context, Elicit, ElicitUrl, Roots, Sample
from dari.core.prompt import Prompt
from dari.core.resource import Resource
from dari.core.scopes import MCP_SCOPES, Grant
from tests.mcp.test_client_requests import FORM, SCHEMA, asking
from tests.support.demo_server import demo_server
from tests.support.mcp_server import Rig, request, text_of
from tests.support.wire import Json, call, stateless

EVERYTHING: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
MINJI = {"who": {"action": "accept", "content": {"name": "Minji"}}}


def asked(name: str, capabilities: Json | None = None, **params: Any) -> Json:
    message = request("tools/call", name=name, **params)
    return stateless(message, **(EVERYTHING if capabilities is None else capabilities))


async def first_round(rig: Rig, name: str = "demo_greet") -> str:
    return str((await rig.ask(asked(name)))["result"]["requestState"])


async def test_the_call_ends_with_its_questions_and_a_state() -> None:
    result = (await Rig().ask(asked("demo_greet")))["result"]
    assert result["resultType"] == "input_required"
    assert result["inputRequests"] == {
        "who": {"method": "elicitation/create", "params": {"message": "Who are you?", "requestedSchema": SCHEMA}}
    }
    assert result["requestState"]
    assert "content" not in result


async def test_the_retry_with_the_answer_is_complete() -> None:
    rig = Rig()
    reply = await rig.ask(asked("demo_greet", inputResponses=MINJI, requestState=await first_round(rig)))
    assert reply["result"]["resultType"] == "complete"
    assert text_of(reply) == "hello Minji"


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_may_refuse(action: str) -> None:
    rig = Rig()
    answers = {"who": {"action": action}}
    reply = await rig.ask(asked("demo_greet", inputResponses=answers, requestState=await first_round(rig)))
    assert text_of(reply) == f"nobody ({action})"


async def test_models_and_folders_are_asked_the_same_way() -> None:
    rig = Rig()
    thought = {"question-1": {"role": "assistant", "content": {"type": "text", "text": "4"}, "model": "m"}}
    folders = {"question-1": {"roots": [{"uri": "file:///a"}]}}
    for name, answers, said in (("demo_think", thought, "4"), ("demo_folders", folders, "file:///a")):
        state = await first_round(rig, name)
        assert text_of(await rig.ask(asked(name, inputResponses=answers, requestState=state))) == said


async def test_each_round_remembers_the_answers_before_it() -> None:
    rig = Rig()
    first = (await rig.ask(asked("demo_introduce")))["result"]
    assert list(first["inputRequests"]) == ["first"]
    answers: Json = {"first": {"action": "accept", "content": {"x": "one"}}}
    second = await rig.ask(asked("demo_introduce", inputResponses=answers, requestState=first["requestState"]))
    assert list(second["result"]["inputRequests"]) == ["second"]
    answers = {"second": {"action": "accept", "content": {"x": "two"}}}
    state = second["result"]["requestState"]
    assert text_of(await rig.ask(asked("demo_introduce", inputResponses=answers, requestState=state))) == "one and two"


async def test_a_question_that_was_not_answered_is_asked_again() -> None:
    rig = Rig()
    state = await first_round(rig)
    for params in ({"requestState": state}, {"requestState": state, "inputResponses": {"other": {}}}, {}):
        again = (await rig.ask(asked("demo_greet", **params)))["result"]
        assert list(again["inputRequests"]) == ["who"]


async def test_of_several_questions_only_the_open_ones_are_asked_again() -> None:
    rig = asking({"form": Elicit("?", SCHEMA), "folders": Roots()})
    first = (await rig.ask(asked("ask")))["result"]
    assert sorted(first["inputRequests"]) == ["folders", "form"]
    half = {"folders": {"roots": []}}
    second = (await rig.ask(asked("ask", inputResponses=half, requestState=first["requestState"])))["result"]
    assert list(second["inputRequests"]) == ["form"]
    rest = {"form": {"action": "accept", "content": {"name": "x"}}}
    state = second["requestState"]
    assert "'folders': {'roots': []}" in text_of(
        await rig.ask(asked("ask", inputResponses=rest, requestState=state))
    )  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [5, None, [], {}, {"action": "maybe"}, {"action": "accept"}, {"action": "accept", "content": {"name": 5}}],
)
async def test_an_answer_that_does_not_fit_is_refused(wrong: Any) -> None:
    rig = Rig()
    reply = await rig.ask(
        asked("demo_greet", inputResponses={"who": wrong}, requestState=await first_round(rig))
    )  # fmt: skip
    assert reply["error"]["code"] == -32602
    assert "'who'" in reply["error"]["message"]


async def test_a_choice_that_was_not_offered_is_refused() -> None:
    rig = asking({"form": Elicit("?", FORM)})
    answers = {"form": {"action": "accept", "content": {"color": "green"}}}
    state = await first_round(rig, "ask")
    assert (await rig.ask(asked("ask", inputResponses=answers, requestState=state)))["error"]["code"] == -32602


@pytest.mark.parametrize("junk", [[], 5, "x"])
async def test_answers_that_are_no_object_are_refused(junk: Any) -> None:
    assert (await Rig().ask(asked("demo_greet", inputResponses=junk)))["error"]["code"] == -32602


async def test_an_answer_that_is_no_utf_8_is_refused_and_no_bug() -> None:
    rig = Rig()
    message = json.dumps(asked("demo_greet", inputResponses={"who": "@"})).encode().replace(b"@", b"\xff")
    rig.server.receive(message, rig.wire)
    assert (await rig.next())["error"]["code"] == -32602


async def test_capabilities_that_are_no_utf_8_are_refused_and_no_bug() -> None:
    rig = Rig()
    message = json.dumps(asked("demo_greet", {"elicitation": "@"})).encode().replace(b"@", b"\xff")
    rig.server.receive(message, rig.wire)
    assert (await rig.next())["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("question", "capabilities", "missing"),
    [
        (Elicit("?", SCHEMA), {}, {"elicitation": {}}),
        (ElicitUrl("?", "https://x.test", "e"), {}, {"elicitation": {"url": {}}}),
        (ElicitUrl("?", "https://x.test", "e"), {"elicitation": {}}, {"elicitation": {"url": {}}}),
        (Sample([], 1), {"roots": {}}, {"sampling": {}}),
        (Roots(), {"elicitation": {}}, {"roots": {}}),
    ],
)
async def test_what_the_client_did_not_declare_is_a_fault_that_names_it(
    question: ClientRequest, capabilities: Json, missing: Json
) -> None:
    reply = await asking({"q": question}).ask(asked("ask", capabilities))
    assert reply["error"]["code"] == -32021
    assert reply["error"]["data"] == {"requiredCapabilities": missing}


async def test_an_answer_counts_even_when_the_retry_no_longer_declares_the_capability() -> None:
    rig = Rig()
    state = await first_round(rig)
    assert text_of(await rig.ask(asked("demo_greet", {}, inputResponses=MINJI, requestState=state))) == "hello Minji"


async def test_a_state_of_another_tool_is_refused() -> None:
    rig = Rig()
    state = await first_round(rig, "demo_think")
    for name in ("demo_greet", "demo_quick"):
        reply = await rig.ask(asked(name, arguments={"text": "x"} if name == "demo_quick" else {}, requestState=state))
        assert reply["error"]["code"] == -32602, "a tool that never asks refuses it too"


async def test_a_state_of_another_principal_is_refused() -> None:
    rig = Rig()
    state = await first_round(rig)
    rig.wire.grant = Grant("someone else", MCP_SCOPES)
    assert (await rig.ask(asked("demo_greet", requestState=state)))["error"]["code"] == -32602


async def test_a_state_of_another_server_is_refused() -> None:
    state = await first_round(Rig())
    reply = await Rig(demo_server()).ask(asked("demo_greet", requestState=state))
    assert reply["error"]["code"] == -32602
    assert "integrity" in reply["error"]["message"]


async def test_an_expired_state_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    monkeypatch.setattr("dari.mcp.client_requests.STATE_TTL_S", -5)
    state = await first_round(rig)
    reply = await rig.ask(asked("demo_greet", requestState=state))
    assert reply["error"]["code"] == -32602
    assert "expired" in reply["error"]["message"]
    assert reply["error"]["data"]["hint"]


async def test_prompts_and_resources_may_ask_too() -> None:
    async def letter(context: Context, given: dict[str, str]) -> list[PromptMessage]:
        answer = await context.elicit("Who?", SCHEMA, key="who")
        return [PromptMessage("user", TextContent(text=f"Dear {answer.content and answer.content['name']}"))]

    async def note(context: Context) -> str:
        answer = await context.elicit("Who?", SCHEMA, key="who")
        return f"for {answer.content and answer.content['name']}"

    rig = Rig()
    rig.server.registry.add_prompt(Prompt("asking", letter))
    rig.server.registry.add_resource(Resource("demo://asking", "asking", note))
    for method, target in (("prompts/get", {"name": "asking"}), ("resources/read", {"uri": "demo://asking"})):
        first = (await rig.ask(stateless(request(method, **target), **EVERYTHING)))["result"]
        assert first["resultType"] == "input_required"
        retry = request(method, **target, inputResponses=MINJI, requestState=first["requestState"])
        assert "Minji" in json.dumps(await rig.ask(stateless(retry, **EVERYTHING)))
        crossed = request("tools/call", name="demo_greet", requestState=first["requestState"])
        assert (await rig.ask(stateless(crossed, **EVERYTHING)))["error"]["code"] == -32602


async def test_a_call_in_a_session_never_ends_with_input_required() -> None:
    rig = Rig()
    await rig.agree(**EVERYTHING)
    assert (await rig.ask(call("demo_greet")))["method"] == "elicitation/create"
