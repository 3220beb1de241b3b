"""Issue 5, "What it must show" 4: daemons, clients and programs that end at the worst time leave nothing behind."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from dari.daemon.client import DaemonClient
from dari.daemon.unix_socket import answers
from dari.errors import DariError
from dari.terminal.service import remote_service
from tests.support.cruxd import Served, below, cruxd, is_running
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

# Programs that do not want to end with their terminal: each writes its pid to a file.
STUBBORN = {
    "ignores": "trap '' HUP TERM INT; echo $$ > {0}; while :; do sleep 600; done",
    "nohup": "nohup sh -c 'echo $$ > {0}; exec sleep 600' >/dev/null 2>&1 &",
    "session": "setsid sh -c 'echo $$ > {0}; exec sleep 600' >/dev/null 2>&1 &",
    "orphan": "(setsid sh -c 'trap \"\" HUP; echo $$ > {0}; exec sleep 600' >/dev/null 2>&1 &)",
    "nameless": "(env -i setsid sh -c 'echo $$ > {0}; exec sleep 600' >/dev/null 2>&1 &)",
    "stopped": "sh {0}.sh &",
}


async def start_stubborn(served: Served, home: Path, *names: str) -> dict[str, int]:
    files = {name: home / name for name in names}
    (home / "stopped.sh").write_text(f"echo $$ > {home}/stopped; kill -STOP $$\n")
    for name, file in files.items():
        pane = await served.service.panes.spawn_pane(cwd=str(home))
        wait_s = 0.2 if name == "ignores" else 10
        await served.service.commands.execute(STUBBORN[name].format(file), pane_id=pane.id, timeout_s=wait_s)
    await until(lambda: all(file.exists() and file.read_text().strip() for file in files.values()))
    pids = {name: int(file.read_text()) for name, file in files.items()}
    assert all(map(is_running, pids.values()))
    return pids


@pytest.mark.timeout(120)
async def test_a_killed_daemon_leaves_no_program_and_no_socket_and_the_next_one_starts(home: Path) -> None:
    async with cruxd() as first:
        pids = await start_stubborn(first, home, *STUBBORN)
        everybody = below(first.pid) | set(pids.values())
        async with DaemonClient(first.place, "cli") as client:  # one that starts no daemon
            waiting = asyncio.create_task(remote_service(client).commands.wait_for("never", timeout_s=60))
            await asyncio.sleep(0)
            first.kill()
            with pytest.raises(DariError):
                await asyncio.wait_for(waiting, 15)
        await until(lambda: not any(map(is_running, everybody)) and not answers(first.place.socket))
        sockets = (first.place.mcp_socket, first.place.socket)
        assert not any(socket.exists() for socket in sockets)
    async with cruxd() as second:
        assert second.pid != first.pid
        assert (await second.service.commands.execute("echo back")).stdout == "back"
        assert all(socket.is_socket() for socket in sockets)
        left = below(second.pid)
    await until(lambda: not any(map(is_running, left)))
    assert not any(socket.exists() for socket in sockets)


async def test_a_daemon_that_was_killed_without_a_pane_is_followed_by_the_next(home: Path) -> None:
    async with cruxd() as first:
        first.kill()
        await until(lambda: not answers(first.place.socket))
        assert first.place.mcp_socket.exists()  # there was no keeper yet, so nobody removed it
    async with cruxd() as second:
        assert (await second.service.commands.execute("echo back")).stdout == "back"


@pytest.mark.timeout(120)
async def test_clients_and_programs_that_end_leave_the_daemon_as_it_was(home: Path) -> None:
    async with cruxd() as served:
        service = served.service
        await service.commands.execute("true")

        # A client that is killed while its command runs: the command goes on, the connection does not.
        before = (await service.server.info()).clients
        crux = [sys.executable, "-m", "dari.cli.crux.main", "exec", "echo begun; sleep 600"]
        caller = await asyncio.create_subprocess_exec(*crux, stdout=asyncio.subprocess.PIPE)
        assert caller.stdout is not None
        assert await caller.stdout.readline() == b"begun\n"
        caller.send_signal(signal.SIGKILL)
        await caller.wait()
        for _ in range(1000):
            if (await service.server.info()).clients <= before:
                break
            await asyncio.sleep(0.01)
        else:
            raise AssertionError("the connection of a dead client is still counted")
        while (await service.screen.get_process()).name != "sleep":  # noqa: ASYNC110 (the shell has yet to start it)
            await asyncio.sleep(0.01)
        await service.commands.send_keys("C-c")
        assert (await service.commands.execute("echo next")).stdout == "next"

        # A shell that exits: its pane says so, and the others live on.
        other = await service.panes.spawn_pane(cwd=str(home))
        ended = await service.commands.execute("echo bye; exit 3", pane_id=other.id)
        assert (ended.exit_code, ended.stdout.splitlines()[0]) == (3, "bye")
        assert await service.commands.wait_exit(other.id, 10) == 3
        refused = await asyncio.gather(service.commands.execute("true", pane_id=other.id), return_exceptions=True)
        assert isinstance(refused[0], DariError)
        assert (await service.commands.execute("echo alive", pane_id="1")).stdout == "alive"

        # A program that ignores SIGHUP ends with its pane all the same.
        pids = await start_stubborn(served, home, "ignores", "nohup", "session", "stopped")
        for pane in (await service.panes.list_panes()).panes[-4:]:
            await service.panes.close_pane(pane.id, force=True)
        assert not any(map(is_running, pids.values()))
        assert (await service.commands.execute("echo alive", pane_id="1")).stdout == "alive"
