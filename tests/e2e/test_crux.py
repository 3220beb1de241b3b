"""The terminal from outside: who starts it, and what is left when something dies."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys

import pytest
from mcp import Client as SdkClient
from mcp import StdioServerParameters, stdio_client

from dari.errors import DariError
from dari.terminal.daemon import cruxd_client as ipc_client
from dari.terminal.service import remote_service
from tests.support.crux_processes import BRIDGE, CRUXD, bridge, cruxd, gone, new_home
from tests.support.wire import HttpWire, initialize

pytestmark = pytest.mark.e2e


async def test_the_claude_desktop_entry_of_the_design_works_as_written() -> None:
    with new_home() as home:
        words = StdioServerParameters(
            command=BRIDGE[0], args=[*BRIDGE[1:], "--socket", "~/.crux/mcp.sock"], env=home.env
        )
        with (home.path / "stderr").open("w") as log:
            async with SdkClient(stdio_client(words, errlog=log)) as client:
                names = [tool.name for tool in (await client.list_tools()).tools]
                assert "crux_execute_command" in names
                done = await client.call_tool("crux_execute_command", {"command": "echo from claude; (exit 3)"})
                assert done.structured_content
                assert (done.structured_content["exit_code"], done.structured_content["stdout"]) == (3, "from claude")
        assert home.daemon_pid is not None, "panes live on"
        assert oct((home.path / ".crux").stat().st_mode & 0o777) == "0o700"
        assert oct(home.place.mcp_socket.stat().st_mode & 0o777) == "0o600"


async def test_panes_live_on_when_the_last_client_leaves_and_the_next_finds_them() -> None:
    with new_home() as home:
        async with bridge(home) as first:
            pane = await first.client.call("crux_create_pane", name="kept")
            await first.client.call("crux_execute_command", command="export KEPT=yes")
            assert await first.end() == (0, "")
        async with bridge(home) as second:
            (found,) = (await second.client.call("crux_list_panes"))["panes"]
            assert (found["pid"], found["name"]) == (pane["pid"], "kept")
            assert (await second.client.call("crux_execute_command", command="echo $KEPT"))["stdout"] == "yes"


async def test_many_bridges_at_once_start_one_daemon() -> None:
    with new_home() as home:
        async with bridge(home, starts=False) as a, bridge(home, starts=False) as b, bridge(home, starts=False) as c:
            await asyncio.gather(*(each.client.start() for each in (a, b, c)))
            await a.client.call("crux_create_pane", name="shared")
            for each in (b, c):
                (pane,) = (await each.client.call("crux_list_panes"))["panes"]
                assert pane["name"] == "shared"


async def test_a_killed_daemon_leaves_no_process_and_the_next_call_starts_it_anew() -> None:
    with new_home() as home:
        async with cruxd(home) as daemon, bridge(home) as bridged:
            pane = await bridged.client.call("crux_create_pane")
            await bridged.client.call("crux_execute_command", command="trap '' HUP; sleep 1000", timeout_ms=200)
            running = await bridged.client.call("crux_get_running_process")
            daemon.process.send_signal(signal.SIGKILL)
            await gone(pane["pid"], running["pid"])
            assert (await bridged.client.call("crux_list_panes"))["panes"] == []
            assert (await bridged.client.call("crux_execute_command", command="echo new"))["stdout"] == "new"
            code, said = await bridged.end()
            assert code == 0 and said.startswith("warning: the terminal's daemon ended")


async def test_a_daemon_that_is_killed_in_a_call_fails_it_and_announces_every_list_with_the_next() -> None:
    with new_home() as home:
        async with cruxd(home) as daemon, bridge(home) as bridged:
            bridged.client.send_initialized()
            await bridged.client.call("crux_create_pane")
            calling = asyncio.create_task(
                bridged.client.call("crux_execute_command", command="echo begun; sleep 1000", timeout_ms=60_000)
            )
            async with bridge(home) as watching:
                assert (await watching.client.call("crux_wait_for_output", pattern="^begun$", mark=0))["matched"]
            daemon.process.send_signal(signal.SIGKILL)
            failed = await calling
            assert failed["error"]["name"] == "unavailable"
            assert "the terminal's daemon ended during the call" in failed["error"]["message"]
            assert (await bridged.client.call("crux_list_panes"))["panes"] == []
            assert bridged.client.announced == {"tools", "prompts", "resources"}


async def test_a_server_that_a_person_has_ended_stays_so_until_the_next_call() -> None:
    with new_home() as home:
        async with cruxd(home) as daemon, bridge(home) as bridged:
            assert await daemon.stop() == 0
            assert bridged.process.stderr
            assert b"ended" in await bridged.process.stderr.readline()
            assert home.daemon_pid is None
            assert (await bridged.client.call("crux_list_panes"))["panes"] == []
            assert home.daemon_pid is not None


async def test_without_a_start_a_lost_daemon_is_told_and_one_that_comes_back_is_found() -> None:
    with new_home() as home:
        async with cruxd(home) as daemon, bridge(home, "--no-start") as bridged:
            await daemon.stop()
            refused = await bridged.client.call("crux_list_panes")
            assert "nobody answers" in refused["error"]["message"]
            async with cruxd(home):
                assert (await bridged.client.call("crux_list_panes"))["panes"] == []


async def test_a_second_daemon_is_refused_with_the_pid_of_the_first() -> None:
    with new_home() as home:
        async with cruxd(home) as daemon:
            second = await asyncio.to_thread(
                subprocess.run, [*CRUXD, "serve"], env=home.env, capture_output=True, text=True, timeout=40
            )
            assert second.returncode == 1
            assert f"pid {daemon.process.pid}" in second.stderr
            async with bridge(home) as bridged:
                await bridged.client.call("crux_list_panes")


async def test_a_stopped_daemon_ends_its_panes_and_removes_its_sockets() -> None:
    with new_home() as home:
        async with cruxd(home) as daemon, bridge(home) as bridged:
            pane = await bridged.client.call("crux_create_pane")
            assert await daemon.stop() == 0
            await gone(pane["pid"])
        assert not home.place.mcp_socket.exists()
        assert not home.place.socket.exists()
        assert not list(home.path.glob(".crux/*.token"))


async def test_a_client_that_is_killed_in_a_call_leaves_the_command_running() -> None:
    command = "echo begun; read line; echo got ${#line} letters"
    with new_home() as home:
        async with cruxd(home):
            async with bridge(home) as bridged:
                await bridged.client.call("crux_create_pane")
                calling = asyncio.create_task(
                    bridged.client.call("crux_execute_command", command=command, timeout_ms=60_000)
                )
                async with bridge(home) as watching:
                    assert (await watching.client.call("crux_wait_for_output", pattern="^begun$", mark=0))["matched"]
                bridged.process.kill()
                with pytest.raises(EOFError):
                    await calling
            async with bridge(home) as other:
                state = await other.client.call("crux_get_pane_state")
                assert state["running_command"] == command
                await other.client.call("crux_send_text", text="word\n")
                waited = await other.client.call(
                    "crux_wait_for_output", pattern="got 4 letters", timeout_ms=30_000, mark=0
                )
                assert waited["matched"]


async def test_the_daemon_ends_by_itself_when_no_pane_and_no_client_is_left() -> None:
    with new_home() as home:
        async with cruxd(home, "--idle", "3") as daemon:
            async with bridge(home) as bridged:
                await bridged.client.call("crux_create_pane")
            async with bridge(home) as bridged:
                (pane,) = (await bridged.client.call("crux_list_panes"))["panes"]
                assert daemon.process.returncode is None, "a pane keeps it alive"
                await bridged.client.call("crux_close_pane", pane_id=pane["id"])
            assert await daemon.process.wait() == 0


async def test_a_bridge_that_may_not_start_a_daemon_says_so() -> None:
    with new_home() as home:
        async with bridge(home, "--no-start", starts=False) as bridged:
            code, errors = await bridged.end()
        assert code == 2
        assert "mcp.sock" in errors and "hint:" in errors
        assert home.daemon_pid is None


def test_the_bridge_loads_little_but_the_standard_library() -> None:
    with new_home() as home:
        words = [sys.executable, "-X", "importtime", *BRIDGE, "--no-start", "--socket", str(home.path / "none")]
        ran = subprocess.run(words, env=home.env, capture_output=True, text=True, timeout=40)
        loaded = {
            line.rpartition("|")[2].strip() for line in ran.stderr.splitlines() if line.startswith("import time:")
        }
        for heavy in ("asyncio", "socket", "subprocess", "pathlib", "msgspec", "json", "argparse"):
            assert heavy not in loaded
        ours = {name for name in loaded if name.startswith("dari.") and not name.startswith("dari.cli")}
        daemon = {f"dari.daemon.{name}" for name in ("paths", "unix_socket")}
        pipe = {"dari.rpc", "dari.rpc.framing", "dari.rpc.plain_json", "dari.version"}
        assert ours == {"dari.daemon", "dari.home", "dari.terminal", "dari.terminal.paths", *daemon, *pipe}


async def test_the_pane_backend_is_served_over_ipc_with_the_words_of_the_design() -> None:
    with new_home() as home:
        async with cruxd(home), ipc_client(home.place, "cli", starts=False) as ipc:
            terminal = remote_service(ipc)
            pane = await terminal.panes.spawn_pane("vertical", str(home.path))
            assert [each.id for each in (await terminal.panes.list_panes()).panes] == [pane.id]
            assert (await terminal.commands.execute("echo over ipc")).stdout == "over ipc"
            assert (await terminal.panes.resize_pane(pane.id, 88, 22)).success
            assert (await terminal.panes.focus_pane(pane.id)).success
            assert (await terminal.commands.send_text("echo te''xt")).success
            assert (await terminal.commands.send_keys("Enter")).success
            assert (await terminal.commands.wait_for("^text$", timeout_s=30, since=0)).matched
            assert "over ipc" in (await terminal.screen.get_output()).text
            assert (await terminal.screen.get_cwd()).cwd == str(home.path)
            assert (await terminal.screen.get_process()).name == "bash"
            assert len((await terminal.screen.screenshot()).image) > 100
            saved = await terminal.sessions.save_session("ipc")
            assert (await terminal.panes.close_pane(pane.id)).success
            assert (await terminal.sessions.restore_session(saved.session_id)).success
            raw = await ipc.call("crux:pane/list")
            assert isinstance(raw, dict) and raw["panes"][0]["id"] == pane.id
            with pytest.raises(DariError) as refused:
                await terminal.commands.execute("sudo id")
            assert refused.value.name == "needs_approval"


async def test_kill_server_ends_everything_and_is_not_for_agents() -> None:
    with new_home() as home:
        async with cruxd(home) as daemon:
            async with ipc_client(home.place, "mcp", starts=False) as agent:
                with pytest.raises(DariError) as refused:
                    await agent.call("crux:server/kill")
                assert refused.value.name == "insufficient_scope"
            async with ipc_client(home.place, "cli", starts=False) as person:
                terminal = remote_service(person)
                pane = await terminal.panes.spawn_pane()
                assert (await terminal.server.info()).pid == daemon.process.pid
                assert (await terminal.server.kill()).success
            assert await daemon.process.wait() == 0
            await gone(pane.pid)


async def test_a_session_is_restored_by_the_next_daemon() -> None:
    with new_home() as home:
        async with cruxd(home) as daemon, bridge(home) as bridged:
            await bridged.client.call("crux_create_pane", name="code", cwd="/usr")
            await bridged.client.call("crux_create_pane", name="logs", direction="vertical")
            await bridged.client.call("crux_execute_command", command="export KEPT='in the shell'", pane_id="code")
            await bridged.client.call("crux_execute_command", command="seq 1 300", pane_id="logs")
            await bridged.client.call("crux_save_session", name="mine")
            before = (await bridged.client.call("crux_list_panes"))["panes"]
            assert await daemon.stop() == 0
        async with cruxd(home), bridge(home) as bridged:
            assert (await bridged.client.call("crux_restore_session", session_id="mine"))["success"]
            after = (await bridged.client.call("crux_list_panes"))["panes"]
            for name in ("id", "name", "cwd", "cols", "rows", "top", "left", "is_focused"):
                assert [pane[name] for pane in after] == [pane[name] for pane in before]
            echoed = await bridged.client.call("crux_execute_command", command="echo $KEPT", pane_id="code")
            assert echoed["stdout"] == "in the shell"
            lines = (await bridged.client.call("crux_get_scrollback", pane_id="logs"))["text"].split("\n")
            assert [line for line in lines if line.isdigit()] == [str(number) for number in range(1, 301)]


async def test_http_asks_for_the_token_and_listens_on_loopback_only_when_asked() -> None:
    with new_home() as home:
        async with cruxd(home, "--http", "0") as daemon:
            assert daemon.url.startswith("http://127.0.0.1:")
            port = int(daemon.url.split(":")[2].split("/")[0])
            for token, status in (("", 401), ("wrong", 401), (home.place.http_token.read_text().strip(), 200)):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                assert (await HttpWire(reader, writer, token).post(initialize())).status == status
                writer.transport.abort()
            assert oct(home.place.http_token.stat().st_mode & 0o777) == "0o600"
        async with cruxd(home) as daemon:
            assert daemon.url == ""


async def test_settings_come_from_crux_toml() -> None:
    with new_home() as home:
        config = home.path / "crux.toml"
        config.write_text('[mcp.security]\nallowed_commands = ["echo"]\nmax_panes = 1\napproval_wait_ms = 0\n')
        config.chmod(0o600)
        async with cruxd(home, "--config", str(config)), bridge(home) as bridged:
            assert (await bridged.client.call("crux_execute_command", command="echo fine"))["stdout"] == "fine"
            refused = await bridged.client.call("crux_execute_command", command="ls")
            assert refused["error"]["name"] == "needs_approval"
            assert (await bridged.client.call("crux_create_pane"))["error"]["name"] == "conflict"
        config.write_text("[mcp.security]\nmax_pane = 1\n")
        wrong = await asyncio.to_thread(
            subprocess.run, [*CRUXD, "--config", str(config)], env=home.env, capture_output=True, text=True, timeout=40
        )
        assert wrong.returncode == 1
        assert "max_panes" in wrong.stderr
