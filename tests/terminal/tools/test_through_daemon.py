"""The tools in another process than the panes, as the hub has them: the same answers, and a person is asked there."""

from __future__ import annotations

from pathlib import Path

import pytest

from dari.core.registry import Registry
from dari.ipc.daemon import Daemon
from dari.mcp.server import Info, Server
from dari.terminal.daemon import Place, client
from dari.terminal.service import daemon_methods, remote_service
from dari.terminal.tools.toolkit import TerminalTools
from tests.terminal.service.house import house_in
from tests.terminal.tools.rig import Client


@pytest.mark.parametrize("agrees", [True, False])
async def test_the_hub_drives_panes_of_the_daemon_and_asks_its_own_client(agrees: bool, tmp_path: Path) -> None:
    place = Place(tmp_path / "crux" / "mcp.sock")
    (tmp_path / "victim").touch()
    async with house_in(tmp_path) as house:
        daemon = Daemon("cruxd", daemon_methods(house.service), run_dir=place.run_dir)
        async with daemon, client(place, "mcp", starts=False) as ipc:
            registry = Registry()
            registry.add_tools(*TerminalTools(remote_service(ipc)).tools())
            server = Server(registry, Info(name="hub", version="1"))
            hub = Client(server, {"action": "accept", "content": {"run": agrees}})
            try:
                await hub.start()
                pane = await hub.call("crux_create_pane", direction="vertical", cwd=str(tmp_path))
                assert (pane["id"], pane["cwd"]) == ("1", str(tmp_path))
                done = await hub.call("crux_execute_command", command="echo far; false")
                assert (done["stdout"], done["exit_code"]) == ("far", 1)
                asked = await hub.call("crux_execute_command", command="rm victim")
                assert len(hub.questions) == 1
                assert ("error" in asked) is not agrees
                missing = await hub.call("crux_get_output", pane_id="404")
                assert missing["error"]["name"] == "not_found"
                running = await hub.call("crux_execute_command", command="sleep 1000", timeout_ms=50)
                assert running["status"] == "running"
                ended = await hub.call("crux_interrupt_command", command_id=running["command_id"])
                assert ended["exit_code"] == 130
            finally:
                await hub.close()
    assert (tmp_path / "victim").exists() is not agrees
