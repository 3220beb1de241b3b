"""Calls passed on: results and errors as the server wrote them, progress, logs and cancellation on the way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import Raw
from msgspec.structs import replace

from dari.bridge.gateway.forward import _readable_error
from dari.core.context import LoggingMessage
from dari.core.scopes import MCP_GRANT, MCP_SCOPES, Grant
from dari.rpc.codec import decode_any
from tests.support.gateway import House, asked, called, demo, house, is_gone, lab, replied, seen, text_of
from tests.support.mcp_server import notification, request
from tests.support.wire import MemoryWire, stateless

pytestmark = pytest.mark.local_mcp

ERAS = ["handshake", "stateless"]


async def test_results_are_passed_on_with_every_field(tmp_path: Path) -> None:
    async with house(tmp_path, lab()) as home:
        await home.names()
        wire = await home.client()
        expected = {"content": [{"type": "text", "text": "3"}], "structuredContent": {"sum": 3}}
        assert (await replied(wire, called("lab__add", a=1, b=2)))["result"] == expected
        modern = (await home.ask(asked("lab__add", {}, arguments={"a": 1, "b": 2})))["result"]
        assert modern == {"resultType": "complete", **expected}


async def test_a_failing_tool_fails_as_it_says(tmp_path: Path) -> None:
    async with house(tmp_path, lab()) as home:
        await home.names()
        result = (await home.ask(asked("lab__fail")))["result"]
        assert result["isError"] is True
        assert result["content"] == [{"type": "text", "text": "it did not work"}]


async def test_the_structured_error_of_a_server_is_kept_where_no_client_checks_it(tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    tools.write_text(
        json.dumps([{"name": "fail_in_structure", "inputSchema": {"type": "object"}, "outputSchema": schema}])
    )
    async with house(tmp_path, lab(env={"LAB_TOOLS": str(tools)})) as home:
        await home.names()
        result = (await home.ask(asked("lab__fail_in_structure")))["result"]
        assert result["isError"] is True and "structuredContent" not in result
        assert result["_meta"] == {"lab": 1, "dari/structuredContent": {"reason": "no sum"}}
        assert result["content"] == [{"type": "text", "text": '{"reason": "no sum"}'}]


def test_a_structured_error_is_readable_also_with_null_for_its_meta() -> None:
    told = Raw(b'{"isError":true,"content":[{"type":"text","text":"why"}],"structuredContent":{"n":1},"_meta":null}')
    assert decode_any(bytes(_readable_error(told))) == {
        "isError": True,
        "content": [{"type": "text", "text": "why"}],
        "_meta": {"dari/structuredContent": {"n": 1}},
    }


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25"])
async def test_an_error_of_the_server_is_the_clients_with_code_message_and_data(tmp_path: Path, version: str) -> None:
    async with house(tmp_path, lab()) as home:
        await home.names()
        wire = await home.client(version)
        refusal = {"code": -32123, "message": "not today", "data": {"x": 1}}
        assert (await replied(wire, called("lab__refuse")))["error"] == refusal
        assert (await home.ask(asked("lab__refuse")))["error"] == refusal


async def test_arguments_are_checked_before_the_server_sees_them(tmp_path: Path) -> None:
    async with house(tmp_path, lab(env={"LAB_LOG": str(tmp_path / "lab.log")})) as home:
        await home.names()
        result = (await home.ask(asked("lab__add", arguments={"a": "one", "b": 2})))["result"]
        assert result["_meta"]["dari/error"]["name"] == "invalid_input"
        assert "call add" not in home.place.noted()


async def test_null_and_absent_arguments_are_an_empty_object(tmp_path: Path) -> None:
    async with house(tmp_path, lab()) as home:
        await home.names()
        assert text_of(await home.ask(asked("lab__greet"))) == "hello"
        assert text_of(await home.ask(asked("lab__greet", arguments=None))) == "hello"


async def test_what_stands_in_the_way_is_told_by_the_table_of_errors(tmp_path: Path) -> None:
    async with house(tmp_path, lab()) as home:
        await home.names()
        result = (await home.ask(asked("lab__die")))["result"]
        assert result["_meta"]["dari/error"]["name"] == "unavailable"
        old = await home.client("2024-11-05")
        assert (await replied(old, called("lab__die")))["error"]["code"] == -32603


async def test_a_principal_without_the_scope_is_refused(tmp_path: Path) -> None:
    async with house(tmp_path, lab()) as home:
        await home.names()
        home.wire.grant = Grant("reader", MCP_SCOPES - {"control"})
        result = (await home.ask(asked("lab__greet")))["result"]
        assert result["_meta"]["dari/error"]["name"] == "insufficient_scope"


@pytest.mark.parametrize("server", ERAS)
@pytest.mark.parametrize("client", ERAS)
async def test_progress_and_logs_reach_the_caller_before_the_result(tmp_path: Path, server: str, client: str) -> None:
    async with house(tmp_path, demo(era=server)) as home:
        await home.names()
        wire = await home.client()
        message = request("tools/call", 7, name="demo__demo_count", arguments={"to": 2})
        if client == "stateless":
            message = stateless(message)
            message["params"]["_meta"] |= {"io.modelcontextprotocol/logLevel": "info"}
        message["params"].setdefault("_meta", {})["progressToken"] = "mine"
        wire.send(message)
        heard = []
        while "result" not in (one := await wire.messages.get()):
            heard.append(one)
        assert text_of(one) == "counted to 2"
        progress = [each["params"] for each in heard if each["method"] == "notifications/progress"]
        assert progress == [
            {"progressToken": "mine", "progress": step, "total": 2, "message": f"step {step}"} for step in (1, 2)
        ]
        logs = [each["params"] for each in heard if each["method"] == "notifications/message"]
        assert logs == [{"level": "info", "data": {"number": step}, "logger": "demo"} for step in (1, 2)]


async def test_a_client_that_wants_no_progress_hears_none(tmp_path: Path) -> None:
    async with house(tmp_path, demo()) as home:
        await home.names()
        reply = await home.ask(asked("demo__demo_count", arguments={"to": 3}))
        assert text_of(reply) == "counted to 3"
        assert home.wire.messages.empty()


async def test_a_log_of_no_call_goes_to_those_who_asked_for_logs(tmp_path: Path) -> None:
    async with house(tmp_path, lab()) as home:
        await home.names()
        curious, other = await home.client(), await home.client()
        await curious.ask(request("logging/setLevel", level="notice"))
        (mount,) = home.front.gateway.mounts
        mount.upstream.logs.publish(LoggingMessage("info", "small", "lab"))
        mount.upstream.logs.publish(LoggingMessage("warning", "careful", "lab"))
        heard = await curious.messages.get()
        assert heard["params"] == {"level": "warning", "data": "careful", "logger": "lab"}
        assert other.messages.empty()


@pytest.mark.parametrize("client", ERAS)
async def test_cancelling_a_call_cancels_it_at_the_server(tmp_path: Path, client: str) -> None:
    gate = str(tmp_path / "never")
    async with house(tmp_path, lab(env={"LAB_LOG": str(tmp_path / "lab.log")})) as home:
        await home.names()
        await home.agree()
        message = request("tools/call", 5, name="lab__wait", arguments={"until": gate, "steps": 1})
        home.send(stateless(message) if client == "stateless" else message)
        await seen(lambda: "call wait" in home.place.noted())
        home.send(notification("notifications/cancelled", requestId=5, reason="enough"))
        await seen(lambda: any(line.startswith("cancelled") for line in home.place.noted()))


async def test_a_client_that_leaves_takes_its_own_server_along(tmp_path: Path) -> None:
    async with house(tmp_path, lab(isolation="per-client")) as home:
        await home.names()
        first, second = await home.client(), await home.client()
        mine = text_of(await replied(first, called("lab__pid")))
        assert text_of(await replied(first, called("lab__pid", 2))) == mine
        assert text_of(await replied(second, called("lab__pid"))) != mine
        assert first.session is not None
        home.server.close_session(first.session)
        await seen(lambda: is_gone(mine))


async def test_what_was_approved_for_a_session_ends_with_it(tmp_path: Path) -> None:
    async with house(tmp_path, lab(tools={"confirm": ["greet"]})) as home:
        await home.names()
        wire = await home.client()
        approvals = home.bridge.approvals
        await replied(wire, called("lab__greet"))
        (question,) = approvals.pending()
        assert question.who == "mcp:test"
        approvals.approve(question.id, by="me", for_session=True)
        assert text_of(await replied(wire, called("lab__greet", 2))) == "hello"
        assert wire.session is not None
        key = wire.session.key
        assert approvals.is_granted(key, "lab", "greet")
        home.server.close_session(wire.session)
        assert not approvals.is_granted(key, "lab", "greet")


def without_session(home: House, client: str) -> MemoryWire:
    """A client of the stateless era over HTTP: its token is all that its requests share."""
    wire = MemoryWire(home.server)
    wire.session, wire.grant = None, replace(MCP_GRANT, client=client)
    return wire


async def test_what_was_approved_for_a_client_without_a_session_ends_with_its_token(tmp_path: Path) -> None:
    async with house(tmp_path, lab(tools={"confirm": ["greet"]})) as home:
        await home.names()
        approvals = home.bridge.approvals
        first, second = without_session(home, "one"), without_session(home, "two")
        for wire in (first, second):
            await wire.ask(asked("lab__greet"))
            approvals.approve(approvals.pending()[0].id, by="me", for_session=True)
            assert text_of(await wire.ask(asked("lab__greet"))) == "hello"
        home.server.end_access(first.grant)
        assert [each.who for each in approvals.grants()] == ["mcp@two"]
        assert text_of(await second.ask(asked("lab__greet"))) == "hello"
        assert "needs the approval of a person" in text_of(await first.ask(asked("lab__greet")))


async def test_an_approval_that_a_client_has_not_used_ends_with_its_token(tmp_path: Path) -> None:
    """A token that is made later under the same name does not find it."""
    async with house(tmp_path, lab(tools={"confirm": ["greet"]})) as home:
        await home.names()
        approvals = home.bridge.approvals
        wire = without_session(home, "one")
        await wire.ask(asked("lab__greet"))
        approvals.approve(approvals.pending()[0].id, by="me")
        home.server.end_access(wire.grant)
        assert "needs the approval of a person" in text_of(await wire.ask(asked("lab__greet")))


async def test_a_server_and_a_waiting_call_of_a_client_without_a_session_end_with_its_token(tmp_path: Path) -> None:
    async with house(tmp_path, lab(isolation="per-client")) as home:
        await home.names()
        wire = without_session(home, "one")
        mine = text_of(await wire.ask(asked("lab__pid")))
        assert (await wire.ask(asked("lab__elicit")))["result"]["resultType"] == "input_required"
        assert len(home.front.gateway.calling.parking) == 1
        home.server.end_access(wire.grant)
        await seen(lambda: is_gone(mine))
        assert len(home.front.gateway.calling.parking) == 0


async def test_who_called_stands_in_the_audit_log(tmp_path: Path) -> None:
    async with house(tmp_path, lab()) as home:
        await home.names()
        wire = await home.client()
        await replied(wire, called("lab__greet"))
        assert home.bridge.audit is not None
    (day,) = (tmp_path / "state" / "audit").glob("*.jsonl")
    assert '"who":"mcp:test"' in day.read_text()
