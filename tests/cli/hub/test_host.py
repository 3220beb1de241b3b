"""Who hosts the bridge: one at a time, handed over on request, gone when nobody needs it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dari.bridge.service import Bridge
from dari.cli.hub import daemon
from dari.cli.hub.client import ask_to_finish
from dari.cli.hub.daemon import host, read_idle_s, take_over
from dari.cli.hub.paths import BridgePaths
from dari.core.approval_service import ApprovalService
from dari.core.approvals import ProposedCall
from dari.daemon.client import DaemonClient
from dari.daemon.lifetime import Lifetime
from dari.daemon.lock import FileLock, lock_holder
from dari.daemon.stub import make_stub
from dari.daemon.unix_socket import answers
from dari.errors import Conflict, Denied, InvalidInput, NotFound
from tests.cli.hub.processes import daemon_pid, demo_host
from tests.support.hub_socket import Commands, calling, make_server
from tests.support.processes import wait_for_end
from tests.support.waiting import until


@asynccontextmanager
async def hosted_here(
    place: BridgePaths, commands: Commands | None = None, kind: str = "daemon", idle_s: float | None = None
) -> AsyncIterator[daemon.Hosted]:
    bridge = Bridge(place.state_dir, protected=place.protected)
    run = (commands or Commands()).run
    lifetime = Lifetime(idle_s or 0)
    async with host(place, bridge, run, make_server, lifetime=lifetime, kind=kind) as hosted, lifetime:  # type: ignore[arg-type]
        yield hosted


async def test_a_host_holds_its_place_and_leaves_nothing_but_locks(run_dir: Path) -> None:
    place = BridgePaths(run_dir / "run")
    async with hosted_here(place):
        assert lock_holder(place.lock) == os.getpid()
        with pytest.raises(Conflict, match=f"pid {os.getpid()}"):
            async with hosted_here(place):
                pass
    assert lock_holder(place.lock) is None
    assert sorted(os.listdir(place.run_dir)) == ["daemon.pid", "host.lock"]


async def test_a_host_waits_for_the_one_before_to_be_gone(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, commands = BridgePaths(run_dir / "run"), Commands()
    first = hosted_here(place, commands)
    await first.__aenter__()
    async with calling(place.run_dir, "wait"):
        await commands.entered.wait()
        leaving = asyncio.create_task(first.__aexit__(None, None, None))  # waits for its command
        await until(lambda: not (answers(place.cli_socket)))
        entered = asyncio.Event()

        async def take() -> None:
            async with hosted_here(place):
                entered.set()

        tries = asyncio.Event()
        try_acquire = FileLock.try_acquire
        left = [5]

        def counted(lock: FileLock) -> bool:
            left[0] -= 1
            if left[0] == 0:
                tries.set()
            return try_acquire(lock)

        monkeypatch.setattr(FileLock, "try_acquire", counted)
        second = asyncio.create_task(take())
        await tries.wait()
        assert not entered.is_set()
        commands.release.set()
        await leaving
        await second


async def test_sockets_of_a_killed_host_are_no_obstacle(home: Path) -> None:
    with demo_host() as pid:
        os.kill(pid, signal.SIGKILL)
        wait_for_end(pid)
    place = BridgePaths()
    assert place.cli_socket.exists()
    async with hosted_here(place), calling(place.run_dir, "say", "", "", "0"):
        pass


async def test_taking_over_ends_a_daemon_first(home: Path) -> None:
    with demo_host() as pid:
        place = BridgePaths()
        assert await take_over(place) is True
        wait_for_end(pid, 0.0)  # it has ended when this returns, not some time later
        async with hosted_here(place, kind="hub"):
            assert lock_holder(place.lock) == os.getpid()
    assert await take_over(place) is False


async def test_a_hub_is_not_taken_over(home: Path) -> None:
    with demo_host("hub") as pid:
        with pytest.raises(Conflict, match=f"dari up.*pid {pid}"):
            await take_over(BridgePaths())
        assert daemon_pid() == pid


async def test_one_who_asks_for_the_end_waits_for_running_commands(run_dir: Path) -> None:
    place, commands = BridgePaths(run_dir / "run"), Commands()
    async with hosted_here(place, commands) as hosted, calling(place.run_dir, "wait") as caller:
        await commands.entered.wait()
        asking = asyncio.create_task(asyncio.to_thread(ask_to_finish, str(place.run_dir), 20))
        await hosted.lifetime.stopped()
        commands.release.set()
        await caller.frames()
    assert not asking.done()
    hosted.cli_socket.release_finishers()  # in a process of its own, the end of the process does that
    assert await asking == os.getpid()


async def test_the_control_socket_ends_a_host_too(run_dir: Path) -> None:
    place = BridgePaths(run_dir / "run")
    async with hosted_here(place) as hosted:
        client = DaemonClient(place, "cli")
        assert await client.call("system.shutdown") == {"status": "shutting_down"}
        await hosted.lifetime.stopped()
        await client.close()


def proposed(tool: str, arguments: object) -> ProposedCall:
    return ProposedCall(server="fs", tool=tool, arguments=arguments, who="cli", session="s")


async def test_programs_see_and_decide_over_the_control_socket(run_dir: Path) -> None:
    place = BridgePaths(run_dir / "run")
    async with hosted_here(place) as hosted:
        client = DaemonClient(place, "cli")
        control = make_stub(ApprovalService, client)
        call = asyncio.create_task(hosted.bridge.approvals.ask(proposed("delete", {"path": "/x"})))
        second = asyncio.create_task(hosted.bridge.approvals.ask(proposed("move", {})))
        await asyncio.sleep(0)
        first, other = (await control.list_approvals()).waiting
        assert (first.server, first.tool, first.arguments) == ("fs", "delete", {"path": "/x"})
        assert (await control.approve(first.id)).id == first.id
        assert (await call).state == "approved"
        await control.deny(other.id, reason="not today")
        with pytest.raises(Denied, match="fs/move"):
            await second
        with pytest.raises(NotFound):
            await control.approve("nothing")
        await client.close()


async def test_an_agents_token_looks_but_does_not_decide(run_dir: Path) -> None:
    place = BridgePaths(run_dir / "run")
    async with hosted_here(place):
        client = DaemonClient(place, "mcp")
        control = make_stub(ApprovalService, client)
        assert (await control.list_approvals()).waiting == []
        for decision in (control.approve("1"), control.deny("1")):
            with pytest.raises(Denied):
                await decision
        await client.close()


async def test_a_daemon_whose_run_directory_was_removed_ends(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody could find it any more."""
    monkeypatch.setattr(daemon, "LOOK_S", 0.01)
    place = BridgePaths(run_dir / "run")
    async with hosted_here(place) as hosted:
        shutil.rmtree(place.run_dir)
        await hosted.lifetime.stopped()
    assert not place.run_dir.exists()


async def test_without_work_a_daemon_is_done_after_its_time(run_dir: Path) -> None:
    async with hosted_here(BridgePaths(run_dir / "run"), idle_s=0.05) as hosted:
        await hosted.lifetime.stopped()


class Looks:
    """Tells when somebody has looked for work far longer than the time without it."""

    def __init__(self) -> None:
        self.is_busy = True
        self.enough = asyncio.Event()
        self._left = 40

    def __call__(self) -> bool:
        self._left -= 1
        if self._left == 0:
            self.enough.set()
        return self.is_busy


async def test_work_keeps_a_daemon_and_so_does_the_wish_that_it_stays() -> None:
    looks = Looks()
    async with Lifetime(0.02, looks) as lifetime:
        ended = asyncio.create_task(lifetime.stopped())
        await looks.enough.wait()
        assert not ended.done()
        lifetime.is_kept = True
        looks.is_busy, looks._left = False, 40
        looks.enough.clear()
        await looks.enough.wait()
        assert not ended.done()
        lifetime.is_kept = False
        await ended


async def test_a_visitor_is_work(run_dir: Path) -> None:
    place, commands = BridgePaths(run_dir / "run"), Commands()
    async with hosted_here(place, commands, idle_s=0.02) as hosted:
        is_busy, looks = hosted.lifetime.is_busy, Looks()
        hosted.lifetime.is_busy = lambda: looks() and is_busy()
        async with calling(place.run_dir, "wait"):
            finished = asyncio.create_task(hosted.lifetime.stopped())
            await looks.enough.wait()
            assert not finished.done()
        await finished


async def test_a_visitor_may_ask_the_host_to_stay(run_dir: Path) -> None:
    place = BridgePaths(run_dir / "run")
    async with hosted_here(place, idle_s=1000) as hosted:
        async with calling(place.run_dir, "say", "", "", "0") as caller:
            await caller.frames()
        assert not hosted.lifetime.is_kept
        async with calling(place.run_dir, "say", "", "", "0", stays=True) as caller:
            await caller.frames()
        assert hosted.lifetime.is_kept


@pytest.mark.parametrize("text", ["0", "-1", "soon", "nan", "inf"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="DARI_BRIDGE_IDLE_S"):
        read_idle_s(text)


def test_the_usual_time_is_half_an_hour() -> None:
    assert read_idle_s("") == 1800
    assert read_idle_s("0.5") == 0.5
