"""Who gets through the socket, and what the others are told."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dari.cli.hub import connection, protocol
from dari.cli.hub import server as door_module
from dari.cli.hub.handshake import is_own_child
from dari.daemon.ancestry import is_descendant
from dari.daemon.peer import PeerCredentials
from tests.support.hub_socket import Commands, calling, connected, empty, hello, open_socket
from tests.support.processes import wait_for_line

CONNECTOR = """
import socket, sys
sock = socket.socket(socket.AF_UNIX)
sock.connect(sys.argv[1])
sys.stdout.buffer.write(sock.makefile("rb").read())
"""


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"token": "guessed"}, "token"),
        ({"token": "é"}, "token"),
        ({"token": ""}, "token"),
        ({"token": None}, "invalid_input"),
        ({"v": 99}, "skew"),
        ({"v": True}, "invalid_input"),
        ({"version": "0.0.1"}, "skew"),
        ({"package": "/elsewhere/dari"}, "skew"),
        ({"purpose": "steal"}, "invalid_input"),
        ({"argv": ["list", 5]}, "invalid_input"),
        ({"env": {"A": 1}}, "invalid_input"),
        ({"cwd": "somewhere"}, "invalid_input"),
        ({"cwd": "/a\0b"}, "invalid_input"),
    ],
)
async def test_a_wrong_first_line_is_refused_with_a_reason(changes: dict[str, Any], code: str, run_dir: Path) -> None:
    commands = Commands()
    async with open_socket(run_dir, commands) as socket, connected(run_dir) as caller:
        caller.writer.write(json.dumps(hello(run_dir, "wait", **changes)).encode() + b"\n")
        refusal = await caller.refusal()
        assert refusal["code"] == code
        assert refusal["message"]
        assert refusal["hint"]
        assert socket.connections == 0
    assert not commands.entered.is_set()


@pytest.mark.parametrize("line", [b"\n", b"nonsense\n", b"[]\n", b"\xff\xfe\n", b"[" * 100_000 + b"\n"])
async def test_a_first_line_that_is_no_object_is_refused(line: bytes, run_dir: Path) -> None:
    async with open_socket(run_dir), connected(run_dir) as caller:
        caller.writer.write(line)
        assert (await caller.refusal())["code"] == "invalid_input"


async def test_a_first_line_without_end_is_refused_when_it_is_too_long(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "MAX_HANDSHAKE_BYTES", 100_000)
    async with open_socket(run_dir) as socket, connected(run_dir) as caller:
        caller.writer.write(b"x" * 200_000)
        kind, payload = await caller.frame()
        assert kind == protocol.REFUSED
        assert "100000" in json.loads(payload)["message"]
        caller.vanish()
        await empty(socket)


async def test_two_megabytes_of_environment_are_taken(run_dir: Path) -> None:
    commands = Commands()
    environment = {"HOME": str(run_dir), **{f"V{n}": "é" * 10_000 for n in range(100)}}
    async with open_socket(run_dir, commands), calling(run_dir, "say", "", "", "0", env=environment) as caller:
        assert (await caller.frames())[-1] == (protocol.EXIT, b"\0")
    assert commands.around is not None
    assert dict(commands.around.environ) == environment


async def test_one_that_says_nothing_is_refused_after_a_while(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HANDSHAKE_TIMEOUT_S", 0.01)
    async with open_socket(run_dir), connected(run_dir) as caller:
        assert "0.01 s" in (await caller.refusal())["message"]


async def test_a_probe_that_connects_and_leaves_changes_nothing(run_dir: Path) -> None:
    async with open_socket(run_dir) as socket:
        async with connected(run_dir) as caller:
            caller.vanish()
        async with calling(run_dir, "say", "still here", "", "0") as caller:
            assert (protocol.OUT, b"still here") in await caller.frames()
        await empty(socket)


async def test_another_user_is_shut_out_without_a_word(run_dir: Path) -> None:
    async with (
        open_socket(run_dir, peer_credentials=lambda sock: PeerCredentials(os.geteuid() + 1, 0, 1)),
        connected(run_dir) as caller,
    ):
        assert await caller.reader.read() == b""


async def test_the_socket_and_its_token_are_for_us_alone_and_go_with_the_door(run_dir: Path) -> None:
    async with open_socket(run_dir) as socket:
        for path in (socket.socket_path, run_dir / protocol.TOKEN_NAME):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        first = protocol.read_token(str(run_dir))
    assert sorted(os.listdir(run_dir)) == []
    async with open_socket(run_dir):
        assert protocol.read_token(str(run_dir)) != first


async def test_more_visitors_than_fit_are_told_so(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "MAX_CONNECTIONS", 1)
    async with open_socket(run_dir), calling(run_dir, "wait"), connected(run_dir) as second:
        refusal = await second.refusal()
        assert (refusal["code"], refusal["message"]) == ("unavailable", "1 clients are connected")


async def test_a_process_that_we_started_is_refused(run_dir: Path) -> None:
    """Sandboxed children cannot reach our own control sockets."""
    async with open_socket(run_dir) as socket:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CONNECTOR, str(socket.socket_path), stdout=subprocess.PIPE
        )
        said, _ = await child.communicate()
    assert said.startswith(protocol.REFUSED)
    refusal = json.loads(said[protocol.HEADER_BYTES :])
    assert refusal["code"] == "child"
    assert str(child.pid) in refusal["message"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of ancestors")
def test_grandchildren_are_ours_and_neighbours_are_not() -> None:
    stay = "import os; print(os.getpid(), flush=True); input()"
    script = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', '{stay}'])"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        grandchild = int(wait_for_line(child.stdout.fileno()))
        assert is_descendant(grandchild, os.getpid())
        assert is_descendant(grandchild, child.pid)
        assert not is_descendant(child.pid, grandchild)
        assert not is_descendant(os.getppid(), os.getpid())
        assert is_own_child(grandchild)
        assert not is_own_child(os.getpid())
        assert not is_own_child(os.getppid())
        assert is_own_child(None), "another namespace of processes"
        child.stdin.close()


@pytest.mark.skipif(sys.platform != "linux", reason="marks are read from /proc")
def test_a_server_of_another_bridge_is_known_by_its_mark() -> None:
    """It is no descendant of the one that asks: the reader is a neighbour of the marked one."""
    stay = [sys.executable, "-c", "print('ready', flush=True); input()"]
    look = (
        "import os, sys; from dari.daemon.ancestry import is_descendant\n"
        "from dari.cli.hub.handshake import is_own_child as own\n"
        "pids = [int(word) for word in sys.argv[1:]]\n"
        "print([own(pid) for pid in pids], is_descendant(pids[0], os.getpid()))"
    )
    bare = {name: value for name, value in os.environ.items() if name != "DARI_CHILD"}
    with (
        subprocess.Popen(
            stay, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**bare, "DARI_CHILD": "abc"}
        ) as marked,
        subprocess.Popen(stay, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=bare) as plain,
    ):
        for process in (marked, plain):
            assert process.stdout is not None
            wait_for_line(process.stdout.fileno())
        words = [sys.executable, "-c", look, str(marked.pid), str(plain.pid)]
        told = subprocess.run(words, capture_output=True, text=True, env=bare, timeout=30, check=True).stdout
        for process in (marked, plain):
            assert process.stdin is not None
            process.stdin.close()
    assert told == "[True, False] False\n"
