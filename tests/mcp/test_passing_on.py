"""Results and questions of other servers, passed on: as they are, in both eras."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from msgspec import Raw

from dari.core.content import RawResult
from dari.core.context import Context, Relayed
from dari.core.events import ListKind
from dari.core.prompt import Prompt, PromptArgument
from dari.core.registry import Offer, Registry
from dari.core.resource import Resource, ResourceTemplate
from dari.core.tool import Tool, tool, typed_tool
from dari.mcp.inflight import to_handshake_result, to_stateless_result
from dari.mcp.server import Info, Server
from tests.support.mcp_server import Rig, answer, refusal, request
from tests.support.wire import Json, stateless

FORM: Json = {"message": "?", "requestedSchema": {"type": "object"}, "odd": [1]}
EVERYTHING: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}}


def rig_of(registry: Registry) -> Rig:
    return Rig(Server(registry, Info(name="x", version="1")))


def relaying(body: Json, method: str = "elicitation/create", capability: str = "elicitation") -> Rig:
    @tool()
    async def relay(context: Context) -> str:
        """Ask for another server."""
        return json.dumps((await context.ask({"q": Relayed(method, capability, body)}))["q"])

    registry = Registry()
    registry.add_tools(typed_tool(relay))
    return rig_of(registry)


async def test_a_question_is_relayed_in_place_with_every_field_and_its_answer_comes_back_whole() -> None:
    rig = relaying(FORM)
    await rig.agree(**EVERYTHING)
    rig.send(request("tools/call", name="relay"))
    question = await rig.next()
    assert (question["method"], question["params"]) == ("elicitation/create", FORM)
    rig.send(answer(question, action="accept", content={"any": 1}, odd={"x": None}))
    said = (await rig.next())["result"]["content"][0]["text"]
    assert json.loads(said) == {"action": "accept", "content": {"any": 1}, "odd": {"x": None}}


async def test_a_question_is_relayed_by_a_retry_too() -> None:
    rig = relaying(FORM)
    first = (await rig.ask(stateless(request("tools/call", name="relay"), **EVERYTHING)))["result"]
    assert first["inputRequests"] == {"q": {"method": "elicitation/create", "params": FORM}}
    retry = request("tools/call", name="relay", inputResponses={"q": {"x": 1}}, requestState=first["requestState"])
    said = (await rig.ask(stateless(retry, **EVERYTHING)))["result"]["content"][0]["text"]
    assert json.loads(said) == {"x": 1}


@pytest.mark.parametrize(
    ("body", "capability", "declared", "missing"),
    [
        ({"mode": "url", "url": "https://x"}, "elicitation", {"elicitation": {}}, {"elicitation": {"url": {}}}),
        ({"messages": [], "tools": [{}]}, "sampling", {"sampling": {}}, {"sampling": {"tools": {}}}),
        ({}, "sampling", {"elicitation": {}}, {"sampling": {}}),
    ],
)
async def test_what_the_client_did_not_declare_is_not_asked(
    body: Json, capability: str, declared: Json, missing: Json
) -> None:
    rig = relaying(body, "x/y", capability)
    reply = await rig.ask(stateless(request("tools/call", name="relay"), **declared))
    assert reply["error"]["data"] == {"requiredCapabilities": missing}
    await rig.agree(**declared)
    refused = (await rig.ask(request("tools/call", name="relay")))["result"]["_meta"]["dari/error"]
    assert refused["name"] == "unavailable"


async def test_an_error_of_the_client_keeps_its_words() -> None:
    rig = relaying(FORM)
    await rig.agree(**EVERYTHING)
    rig.send(request("tools/call", name="relay"))
    rig.send(refusal(await rig.next()))
    error = (await rig.next())["result"]["_meta"]["dari/error"]
    assert error["message"].endswith("the client answered elicitation/create with: the person said no")


def offering(body: bytes) -> Rig:
    async def give(*_: Any) -> RawResult:
        return RawResult(Raw(body))

    registry = Registry()
    registry.offer(
        "a",
        Offer(
            tools=[Tool("t", "", "read", {}, {"type": "object"}, {}, give, shown={"name": "t", "odd": 1})],
            prompts=[Prompt("p", give, arguments=[PromptArgument("a", required=True)], shown={"name": "p", "odd": 2})],
            resources=[Resource("u:1", "u", give, shown={"uri": "u:1", "odd": 3})],
            templates=[
                ResourceTemplate("v:{x}", "v", give, shown={"uriTemplate": "v:{x}", "odd": 4}, relay_completion=give)
            ],
        ),
    )
    return rig_of(registry)


CALLS = [
    request("tools/call", name="t"),
    request("prompts/get", name="p", arguments={"a": "1", "b": "2"}),
    request("resources/read", uri="u:1"),
    request("resources/read", uri="v:9"),
    request("completion/complete", ref={"type": "ref/resource", "uri": "v:{x}"}, argument={"name": "x", "value": ""}),
]


@pytest.mark.parametrize("message", CALLS, ids=lambda message: str(message["method"]))
async def test_a_result_is_passed_on_unread(message: Json) -> None:
    rig = offering(b' {"odd" : {"deep":[1,2.50]}, "content":[]}'.strip())
    await rig.agree()
    assert (await rig.ask(message))["result"] == {"odd": {"deep": [1, 2.5]}, "content": []}
    modern = (await rig.ask(stateless(message)))["result"]
    assert modern.pop("resultType") == "complete"
    if message["method"] == "resources/read":
        assert (modern.pop("ttlMs"), modern.pop("cacheScope")) == (0, "private")
    assert modern == {"odd": {"deep": [1, 2.5]}, "content": []}


async def test_what_a_server_of_the_stateless_era_says_about_its_result_stays() -> None:
    rig = offering(b'{"contents":[],"ttlMs":5000,"cacheScope":"public","resultType":"complete"}')
    result = (await rig.ask(stateless(CALLS[2])))["result"]
    assert result == {"contents": [], "ttlMs": 5000, "cacheScope": "public", "resultType": "complete"}


@pytest.mark.parametrize("body", [b"{}", b"{ }", b'{ "a":1}', b'{"x":{"resultType":"no"}}'])
def test_every_result_can_be_marked(body: bytes) -> None:
    marked = json.loads(to_stateless_result(body))
    assert marked == {"resultType": "complete", **json.loads(body)}


def test_a_client_of_the_handshake_era_sees_nothing_of_the_other() -> None:
    info = "io.modelcontextprotocol/serverInfo"
    modern = {"resultType": "complete", "ttlMs": 1, "cacheScope": "x", "a": [1], "_meta": {info: {}, "mine": 1}}
    assert json.loads(to_handshake_result(json.dumps(modern).encode())) == {"a": [1], "_meta": {"mine": 1}}
    assert to_handshake_result(b'{"_meta":{"%b":1},"resultType":"complete"}' % info.encode()) == b"{}"
    kept = b'{"structuredContent":{"resultType":"mine"}, "ttlMs":1}'
    assert to_handshake_result(kept) == kept


async def test_lists_show_every_field() -> None:
    rig = offering(b"{}")
    for kind, key in (("tools", "tools"), ("prompts", "prompts"), ("resources", "resources")):
        assert (await rig.ask(stateless(request(f"{kind}/list"))))["result"][key][0]["odd"]
    templates = (await rig.ask(stateless(request("resources/templates/list"))))["result"]["resourceTemplates"]
    assert templates == [{"uriTemplate": "v:{x}", "odd": 4}]


async def test_lists_and_unknown_names_wait_for_what_is_on_its_way() -> None:
    registry = Registry()
    arrived = asyncio.Event()
    asked: list[ListKind] = []

    def settle(kind: ListKind) -> Any:
        asked.append(kind)
        return None if arrived.is_set() else arrived.wait()

    registry.settle = settle
    rig = rig_of(registry)
    for number, message in enumerate((request("tools/list"), *CALLS[:3])):
        rig.send(stateless({**message, "id": number}))
    assert rig.wire.messages.empty()
    registry.offer("a", _offer())
    arrived.set()
    replies = {reply["id"]: reply for reply in [await rig.next() for _ in range(4)]}
    assert replies[0]["result"]["tools"] == [{"name": "t", "odd": 1}]
    assert all(replies[number]["result"]["ok"] for number in (1, 2, 3))
    assert asked == ["tools", "tools", "prompts", "resources"]
    unknown = await rig.ask(stateless(request("tools/call", name="no")))
    assert unknown["error"]["code"] == -32602


def _offer() -> Offer:
    async def give(*_: Any) -> RawResult:
        return RawResult(Raw(b'{"ok":true}'))

    return Offer(
        tools=[Tool("t", "", "read", {}, None, {}, give, shown={"name": "t", "odd": 1})],
        prompts=[Prompt("p", give, shown={"name": "p"})],
        resources=[Resource("u:1", "u", give, shown={"uri": "u:1"})],
    )


async def test_a_subscription_waits_for_the_other_server_and_is_given_back() -> None:
    registry = Registry()
    placed: dict[str, asyncio.Future[None]] = {}
    heard: list[tuple[str, bool]] = []

    def watch(uri: str, wanted: bool) -> Any:
        heard.append((uri, wanted))
        if not wanted:
            return None
        placed[uri] = asyncio.get_running_loop().create_future()
        return placed[uri]

    registry.watches.append(watch)
    rig = rig_of(registry)
    await rig.agree()
    rig.send(request("resources/subscribe", uri="u:1"))
    assert rig.wire.messages.empty()
    placed["u:1"].set_result(None)
    assert (await rig.next())["result"] == {}
    rig.send(request("resources/subscribe", uri="u:2"))
    placed["u:2"].set_exception(ConnectionError("gone"))
    assert (await rig.next())["error"]
    assert rig.wire.session is not None
    assert rig.wire.session.subscriptions == {"u:1"}
    rig.server.close_session(rig.wire.session)
    assert heard == [("u:1", True), ("u:2", True), ("u:2", False), ("u:1", False)]


async def test_a_listener_is_acknowledged_once_it_is_sure_to_hear() -> None:
    registry = Registry()
    placed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    heard: list[bool] = []

    def watch(uri: str, wanted: bool) -> Any:
        heard.append(wanted)
        return placed if wanted else None

    registry.watches.append(watch)
    rig = rig_of(registry)
    rig.send(stateless(request("subscriptions/listen", notifications={"resourceSubscriptions": ["u:1"]})))
    registry.resource_updated("u:1")
    assert rig.wire.messages.empty()
    placed.set_result(None)
    assert (await rig.next())["method"] == "notifications/subscriptions/acknowledged"
    assert (await rig.next())["method"] == "notifications/resources/updated"
    rig.server.end_listening()
    await rig.next()
    assert heard == [True, False]


async def test_the_end_of_a_session_is_told_with_its_key() -> None:
    rig = rig_of(Registry())
    ended: list[str] = []
    rig.server.on_session_end.append(lambda session: ended.append(session.key))
    assert rig.wire.session is not None
    rig.server.close_session(rig.wire.session)
    assert ended == [rig.wire.session.key]
