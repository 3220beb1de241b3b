"""Who answers on our ports, and whether it is one of us: asked before anybody is advised to send a token there."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dari.system import service
from dari.system.service import Check, check_ports
from dari.transport.health import hub_on, identify, proof
from tests.support.transports import Rig, running


class Squatter:
    """Takes a port and answers every request with what it is given; remembers all that it was sent."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 OK\r\n\r\n{}", host: str = "127.0.0.1", port: int = 0) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family)
        self.port = int(self._listener.getsockname()[1])
        self.seen = b""
        self._answer = answer
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self.seen += (asked := connection.recv(8192))
                connection.sendall(self.reply(asked))

    def reply(self, asked: bytes) -> bytes:
        return self._answer

    @contextmanager
    def running(self) -> Iterator[Squatter]:
        self._thread.start()
        try:
            yield self
        finally:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._thread.join(10)


class Relay(Squatter):
    """Asks the real hub on its own port, and passes the answer on."""

    def __init__(self, target_port: int) -> None:
        super().__init__()
        self._target_port = target_port

    def reply(self, asked: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self._target_port), 10) as hub:
            hub.sendall(asked)
            parts = []
            while part := hub.recv(8192):
                parts.append(part)
        return b"".join(parts)


def token_file(directory: Path) -> Path:
    path = directory / "mcp.token"
    path.write_text("the-token-that-must-not-leak\n")
    path.chmod(0o600)
    return path


async def checked(rig: Rig, port: int | None = None) -> Check:
    assert rig.settings.token_path and rig.settings.socket_path
    tokens = {"dari": rig.settings.token_path}
    return await asyncio.to_thread(check_ports, rig.settings.socket_path, port or rig.port, tokens)


def test_a_port_that_nobody_has_is_free(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    check = check_ports(tmp_path / "none.sock", port, {"dari": token_file(tmp_path)})
    assert (check.status, check.found) == ("ok", f"127.0.0.1:{port} is free")


async def test_the_hub_proves_that_it_is_ours(tmp_path: Path) -> None:
    async with running(token_path=token_file(tmp_path), socket_path=tmp_path / "mcp.sock") as rig:
        check = await checked(rig)
        assert check.status == "ok"
        assert f"127.0.0.1:{rig.port} is dari, which proved that it holds" in check.found


OK = b"HTTP/1.1 200 OK\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        OK,
        OK + b'{"status":"ok"}',
        OK + b'{"proof":"' + b"0" * 64 + b'"}',
        OK + b'{"proof":""}',
        b'{"proof":',
        b"\0" * 100_000,
    ],
)
def test_a_program_that_proves_nothing_is_told_and_sent_no_token(tmp_path: Path, answer: bytes) -> None:
    token = token_file(tmp_path)
    with Squatter(answer).running() as squatter:
        check = check_ports(tmp_path / "none.sock", squatter.port, {"dari": token})
    assert check.status == "warning"
    assert f"127.0.0.1:{squatter.port} is another program of yours" in check.found
    assert f"send no token to 127.0.0.1:{squatter.port}" in check.hint
    assert squatter.seen and token.read_bytes().strip() not in squatter.seen


def test_a_program_of_another_user_fails_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Squatter().running() as squatter:
        monkeypatch.setattr(service.os, "geteuid", lambda: 4242)
        check = check_ports(tmp_path / "none.sock", squatter.port, {"dari": token_file(tmp_path)})
    assert check.status == "failed"
    assert "send no token" in check.hint


async def test_a_proof_that_is_relayed_from_the_real_port_does_not_count(tmp_path: Path) -> None:
    async with running(token_path=token_file(tmp_path), socket_path=tmp_path / "mcp.sock") as rig:
        with Relay(rig.port).running() as relay:
            check = await checked(rig, relay.port)
        assert b"challenge=" in relay.seen
        assert check.status == "warning"
        assert f"127.0.0.1:{rig.port} is the hub" in check.found or f"127.0.0.1:{rig.port} is dari" in check.found
        assert f"127.0.0.1:{relay.port} is another program" in check.found


async def test_a_stranger_on_the_other_loopback_address_is_seen(tmp_path: Path) -> None:
    """`localhost` is 127.0.0.1 for one client and ::1 for the next."""
    async with running(token_path=token_file(tmp_path), socket_path=tmp_path / "mcp.sock") as rig:
        with Squatter(host="::1", port=rig.port).running():
            check = await checked(rig)
        assert check.status == "warning"
        assert f"[::1]:{rig.port} is another program" in check.found


async def test_a_hub_that_moved_is_found_through_its_socket(tmp_path: Path) -> None:
    async with running(token_path=token_file(tmp_path), socket_path=tmp_path / "mcp.sock") as rig:
        with Squatter().running() as squatter:
            check = await checked(rig, squatter.port)
        assert f"127.0.0.1:{rig.port} is" in check.found and "which proved" in check.found
        assert f"127.0.0.1:{squatter.port} is another program" in check.found


async def test_the_socket_tells_where_the_hub_is_and_tcp_does_not(tmp_path: Path) -> None:
    async with running(token_path=token_file(tmp_path), socket_path=tmp_path / "mcp.sock") as rig:
        assert rig.settings.socket_path
        served = await asyncio.to_thread(hub_on, rig.settings.socket_path)
        assert served is not None
        assert (served.pid, served.url, served.token_path) == (os.getpid(), rig.hub.url, str(tmp_path / "mcp.token"))
        assert stat.S_IMODE(rig.settings.socket_path.stat().st_mode) == 0o600
        assert (await (await rig.http()).request("GET", "/healthz")).json() == {"status": "ok"}
    assert hub_on(tmp_path / "mcp.sock") is None


async def test_a_token_that_changed_is_the_one_that_proves(tmp_path: Path) -> None:
    path = token_file(tmp_path)
    async with running(token_path=path) as rig:
        path.write_text("another-token-of-the-same-file\n")
        found = await asyncio.to_thread(identify, "127.0.0.1", rig.port, [path])
        assert found is not None and found.token_path == path


@pytest.mark.parametrize(
    "query", ["challenge=", "challenge=zz", "challenge=" + "a" * 31, "challenge=" + "a" * 129, "x=1"]
)
async def test_what_is_no_challenge_gets_no_proof(tmp_path: Path, query: str) -> None:
    async with running(token_path=token_file(tmp_path)) as rig:
        assert (await (await rig.http()).request("GET", f"/healthz?{query}")).json() == {"status": "ok"}


def test_a_proof_fits_one_challenge_and_one_address_only() -> None:
    one = proof(b"token", "127.0.0.1", 3847, b"a" * 32)
    assert (
        len(
            {
                one,
                *(
                    proof(b"token", h, p, c * 32)
                    for h, p, c in [("127.0.0.1", 3848, b"a"), ("::1", 3847, b"a"), ("127.0.0.1", 3847, b"b")]
                ),
            }
        )
        == 4
    )
    assert proof(b"other", "127.0.0.1", 3847, b"a" * 32) != one
    assert proof(b"", "127.0.0.1", 3847, b"a" * 32) == ""
