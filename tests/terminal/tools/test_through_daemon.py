"""The tools in another process than the panes, as the hub has them: the same answers, and a person is asked there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dari.app import proxy_tools
from dari.core.registry import Registry
from dari.core.scopes import ALL_SCOPES
from dari.daemon.caller_scopes import serve_own_process
from dari.daemon.client import DEFAULT_TIMEOUT_S, DaemonClient
from dari.daemon.server import DaemonServer
from dari.daemon.unix_socket import answers
from dari.mcp.server import Info, Server
from dari.terminal.daemon import cruxd_client
from dari.terminal.paths import CruxPaths
from dari.terminal.policy.config import Security
from dari.terminal.service import daemon_methods, remote_service
from dari.terminal.tools.resources import FollowedResources
from dari.terminal.tools.toolkit import TerminalTools
from tests.support.terminal_service import house_in
from tests.support.terminal_tools import Client


@asynccontextmanager
async def hub_of(tmp_path: Path, security: Security | None = None, timeout_s: float = 30.0) -> AsyncIterator[Client]:
    """A client of a server whose panes are behind the daemon's socket; `timeout_s` is what a plain call there gets."""
    place = CruxPaths(tmp_path / "crux" / "mcp.sock")
    async with house_in(tmp_path, security) as house:
        daemon = DaemonServer(place, daemon_methods(house.service))
        async with daemon, DaemonClient(place, "mcp", timeout_s=timeout_s) as ipc:
            registry = Registry()
            registry.add_tools(*TerminalTools(remote_service(ipc)).tools())
            hub = Client(Server(registry, Info(name="hub", version="1")))
            try:
                await hub.start()
                yield hub
            finally:
                await hub.close()


async def test_a_command_that_outlasts_the_daemons_time_is_running_with_its_id(tmp_path: Path) -> None:
    security = Security(command_timeout_ms=1500)
    async with hub_of(tmp_path, security, timeout_s=1.0) as hub:  # the client's own limit is the shorter one
        running = await hub.call("crux_execute_command", command="echo begun; sleep 1000")
        assert (running.get("status"), running.get("stdout")) == ("running", "begun"), running
        ended = await hub.call("crux_interrupt_command", command_id=running["command_id"])
        assert ended["exit_code"] == 130


def test_no_limit_around_a_tool_ends_before_the_one_inside(tmp_path: Path) -> None:
    place = CruxPaths(tmp_path / "crux" / "mcp.sock")
    ipc = cruxd_client(place, "mcp", starts=False)
    tools = [*TerminalTools(remote_service(ipc)).tools(), *proxy_tools(ipc)]
    waiting = [tool for tool in tools if {"timeout_ms", "timeout_s"} & tool.input_schema["properties"].keys()]
    assert len(waiting) >= 7
    assert {tool.name for tool in waiting if tool.timeout_s is not None} == set()
    assert min(tool.timeout_s for tool in tools if tool.timeout_s is not None) > DEFAULT_TIMEOUT_S


@pytest.mark.parametrize("agrees", [True, False])
async def test_the_hub_drives_panes_of_the_daemon_and_a_person_decides_not_its_client(
    agrees: bool, tmp_path: Path
) -> None:
    place = CruxPaths(tmp_path / "crux" / "mcp.sock")
    (tmp_path / "victim").touch()
    async with house_in(tmp_path) as house:
        daemon = DaemonServer(place, daemon_methods(house.service))
        async with daemon, cruxd_client(place, "mcp", starts=False) as ipc:
            registry = Registry()
            registry.add_tools(*TerminalTools(remote_service(ipc)).tools())
            server = Server(registry, Info(name="hub", version="1"))
            hub = Client(server, {"action": "accept", "content": {"run": True}})
            try:
                await hub.start()
                pane = await hub.call("crux_create_pane", direction="vertical", cwd=str(tmp_path))
                assert (pane["id"], pane["cwd"]) == ("1", str(tmp_path))
                done = await hub.call("crux_execute_command", command="echo far; false")
                assert (done["stdout"], done["exit_code"]) == ("far", 1)
                asked = await hub.call("crux_execute_command", command="rm victim")
                assert (asked["error"]["name"], hub.questions) == ("needs_approval", [])
                (entry,) = (await house.service.approvals.list_approvals()).waiting
                with serve_own_process(ALL_SCOPES):
                    house.hub.decide(entry.id, approves=agrees, by="somebody")
                again = await hub.call("crux_execute_command", command="rm victim")
                assert ("error" in again) is not agrees
                missing = await hub.call("crux_get_output", pane_id="404")
                assert missing["error"]["name"] == "not_found"
                running = await hub.call("crux_execute_command", command="sleep 1000", timeout_ms=50)
                assert running["status"] == "running"
                ended = await hub.call("crux_interrupt_command", command_id=running["command_id"])
                assert ended["exit_code"] == 130
            finally:
                await hub.close()
    assert (tmp_path / "victim").exists() is not agrees


async def test_panes_of_the_daemon_are_resources_of_the_hub_with_updates(tmp_path: Path) -> None:
    place = CruxPaths(tmp_path / "crux" / "mcp.sock")
    registry = Registry()
    ipc = DaemonClient(place, "mcp", keep=True)
    registry.add_tools(*TerminalTools(remote_service(ipc)).tools())
    FollowedResources(registry, lambda: remote_service(ipc), lambda: answers(place.socket))
    hub = Client(Server(registry, Info(name="hub", version="1")))
    try:
        await hub.start()
        assert (await hub.ask("resources/list"))["result"]["resources"] == [], "nothing runs, and nothing is started"
        async with house_in(tmp_path) as house:
            async with DaemonServer(place, daemon_methods(house.service)):
                await hub.call("crux_execute_command", command="echo first")
                listed = (await hub.ask("resources/list"))["result"]["resources"]
                assert [each["uri"] for each in listed] == ["crux://pane/1/scrollback", "crux://pane/1/state"]
                await hub.ask("resources/subscribe", uri="crux://pane/1/scrollback")
                await house.service.commands.execute("echo second")  # somebody else's doing
                note = await hub.noted("notifications/resources/updated")
                assert note["params"]["uri"] == "crux://pane/1/scrollback"
                read = await hub.ask("resources/read", uri="crux://pane/1/scrollback")
                assert "second" in read["result"]["contents"][0]["text"]
                hub.notes.clear()
                await house.service.panes.spawn_pane()
                await hub.noted("notifications/resources/list_changed")
                listed = (await hub.ask("resources/list"))["result"]["resources"]
                assert len(listed) == 4
                hub.notes.clear()
            await hub.noted("notifications/resources/list_changed")
        assert (await hub.ask("resources/list"))["result"]["resources"] == []
    finally:
        await hub.close()
        await ipc.close()
