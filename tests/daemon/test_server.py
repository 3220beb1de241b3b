"""The life of a daemon: its files, its limits, who may connect, and its end."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import stat
from pathlib import Path

import pytest
import uvloop

from dari.daemon.client import DaemonClient
from dari.daemon.lock import lock_holder
from dari.daemon.methods import Method
from dari.daemon.paths import DaemonPaths
from dari.daemon.server import DaemonLimits, DaemonServer
from dari.daemon.tokens import Principal, read_token
from dari.daemon.unix_socket import answers
from dari.errors import Conflict, Denied, Failed, InvalidInput
from tests.support.daemons import CountedPeers, Demo, code, demo_client, demo_daemon, session, until_idle, wire


def modes(run_dir: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.lstat().st_mode) for path in run_dir.iterdir()}


async def test_every_file_of_a_running_daemon_is_private(run_dir: Path) -> None:
    run_dir.chmod(0o755)
    async with demo_daemon(run_dir):
        assert modes(run_dir) == dict.fromkeys(
            ("demo.sock", "daemon.pid", "app.token", "cli.token", "mcp.token"), 0o600
        )
        assert stat.S_IMODE(run_dir.stat().st_mode) == 0o700
        assert lock_holder(run_dir / "daemon.pid") == os.getpid()


async def test_a_stopped_daemon_leaves_only_its_free_lock(run_dir: Path) -> None:
    async with demo_daemon(run_dir):
        pass
    assert os.listdir(run_dir) == ["daemon.pid"]
    assert lock_holder(run_dir / "daemon.pid") is None


async def test_a_second_daemon_for_one_run_dir_is_refused_and_disturbs_nothing(run_dir: Path) -> None:
    async with demo_daemon(run_dir), session(run_dir) as connection:
        with pytest.raises(Conflict) as refused:
            await demo_daemon(run_dir).start()
        assert str(run_dir / "demo.sock") in refused.value.message
        assert str(os.getpid()) in refused.value.message
        assert (await connection.call("system.ping"))["result"] == {"pong": True}
        async with session(run_dir):
            pass


async def test_a_socket_that_answers_is_never_taken_over(run_dir: Path) -> None:
    other = run_dir / "other"
    async with demo_daemon(run_dir) as daemon:
        with pytest.raises(Conflict) as refused:
            await demo_daemon(other, socket=daemon.paths.socket).start()
        assert str(daemon.paths.socket) in refused.value.message
        assert lock_holder(other / "daemon.pid") is None
        assert answers(daemon.paths.socket)


async def test_a_daemon_that_is_on_its_way_out_is_waited_for(run_dir: Path) -> None:
    leaving = asyncio.Event()

    async def on_stop() -> None:
        leaving.set()
        await asyncio.get_running_loop().run_in_executor(None, os.listdir, run_dir)

    first = demo_daemon(run_dir, on_stop=on_stop)
    await first.start()
    async with asyncio.TaskGroup() as group:
        group.create_task(first.stop())
        await leaving.wait()
        async with demo_daemon(run_dir):
            assert answers(run_dir / "demo.sock")


async def test_what_a_killed_daemon_left_is_replaced(run_dir: Path) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(run_dir / "demo.sock"))
    (run_dir / "daemon.pid").write_text("99999999\n")
    (run_dir / "cli.token").write_text("old")
    async with demo_daemon(run_dir), session(run_dir):
        pass


async def test_a_daemon_can_be_started_again_with_tokens_of_its_own(run_dir: Path) -> None:
    daemon = demo_daemon(run_dir)
    tokens: set[str] = set()
    for _ in range(3):
        async with daemon, session(run_dir) as connection:
            for old in tokens:
                assert code(await connection.call("system.handshake", protocol_version=1, token=old)) == 1
            tokens.add(read_token(run_dir / "cli.token"))
    await daemon.stop()
    assert len(tokens) == 3


async def test_a_start_that_fails_leaves_nothing_behind(run_dir: Path) -> None:
    (run_dir / "mcp.token").mkdir()
    with pytest.raises(Failed):
        await demo_daemon(run_dir).start()
    assert sorted(os.listdir(run_dir)) == ["daemon.pid", "mcp.token"]
    assert lock_holder(run_dir / "daemon.pid") is None


async def test_a_run_dir_that_is_a_link_is_refused(run_dir: Path) -> None:
    (run_dir / "real").mkdir()
    (run_dir / "link").symlink_to(run_dir / "real")
    with pytest.raises(InvalidInput):
        await demo_daemon(run_dir / "link").start()


async def test_a_socket_outside_the_run_dir_needs_a_directory_of_ours(run_dir: Path) -> None:
    shared = run_dir / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    with pytest.raises(InvalidInput):
        await demo_daemon(run_dir / "run", socket=shared / "s").start()
    async with demo_daemon(run_dir / "run", socket=run_dir / "own" / "s") as daemon:
        client = DaemonClient(daemon.paths, "cli")
        assert await client.call("system.ping") == {"pong": True}


async def test_a_foreign_uid_is_dropped_without_a_reply(run_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    peers = CountedPeers(uid=os.geteuid() + 1)
    async with demo_daemon(run_dir, peer_credentials=peers), wire(run_dir) as connection:
        connection.send({"jsonrpc": "2.0", "id": 1, "method": "system.ping"})
        assert await connection.ended()
    assert peers.count == 1
    assert "event=foreign_peer" in caplog.text


async def test_a_peer_that_the_kernel_does_not_know_is_dropped_too(run_dir: Path) -> None:
    async with demo_daemon(run_dir, peer_credentials=CountedPeers(error=OSError())), wire(run_dir) as connection:
        assert await connection.ended()


async def test_one_connection_too_many_is_told_so_until_another_one_leaves(run_dir: Path) -> None:
    async with demo_daemon(run_dir, limits=DaemonLimits(max_connections=1)):
        async with session(run_dir), wire(run_dir) as second:
            assert code(await second.receive()) == 3
            assert await second.ended()
        await until_idle()
        async with session(run_dir):
            pass


async def test_a_caller_that_never_says_hello_gives_its_place_up(run_dir: Path) -> None:
    async with demo_daemon(run_dir, limits=DaemonLimits(max_connections=1)), wire(run_dir) as silent:
        await until_idle()
        async with session(run_dir) as caller:
            assert "result" in await caller.call("system.ping")
        assert await silent.ended()


async def test_a_caller_that_was_silent_for_long_gives_its_place_up(run_dir: Path) -> None:
    limits = DaemonLimits(max_connections=1, evict_idle_s=0.0)
    async with demo_daemon(run_dir, limits=limits), session(run_dir) as silent:
        assert "result" in await silent.call("system.ping")
        async with session(run_dir) as caller:
            assert "result" in await caller.call("system.ping")
        assert await silent.ended()


async def test_a_daemon_whose_listener_is_gone_ends_with_an_error(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = DaemonServer(DaemonPaths("demo", run_dir), [])
    begun = asyncio.Event()
    start = daemon.start

    async def started() -> None:
        await start()
        begun.set()

    monkeypatch.setattr(daemon, "start", started)
    serving = asyncio.create_task(daemon.serve())
    await begun.wait()
    assert daemon._listener is not None
    daemon._listener._sock.shutdown(socket.SHUT_RDWR)
    with pytest.raises(Failed):
        await serving
    assert not daemon.paths.socket.exists()


async def test_principals_of_a_daemons_own_replace_the_usual_ones(run_dir: Path) -> None:
    guest = Principal("guest", ("look",))
    methods = [Method("demo.look", "look", Demo().echo)]
    async with DaemonServer(DaemonPaths("demo", run_dir), methods, (guest,)), session(run_dir, "guest") as connection:
        assert "result" in await connection.call("demo.look")
        assert code(await connection.call("system.ping")) == 9
        assert not (run_dir / "cli.token").exists()


def test_two_methods_of_one_name_are_a_mistake(run_dir: Path) -> None:
    with pytest.raises(ValueError, match=r"system\.ping"):
        DaemonServer(DaemonPaths("demo", run_dir), [Method("system.ping", "read", Demo().echo)])


async def test_the_service_ends_before_the_next_daemon_may_start(run_dir: Path) -> None:
    holders: list[int | None] = []

    async def on_stop() -> None:
        holders.append(lock_holder(run_dir / "daemon.pid"))

    async with demo_daemon(run_dir, on_stop=on_stop):
        pass
    assert holders == [os.getpid()]


async def test_idle_connections_are_closed_at_once_and_running_calls_finish(run_dir: Path) -> None:
    demo = Demo()
    daemon = demo_daemon(run_dir, demo)
    await daemon.start()
    async with session(run_dir) as idle, session(run_dir) as busy:
        busy.send({"jsonrpc": "2.0", "id": 1, "method": "demo.hold"})
        await demo.entered.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(daemon.stop())
            assert await idle.ended()
            demo.release.set()
            assert (await busy.receive())["result"] == {"held": True}
            assert await busy.ended()
    assert not demo.was_cancelled


async def test_a_call_that_does_not_end_is_cancelled_within_the_grace_period(run_dir: Path) -> None:
    demo = Demo()
    daemon = demo_daemon(run_dir, demo, limits=DaemonLimits(grace_s=0.1))
    await daemon.start()
    async with session(run_dir) as busy:
        busy.send({"jsonrpc": "2.0", "id": 1, "method": "demo.hold"})
        await demo.entered.wait()
        await daemon.stop()
        assert await busy.ended()
    assert demo.was_cancelled
    assert lock_holder(run_dir / "daemon.pid") is None


async def test_a_service_that_does_not_stop_cannot_keep_the_daemon(run_dir: Path) -> None:
    async with demo_daemon(run_dir, limits=DaemonLimits(grace_s=0.05), on_stop=asyncio.Event().wait):
        pass
    assert lock_holder(run_dir / "daemon.pid") is None


async def test_a_run_dir_that_vanished_does_not_break_the_stop(run_dir: Path) -> None:
    async with demo_daemon(run_dir / "gone"):
        shutil.rmtree(run_dir / "gone")


async def test_files_of_a_successor_survive_our_end(run_dir: Path) -> None:
    async with demo_daemon(run_dir):
        (run_dir / "cli.token").rename(run_dir / "old")
        (run_dir / "cli.token").write_text("of another")
    assert (run_dir / "cli.token").read_text() == "of another"


def test_a_daemon_runs_on_uvloop_as_well(run_dir: Path) -> None:
    async def main() -> object:
        demo = Demo()
        async with demo_daemon(run_dir, demo), session(run_dir) as leaver, demo_client(run_dir, keep=True) as client:
            leaver.send({"jsonrpc": "2.0", "id": 1, "method": "demo.watch"})
            await demo.entered.wait()
            leaver.writer.transport.abort()
            await demo.left.wait()
            assert demo.was_cancelled
            return await client.call("demo.add", {"a": 1})

    assert uvloop.run(asyncio.wait_for(main(), 20)) == {"sum": 1}


async def test_a_client_shows_its_token_to_daemons_of_its_own_uid_only(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with demo_daemon(run_dir):
        uid = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
        with pytest.raises(Denied):
            await demo_client(run_dir).call("system.ping")
        monkeypatch.undo()
