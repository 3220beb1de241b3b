from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dari.daemon import client as client_module
from dari.daemon.errors import DaemonError, ScopeRequired
from dari.daemon.protocol import MAX_LINE_BYTES
from dari.daemon.server import DaemonLimits
from dari.daemon.tokens import read_token
from dari.errors import Conflict, Denied, Failed, InvalidInput, NotFound, TimedOut, Unavailable
from tests.support.daemons import (
    COMMAND,
    CountedPeers,
    Demo,
    demo_client,
    demo_daemon,
    session,
    until_idle,
    wait_until_unlocked,
)


class Total(msgspec.Struct):
    sum: int


async def test_a_call_opens_a_connection_and_closes_it(run_dir: Path) -> None:
    peers = CountedPeers()
    async with demo_daemon(run_dir, peer_credentials=peers):
        client = demo_client(run_dir)
        assert await client.call("demo.add", {"a": 1, "b": 2}) == {"sum": 3}
        assert await client.call("demo.add", {"a": 1}, returns=Total) == Total(1)
        await until_idle()
    assert peers.count == 2


async def test_a_kept_connection_serves_every_call(run_dir: Path) -> None:
    peers = CountedPeers()
    async with demo_daemon(run_dir, peer_credentials=peers), demo_client(run_dir, keep=True) as client:
        results = await asyncio.gather(*(client.call("demo.echo", {"n": n}) for n in range(300)))
    assert results == [{"n": n} for n in range(300)]
    assert peers.count == 1


async def test_a_service_is_called_by_its_own_method_names(run_dir: Path) -> None:
    async with demo_daemon(run_dir):
        demo = demo_client(run_dir).service("demo")
        assert await demo.add(a=2, b=2) == {"sum": 4}
        assert await demo.echo() == {}
        with pytest.raises(AttributeError):
            _ = demo._private


async def test_params_may_be_a_struct(run_dir: Path) -> None:
    async with demo_daemon(run_dir):
        assert await demo_client(run_dir).call("demo.echo", Total(3)) == {"sum": 3}


@pytest.mark.parametrize("keep", [False, True])
async def test_refusals_are_raised_as_errors_of_ours(keep: bool, run_dir: Path) -> None:
    demo = Demo(error=Conflict("already running", "stop it first"))
    async with demo_daemon(run_dir, demo), demo_client(run_dir, "mcp", keep=keep) as client:
        with pytest.raises(Conflict) as refused:
            await client.call("demo.fail")
        assert (refused.value.message, refused.value.hint) == ("already running", "stop it first")
        assert isinstance(refused.value.__cause__, DaemonError)
        with pytest.raises(ScopeRequired):
            await client.call("system.rotate_token")
        with pytest.raises(InvalidInput):
            await client.call("demo.add", {"a": "1"})
        with pytest.raises(NotFound):
            await client.call("no.such.method")
        assert await client.call("system.ping") == {"pong": True}


class Busy(Conflict):
    name = "busy"


async def test_errors_of_the_services_own_are_restored(run_dir: Path) -> None:
    async with demo_daemon(run_dir, Demo(error=Busy("busy"))):
        with pytest.raises(Busy):
            await demo_client(run_dir, error_types=[Busy]).call("demo.fail")


async def test_a_result_of_another_shape_is_a_failure(run_dir: Path) -> None:
    async with demo_daemon(run_dir):
        with pytest.raises(Failed):
            await demo_client(run_dir).call("system.ping", returns=Total)


@pytest.mark.parametrize("keep", [False, True])
async def test_a_daemon_that_is_not_there_is_unreachable(keep: bool, run_dir: Path) -> None:
    with pytest.raises(Unavailable) as refused:
        await demo_client(run_dir, keep=keep).call("system.ping")
    assert refused.value.wire_message == "Internal error: daemon unreachable"
    assert str(run_dir / "demo.sock") in refused.value.hint


async def test_a_daemon_that_is_not_there_is_started_on_demand(run_dir: Path) -> None:
    command = (*COMMAND, str(run_dir))
    async with demo_client(run_dir, keep=True, command=command) as client:
        for _ in range(2):
            assert await client.call("system.ping") == {"pong": True}
            assert await client.call("system.shutdown") == {"status": "shutting_down"}
            await asyncio.to_thread(wait_until_unlocked, run_dir / "daemon.pid")


async def test_a_daemon_that_dies_at_the_handshake_is_started_anew(run_dir: Path) -> None:
    async def die(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        dying.close()
        (run_dir / "demo.sock").unlink(missing_ok=True)
        writer.close()

    (run_dir / "cli.token").write_text("anything")
    dying = await asyncio.start_unix_server(die, run_dir / "demo.sock")
    async with demo_client(run_dir, keep=True, command=(*COMMAND, str(run_dir))) as client:
        assert await client.call("system.ping") == {"pong": True}
        await client.call("system.shutdown")
        await asyncio.to_thread(wait_until_unlocked, run_dir / "daemon.pid")


async def test_a_daemon_that_ended_while_its_token_was_read_is_started_anew(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending = socket.socket(socket.AF_UNIX)
    ending.bind(str(run_dir / "demo.sock"))
    ending.listen()
    connect = client_module.open_connection

    async def connect_and_end(*given: Any) -> client_module.DaemonConnection:
        connection = await connect(*given)
        if ending.fileno() >= 0:
            ending.close()
            (run_dir / "demo.sock").unlink(missing_ok=True)
        return connection

    monkeypatch.setattr(client_module, "open_connection", connect_and_end)
    async with demo_client(run_dir, keep=True, command=(*COMMAND, str(run_dir))) as client:
        assert await client.call("system.ping") == {"pong": True}
        await client.call("system.shutdown")
        await asyncio.to_thread(wait_until_unlocked, run_dir / "daemon.pid")


@pytest.mark.parametrize("keep", [False, True])
async def test_a_call_without_a_limit_does_not_wait_for_ever_for_a_daemon_that_hangs(
    keep: bool, run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "HANDSHAKE_TIMEOUT_S", 0.05)
    (run_dir / "cli.token").write_text("anything")
    with socket.socket(socket.AF_UNIX) as hanging:
        hanging.bind(str(run_dir / "demo.sock"))
        hanging.listen()
        async with demo_client(run_dir, keep=keep) as client:
            with pytest.raises(TimedOut) as refused:
                await client.call("demo.hold", timeout_s=client_module.FOREVER_S)
    assert str(run_dir / "demo.sock") in refused.value.message


async def test_a_daemon_that_cannot_be_started_is_unreachable_and_the_hint_says_why(run_dir: Path) -> None:
    with pytest.raises(Unavailable) as refused:
        await demo_client(run_dir, command=(sys.executable, "-c", "raise SystemExit(3)")).call("system.ping")
    assert refused.value.message == "daemon unreachable"
    assert "exit status 3" in refused.value.hint


async def test_a_missing_token_file_is_named(run_dir: Path) -> None:
    async with demo_daemon(run_dir):
        (run_dir / "cli.token").rename(run_dir / "elsewhere")
        with pytest.raises(Denied) as refused:
            await demo_client(run_dir).call("system.ping")
    assert str(run_dir / "cli.token") in refused.value.message


async def test_a_wrong_token_is_denied_with_the_way_out(run_dir: Path) -> None:
    async with demo_daemon(run_dir):
        (run_dir / "cli.token").write_text("garbage")
        with pytest.raises(Denied) as refused:
            await demo_client(run_dir).call("system.ping")
    assert "token" in refused.value.hint


async def test_a_full_daemon_is_unavailable(run_dir: Path) -> None:
    async with demo_daemon(run_dir, limits=DaemonLimits(max_connections=1)), session(run_dir):
        with pytest.raises(Unavailable):
            await demo_client(run_dir).call("system.ping")


@pytest.mark.parametrize("keep", [False, True])
async def test_calls_go_on_after_a_rotation(keep: bool, run_dir: Path) -> None:
    peers = CountedPeers()
    async with demo_daemon(run_dir, peer_credentials=peers), demo_client(run_dir, keep=keep) as client:
        await client.call("system.rotate_token")
        results = await asyncio.gather(*(client.call("demo.echo", {"n": n}) for n in range(20)))
    assert results == [{"n": n} for n in range(20)]
    if keep:
        assert peers.count == 2


async def test_a_rotation_between_reading_a_token_and_using_it_is_no_failure(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with demo_daemon(run_dir):
        tokens = iter(["stale", read_token(run_dir / "cli.token")])
        monkeypatch.setattr("dari.daemon.client.read_token", lambda path: next(tokens))
        assert await demo_client(run_dir).call("system.ping") == {"pong": True}


async def test_a_kept_client_survives_a_restart_of_the_daemon(run_dir: Path) -> None:
    async with demo_client(run_dir, keep=True) as client:
        for _ in range(3):
            async with demo_daemon(run_dir):
                assert await client.call("system.ping") == {"pong": True}


async def test_a_cancelled_call_leaves_the_others_their_replies(run_dir: Path) -> None:
    demo = Demo()
    async with demo_daemon(run_dir, demo), demo_client(run_dir, keep=True) as client:
        await client.call("system.ping")
        slow = asyncio.create_task(client.call("demo.hold"))
        behind = [asyncio.create_task(client.call("demo.echo", {"n": n})) for n in range(5)]
        await demo.entered.wait()
        slow.cancel()
        behind[2].cancel()
        await asyncio.wait([slow])
        assert await client.call("demo.echo", {"n": "after"}) == {"n": "after"}
        demo.release.set()
        results = await asyncio.gather(*behind, return_exceptions=True)
    assert isinstance(results.pop(2), asyncio.CancelledError)
    assert results == [{"n": n} for n in (0, 1, 3, 4)]


@pytest.mark.parametrize("keep", [False, True])
async def test_cancelling_a_call_reaches_the_daemon(keep: bool, run_dir: Path) -> None:
    demo = Demo()
    async with demo_daemon(run_dir, demo), demo_client(run_dir, keep=keep) as client:
        call = asyncio.create_task(client.call("demo.watch"))
        await demo.entered.wait()
        call.cancel()
        await demo.left.wait()
        assert demo.was_cancelled
        assert await client.call("system.ping") == {"pong": True}


@pytest.mark.parametrize("keep", [False, True])
async def test_a_call_that_takes_too_long_times_out_and_is_given_up(keep: bool, run_dir: Path) -> None:
    demo = Demo()
    async with demo_daemon(run_dir, demo), demo_client(run_dir, keep=keep) as client:
        with pytest.raises(TimedOut) as refused:
            await client.call("demo.watch", timeout_s=0.05)
        assert "demo.watch" in refused.value.message
        await demo.left.wait()
        assert await client.call("system.ping") == {"pong": True}


async def test_a_closed_client_fails_its_calls_and_takes_no_more(run_dir: Path) -> None:
    demo, peers = Demo(), CountedPeers()
    async with demo_daemon(run_dir, demo, peer_credentials=peers):
        client = demo_client(run_dir, keep=True)
        await client.call("system.ping")
        waiting = asyncio.create_task(client.call("demo.watch"))
        await demo.entered.wait()
        await client.close()
        with pytest.raises(Unavailable):
            await waiting
        with pytest.raises(Unavailable):
            await client.call("system.ping")
        await client.close()
    assert peers.count == 1


async def test_a_slow_call_alone_holds_up_nobody(run_dir: Path) -> None:
    demo = Demo()
    async with demo_daemon(run_dir, demo), demo_client(run_dir, keep=True) as client:
        slow = asyncio.create_task(client.call("demo.hold", alone=True))
        await demo.entered.wait()
        assert await client.call("system.ping") == {"pong": True}
        demo.release.set()
        assert await slow == {"held": True}


async def test_large_params_queue_without_being_mixed_up(run_dir: Path) -> None:
    texts = [str(n) * 2_000_000 for n in range(6)]
    async with demo_daemon(run_dir), demo_client(run_dir, keep=True) as client:
        results = await asyncio.gather(*(client.call("demo.echo", {"text": text}) for text in texts))
    assert results == [{"text": text} for text in texts]


async def test_params_longer_than_a_line_may_be_are_refused_before_they_are_sent(run_dir: Path) -> None:
    async with demo_daemon(run_dir), demo_client(run_dir, keep=True) as client:
        with pytest.raises(InvalidInput):
            await client.call("demo.echo", {"text": "x" * MAX_LINE_BYTES})
        assert await client.call("system.ping") == {"pong": True}


async def test_two_hundred_calls_leave_no_task_behind(run_dir: Path) -> None:
    async with demo_daemon(run_dir):
        client = demo_client(run_dir)
        for _ in range(4):
            await asyncio.gather(*(client.call("system.ping") for _ in range(50)))
        await until_idle()
        assert asyncio.all_tasks() == {asyncio.current_task()}


@asynccontextmanager
async def impostor(run_dir: Path, *replies: bytes) -> AsyncIterator[list[str]]:
    """A daemon that welcomes everybody and answers each further line from a list; at its end it hangs up."""
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for reply in (b'{"id":1,"result":{}}\n', *replies):
            if not (line := await reader.readline()):
                break
            asked.append(json.loads(line)["method"])
            writer.write(reply)
        writer.close()

    (run_dir / "cli.token").write_text("anything")
    server = await asyncio.start_unix_server(serve, run_dir / "demo.sock")
    try:
        yield asked
    finally:
        server.close()
        await until_idle()


async def test_a_connection_lost_on_a_fresh_call_is_not_tried_again(run_dir: Path) -> None:
    async with impostor(run_dir, b"") as asked, demo_client(run_dir, keep=True) as client:
        with pytest.raises(Unavailable) as refused:
            await client.call("demo.echo")
    assert refused.value.message == "daemon unreachable"
    assert asked == ["system.handshake", "demo.echo"]


async def test_a_kept_connection_lost_before_the_reply_is_renewed_once(run_dir: Path) -> None:
    replies = (b'{"id":2,"result":1}\n', b"")
    async with impostor(run_dir, *replies) as asked, demo_client(run_dir, keep=True) as client:
        assert await client.call("demo.first") == 1
        assert await client.call("demo.second") == 1
    assert asked == ["system.handshake", "demo.first", "demo.second", "system.handshake", "demo.second"]


async def test_a_connection_lost_within_a_reply_is_not_tried_again(run_dir: Path) -> None:
    replies = (b'{"id":2,"result":1}\n', b'{"id":3,"res')
    async with impostor(run_dir, *replies) as asked, demo_client(run_dir, keep=True) as client:
        assert await client.call("demo.echo") == 1
        with pytest.raises(Unavailable):
            await client.call("demo.echo")
    assert asked == ["system.handshake", "demo.echo", "demo.echo"]


@pytest.mark.parametrize("reply", [b"nonsense\n", b"[]\n", b'{"id":7,"result":1}\n', b'{"id":2}\n', b'{"result":1}\n'])
async def test_a_reply_that_answers_something_else_is_a_failure(reply: bytes, run_dir: Path) -> None:
    async with impostor(run_dir, reply):
        client = demo_client(run_dir)
        with pytest.raises(Failed):
            await client.call("demo.echo")


async def test_a_reply_that_nobody_asked_for_ends_the_connection(run_dir: Path) -> None:
    two = b'{"id":2,"result":1}\n{"id":3,"result":2}\n'
    async with impostor(run_dir, two, b"") as asked, demo_client(run_dir, keep=True) as client:
        assert await client.call("demo.first") == 1
        assert await client.call("demo.second") == 1
    assert asked == ["system.handshake", "demo.first", "system.handshake", "demo.second"]


async def test_a_reply_without_an_end_is_given_up(run_dir: Path) -> None:
    async with impostor(run_dir, b"x" * (MAX_LINE_BYTES + 2)):
        with pytest.raises(Unavailable):
            await demo_client(run_dir).call("demo.echo")
