"""A person's word for clients that cannot ask one: questions wait in the daemon, and no tool can answer them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dari.core.scopes import MCP_GRANT
from dari.daemon.stub import exposed_methods
from dari.daemon.tokens import MCP
from dari.terminal.policy.config import Security
from dari.terminal.service import daemon_methods
from dari.terminal.tools.toolkit import TerminalTools, build_server
from tests.support.terminal_service import house_in
from tests.support.terminal_tools import Client


async def test_a_client_that_cannot_ask_runs_what_a_person_approves_while_it_waits(tmp_path: Path) -> None:
    (tmp_path / "victim").touch()
    async with house_in(tmp_path, Security(approval_wait_ms=20_000)) as house:
        client = Client(build_server(house.service, house.multiplexer, 0))
        await client.start()
        calling = asyncio.create_task(client.call("crux_execute_command", command=f"rm {tmp_path}/victim"))
        api = house.service.approvals
        async with asyncio.timeout(15):
            while not (waiting := (await api.list_approvals()).waiting):  # noqa: ASYNC110 (the api tells nobody)
                await asyncio.sleep(0.01)
        assert f"rm {tmp_path}/victim" in waiting[0].message and (tmp_path / "victim").exists()
        await api.answer(waiting[0].id, True, "somebody")
        assert (await calling)["exit_code"] == 0
        assert not (tmp_path / "victim").exists()
        assert (await api.list_approvals()).waiting == []
        (answered,) = (await api.list_approvals()).answered
        assert (answered.state, answered.by) == ("approved", "somebody")
        await client.close()


async def test_an_approval_is_for_one_call_with_that_text(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.touch()
    two.touch()
    async with house_in(tmp_path, Security(approval_wait_ms=0)) as house:
        client = Client(build_server(house.service, house.multiplexer, 0))
        await client.start()
        api = house.service.approvals
        refused = (await client.call("crux_execute_command", command=f"rm {one}"))["error"]
        (waiting,) = (await api.list_approvals()).waiting
        assert (
            refused["name"] == "needs_approval" and waiting.id in refused["message"] and waiting.id in refused["hint"]
        )
        await api.answer(waiting.id, True)
        assert (await client.call("crux_execute_command", command=f"rm {two}"))["error"]["name"] == "needs_approval"
        assert (await client.call("crux_execute_command", command=f"rm {one}"))["exit_code"] == 0
        assert (await client.call("crux_execute_command", command=f"rm {one}"))["error"]["name"] == "needs_approval"
        assert two.exists() and not one.exists()
        await client.close()


async def test_a_refusal_reaches_the_agent_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "victim").touch()
    async with house_in(tmp_path, Security(approval_wait_ms=0)) as house:
        client = Client(build_server(house.service, house.multiplexer, 0))
        await client.start()
        api = house.service.approvals
        await client.call("crux_send_text", text=f"rm {tmp_path}/victim\n")
        await api.answer((await api.list_approvals()).waiting[0].id, False, reason="keep it")
        error = (await client.call("crux_send_text", text=f"rm {tmp_path}/victim\n"))["error"]
        assert error["name"] == "denied" and "keep it" in error["message"]
        await client.close()
    assert (tmp_path / "victim").exists()


async def test_no_tool_takes_an_approval_as_an_argument_and_no_agent_may_answer(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        for tool in TerminalTools(house.service).tools():
            names = {name.lower() for name in tool.input_schema["properties"]}
            assert not [name for name in names if "appro" in name or name in ("yes", "confirm", "force_run")], tool.name
            assert "approv" not in tool.name
        scopes = {method.name: method.scope for method in daemon_methods(house.service)}
        assert exposed_methods(house.service.approvals)
        for name in ("crux:approval/answer", "crux:pane/write", "crux:attach/type", "crux:server/kill"):
            assert scopes[name] == "admin"
        assert "admin" not in MCP.scopes and "admin" not in MCP_GRANT.scopes
