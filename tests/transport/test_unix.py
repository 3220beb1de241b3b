"""The Unix socket: modes, stale and live files, peers, half-closed clients, lines and HTTP side by side."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dari.daemon.ancestry import ancestors
from dari.daemon.peer import PeerCredentials
from dari.daemon.person import AGENT_HOSTS
from dari.errors import Conflict, DariError, InvalidInput
from dari.transport import unix
from tests.support.leftovers import open_descriptors
from tests.support.transports import Events, logged, running
from tests.support.waiting import turn_until
from tests.support.wire import Json, StreamWire, call, initialize, stateless

PING: Json = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


async def only_unix(path: Path) -> None:
    async with running(transport="stdio", socket_path=path) as rig:
        await (await rig.unix()).ask(initialize())


async def test_the_socket_is_0600_in_a_directory_of_0700(tmp_path: Path) -> None:
    path = tmp_path / "new" / "mcp.sock"
    async with running(transport="stdio", socket_path=path) as rig:
        assert stat.S_IMODE(path.lstat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert (await (await rig.unix()).ask(PING))["result"] == {}
    assert not path.exists()


async def test_a_socket_that_others_could_replace_is_not_made(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    with pytest.raises(InvalidInput):
        await only_unix(tmp_path / "shared" / "s")


async def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    await only_unix(path)


async def test_a_live_socket_is_refused_and_keeps_working(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with running(socket_path=path) as rig:
        before = asyncio.all_tasks()
        descriptors = open_descriptors()
        with pytest.raises(Conflict) as caught:
            async with running(socket_path=path):
                pass
        assert str(path) in caught.value.message
        assert caught.value.hint
        await turn_until(lambda: asyncio.all_tasks() == before and open_descriptors() <= descriptors)
        assert (await (await rig.unix()).ask(PING))["result"] == {}


async def test_a_live_socket_with_a_full_backlog_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as busy, socket.socket(socket.AF_UNIX) as waiting:
        busy.bind(str(path))
        busy.listen(0)
        waiting.connect(str(path))
        with pytest.raises(Conflict):
            await only_unix(path)


@pytest.mark.parametrize("kind", ["file", "directory", "link"])
async def test_what_is_no_socket_is_never_removed(tmp_path: Path, kind: str) -> None:
    path, target = tmp_path / "s", tmp_path / "precious"
    target.write_text("keep me")
    if kind == "file":
        path.write_text("keep me")
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to(target)
    with pytest.raises(DariError) as caught:
        await only_unix(path)
    assert str(path) in caught.value.message
    assert path.exists()
    assert target.read_text() == "keep me"


async def test_a_path_that_is_too_long_says_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        await only_unix(tmp_path / ("x" * 120))


async def test_a_socket_that_another_server_took_over_is_left_at_stop(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with running(transport="stdio", socket_path=path):
        path.unlink()
        path.write_text("not ours")
    assert path.read_text() == "not ours"


@pytest.mark.parametrize("peer", [PeerCredentials(os.geteuid() + 1, 0, 1), OSError("the kernel does not tell")])
async def test_a_peer_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, peer: PeerCredentials | OSError
) -> None:
    def other(_: object) -> PeerCredentials:
        if isinstance(peer, OSError):
            raise peer
        return peer

    async with running(transport="stdio", socket_path=tmp_path / "s") as rig:
        monkeypatch.setattr(unix, "peer_credentials", other)
        with logged() as lines:
            assert await (await rig.unix()).reader.read() == b""
        assert any(line.startswith("transport=unix event=refused") for line in lines)
        assert len(rig.server.sessions) == 0
        monkeypatch.undo()
        assert (await (await rig.unix()).ask(PING))["result"] == {}


BRIEF_SERVER = """
import socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1])
line.sendall(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\\n')
line.recv(4096)
"""
HOST = """
import subprocess, sys
subprocess.run(["crux-mcp-bridge", *sys.argv[1:]], executable=sys.executable, check=True)
print(flush=True)
input()
"""


@contextmanager
def host_of_brief_server(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """It starts a server of ours that says one word and ends, writes a line then, and ends when it reads one."""
    argv = [sys.executable, "-c", HOST, "-c", BRIEF_SERVER, str(path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as host:
        yield host
        host.communicate(b"\n")


@pytest.mark.skipif(sys.platform != "linux", reason="processes are read from /proc")
async def test_the_host_of_a_server_that_connected_is_known_after_that_server_has_ended(tmp_path: Path) -> None:
    """An agent can end its server in the moment when that has sent a call, and approve the call from its own shell."""
    async with running(transport="stdio", socket_path=tmp_path / "s"):
        with host_of_brief_server(tmp_path / "s") as host:
            assert host.stdout is not None
            assert await asyncio.to_thread(host.stdout.readline) == b"\n"
            assert f"below process {host.pid}" in AGENT_HOSTS.find_above(ancestors(host.pid))


async def test_one_connection_too_many_is_closed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(transport="stdio", socket_path=tmp_path / "s") as rig:
        monkeypatch.setattr(unix, "MAX_CONNECTIONS", 1)
        first = await rig.unix()
        assert (await first.ask(PING))["result"] == {}
        assert await (await rig.unix()).reader.read() == b""
        assert (await first.ask(PING))["result"] == {}


async def test_a_half_closed_client_still_gets_its_answers(tmp_path: Path) -> None:
    async with running(transport="stdio", socket_path=tmp_path / "s") as rig:
        wire = await rig.unix()
        await wire.ask(initialize())
        wire.send(call("demo_hang", 1))
        wire.send(PING | {"id": 2})
        wire.writer.write_eof()
        assert (await wire.receive())["id"] == 2
        await rig.tools.started.wait()
        rig.tools.release.set()
        assert (await wire.receive())["id"] == 1
        assert await wire.reader.read() == b""
        await turn_until(lambda: not rig.server.sessions and not rig.server.calls)


async def test_a_half_closed_client_is_not_waited_for_when_its_question_cannot_be_answered(tmp_path: Path) -> None:
    async with running(transport="stdio", socket_path=tmp_path / "s") as rig:
        wire = await rig.unix()
        await wire.ask(initialize(elicitation={}))
        wire.send(call("demo_greet", 1))
        assert (await wire.receive())["method"] == "elicitation/create"
        wire.writer.write_eof()
        assert (await wire.receive())["result"]["isError"] is True
        assert await wire.reader.read() == b""


async def test_a_client_that_is_gone_altogether_is_not_waited_for(tmp_path: Path) -> None:
    async with running(transport="stdio", socket_path=tmp_path / "s") as rig:
        wire = await rig.unix()
        await wire.ask(initialize())
        wire.send(call("demo_hang", 1))
        await rig.tools.started.wait()
        wire.writer.close()
        async with asyncio.timeout(4.5):  # less than a half-closed client would get
            await rig.tools.cancelled.wait()


async def test_lines_and_http_share_the_socket_and_the_server(tmp_path: Path) -> None:
    async with running(transport="stdio", socket_path=tmp_path / "s") as rig:
        lines, lsp, http = await rig.unix(), await rig.unix(), await rig.http_on_unix()
        lsp = StreamWire(lsp.reader, lsp.writer, lsp=True)
        assert (await lines.ask(initialize()))["id"] == "init"
        assert (await lsp.ask(initialize()))["id"] == "init"
        assert (await http.ask(initialize()))["id"] == "init"
        assert (await http.ask(call("demo_echo", 3, text="x")))["id"] == 3
        assert (await http.request("GET", "/healthz")).status == 200
        assert len(rig.server.sessions) == 3


@pytest.mark.parametrize("host", ["unix", "%2Frun%2Fmcp.sock", "localhost", ""])
async def test_http_on_the_socket_takes_any_host_and_needs_no_token(tmp_path: Path, host: str) -> None:
    """No page can reach a socket, so there is nothing to rebind; clients write there what they like."""
    async with running(socket_path=tmp_path / "s", token_path=tmp_path / "token") as rig:
        assert (await (await rig.http_on_unix()).post(initialize(), Host=host)).status == 200
        reply = await (await rig.http_on_unix()).post(initialize(), Origin="https://evil.example")
        assert reply.status == 403


async def test_a_first_byte_at_a_time_is_enough_to_tell_http_from_lines(tmp_path: Path) -> None:
    async with running(transport="stdio", socket_path=tmp_path / "s") as rig:
        http = await rig.http_on_unix()
        for byte in b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n":
            http.writer.write(bytes([byte]))
            await asyncio.sleep(0)
        assert (await http.receive()).status == 200
        lines = await rig.unix()
        for byte in json.dumps(PING).encode() + b"\n":
            lines.writer.write(bytes([byte]))
            await asyncio.sleep(0)
        assert (await lines.receive())["result"] == {}


@pytest.mark.parametrize("sent", [b"", b"POS", b"Content-Le", b"GET /mcp HTTP/1.1\r\nHo", b'{"jsonrpc"'])
async def test_a_client_that_leaves_early_leaves_nothing_behind(tmp_path: Path, sent: bytes) -> None:
    async with running(transport="stdio", socket_path=tmp_path / "s") as rig:
        before = rig.holdings()
        wire = await rig.unix()
        wire.writer.write(sent)
        await wire.writer.drain()
        await rig.close_wires()
        await rig.until_back_to(before)
        assert rig.hub._unix is not None
        await turn_until(lambda: rig.hub._unix is not None and not rig.hub._unix.connections)


async def test_changes_are_told_on_lines_and_on_the_stream_of_http(tmp_path: Path) -> None:
    async with running(transport="stdio", socket_path=tmp_path / "s") as rig:
        lines, listener, http = await rig.unix(), await rig.unix(), await rig.http_on_unix()
        await lines.ask(initialize())
        params = {"notifications": {"toolsListChanged": True}}
        listener.send(stateless({"jsonrpc": "2.0", "id": 5, "method": "subscriptions/listen", "params": params}))
        await listener.receive()
        await http.ask(initialize())
        http.send("GET", "/mcp")
        await http.head()
        events = Events(http)
        await events.block()
        rig.server.registry.remove_tools("none")
        for message in (await lines.receive(), await listener.receive(), await events.message()):
            assert message["method"] == "notifications/tools/list_changed"


async def test_600_calls_cancelled_in_the_same_breath_do_not_stop_the_connection(tmp_path: Path) -> None:
    async with running(transport="stdio", socket_path=tmp_path / "s") as rig:
        wire = await rig.unix()
        await wire.ask(initialize())
        for number in range(600):
            wire.send(call("demo_hang", number))
        for number in range(600):
            wire.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        wire.send(PING | {"id": "after"})
        assert (await wire.receive())["id"] == "after"
        await turn_until(lambda: not rig.server.calls)
        assert (await wire.ask(PING | {"id": "last"}))["id"] == "last"


async def test_more_calls_than_may_run_at_once_are_all_answered(tmp_path: Path) -> None:
    async with running(transport="stdio", socket_path=tmp_path / "s") as rig:
        wire = await rig.unix()
        await wire.ask(initialize())
        for number in range(1500):
            wire.send(call("demo_hang", number))
        await turn_until(lambda: len(rig.server.calls) >= 512)
        rig.tools.release.set()
        assert {(await wire.receive())["id"] for _ in range(1500)} == set(range(1500))


async def test_a_bug_while_serving_one_message_does_not_end_the_connection(tmp_path: Path) -> None:
    async with running(transport="stdio", socket_path=tmp_path / "s") as rig:
        wire = await rig.unix()
        await wire.ask(initialize())
        before, rig.server.dispatch = rig.server.dispatch, None  # type: ignore[method-assign, assignment]
        with logged() as lines:
            reply = await wire.ask(PING)
        rig.server.dispatch = before  # type: ignore[method-assign]
        assert (reply["id"], reply["error"]["code"]) == (None, -32603)
        assert lines == ["transport=unix event=fatal"]
        assert (await wire.ask(call("demo_echo", 2, text="x")))["id"] == 2


async def test_connections_that_say_nothing_go_for_new_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unix, "MAX_CONNECTIONS", 3)
    path = tmp_path / "run" / "hub.sock"
    path.parent.mkdir(mode=0o700)
    async with running(socket_path=path) as rig:
        worker = await rig.unix()
        assert (await worker.ask(PING))["result"] == {}
        silent = [await asyncio.open_unix_connection(str(path)) for _ in range(10)]
        newcomer = await rig.unix()
        assert (await newcomer.ask(PING))["result"] == {}
        assert (await worker.ask(PING))["result"] == {}
        assert await silent[0][0].read() == b""
        for _, writer in silent:
            writer.close()


async def test_of_those_that_spoke_the_one_of_the_longest_silence_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unix, "MAX_CONNECTIONS", 2)
    monkeypatch.setattr(unix, "EVICT_IDLE_S", 0.0)
    async with running(transport="stdio", socket_path=tmp_path / "s") as rig:
        first, second = await rig.unix(), await rig.unix()
        for wire in (first, second, first):
            assert (await wire.ask(PING))["result"] == {}
        assert (await (await rig.unix()).ask(PING))["result"] == {}
        assert await second.reader.read() == b""
        assert (await first.ask(PING))["result"] == {}
