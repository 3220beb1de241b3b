"""A person decides on what the policy does not: asked through the client, in both eras."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dari.errors import NeedsApproval
from dari.terminal.policy.config import Security
from dari.terminal.tools.toolkit import build_server
from tests.support.terminal_service import house_in
from tests.support.terminal_tools import Client, client_in
from tests.support.wire import MemoryWire, call, stateless


async def test_a_command_that_the_person_agrees_to_runs(tmp_path: Path) -> None:
    (tmp_path / "victim").touch()
    async with client_in(tmp_path, answer={"action": "accept", "content": {"run": True}}) as client:
        done = await client.call("crux_execute_command", command="rm victim")
        assert done["exit_code"] == 0
        (question,) = client.questions
        assert "rm victim" in question["params"]["message"]
    assert not (tmp_path / "victim").exists()


@pytest.mark.parametrize(
    "answer", [{"action": "decline"}, {"action": "cancel"}, {"action": "accept", "content": {"run": False}}]
)
async def test_a_command_that_the_person_refuses_does_not_run(answer: Any, tmp_path: Path) -> None:
    (tmp_path / "victim").touch()
    async with client_in(tmp_path, answer=answer) as client:
        refused = await client.call("crux_send_text", text="rm victim\n")
        assert refused["error"]["name"] == "denied"
        assert (await client.call("crux_execute_command", command="echo next"))["stdout"] == "next"
    assert (tmp_path / "victim").exists()


async def test_a_client_that_cannot_ask_gets_a_hint(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        for tool, given in (
            ("crux_execute_command", {"command": "sudo true"}),
            ("crux_send_keys", {"keys": "sudo true<Enter>"}),
            ("crux_create_pane", {"command": "sudo true"}),
        ):
            error = (await client.call(tool, **given))["error"]
            assert error["name"] == "needs_approval"
            assert "crux approvals approve" in error["hint"]


async def test_the_form_of_a_client_that_the_person_has_not_named_approves_nothing(tmp_path: Path) -> None:
    (tmp_path / "victim").touch()
    yes = {"action": "accept", "content": {"run": True}}
    async with client_in(tmp_path, security=Security(elicitation_clients=("another",)), answer=yes) as client:
        error = (await client.call("crux_execute_command", command="rm victim"))["error"]
        assert error["name"] == "needs_approval"
        assert client.questions == []
    assert (tmp_path / "victim").exists()


async def test_a_denied_command_is_not_even_asked_about(tmp_path: Path) -> None:
    async with client_in(tmp_path, answer={"action": "accept", "content": {"run": True}}) as client:
        error = (await client.call("crux_execute_command", command="rm -rf /"))["error"]
        assert error["name"] == "denied"
        assert client.questions == []


async def test_in_the_stateless_era_the_question_is_a_result_and_the_retry_runs_it(tmp_path: Path) -> None:
    (tmp_path / "victim").touch()
    async with house_in(tmp_path, Security(elicitation_clients=("test",))) as house:
        wire = MemoryWire(build_server(house.service, house.multiplexer, 0))
        asked = stateless(call("crux_execute_command", command="rm victim"), elicitation={})
        asked["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] = {"name": "test", "version": "1"}
        first = await _result(wire, asked)
        assert first["resultType"] == "input_required"
        ((key, question),) = first["inputRequests"].items()
        assert "rm victim" in question["params"]["message"]
        assert (tmp_path / "victim").exists()
        asked["params"] |= {
            "requestState": first["requestState"],
            "inputResponses": {key: {"action": "accept", "content": {"run": True}}},
        }
        second = await _result(wire, {**asked, "id": 2})
        assert second["structuredContent"]["exit_code"] == 0
    assert not (tmp_path / "victim").exists()


async def _result(wire: MemoryWire, message: dict[str, Any]) -> dict[str, Any]:
    wire.send(message)
    while True:
        reply = await asyncio.wait_for(wire.messages.get(), 30)
        if reply.get("id") == message["id"]:
            return dict(reply["result"])


async def test_a_command_that_quotes_the_id_of_another_call_does_not_have_that_one_approved(tmp_path: Path) -> None:
    async with house_in(tmp_path, Security(elicitation_clients=("test",))) as house:
        approvals = house.service.approvals
        with pytest.raises(NeedsApproval) as held:
            await approvals.obtain("crux:pane/send", {}, "run: rm -rf precious", "")
        wanted = held.value.approval_id
        client = Client(
            build_server(house.service, house.multiplexer, 0), {"action": "accept", "content": {"run": True}}
        )
        await client.start()
        done = await client.call("crux_execute_command", command=f'echo > "{tmp_path}/.vim/x (approval {wanted})"')
        assert "(approval " in client.questions[0]["params"]["message"], done
        assert house.hub.queue.get(wanted).state == "waiting"
        await client.close()
        approvals.close()
