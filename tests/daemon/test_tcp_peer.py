"""The user of a TCP peer on this machine, as the kernel tells it."""

from __future__ import annotations

# `socket` loads it at the first connection, and another user cannot read root's interpreter.
import encodings.idna  # noqa: F401
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from dari.daemon import tcp_peer
from dari.daemon.tcp_peer import Address, SocketOwner, is_local, listener_uid, tcp_peer_uid

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the user of a TCP socket")

Ask = Callable[[Address, Address], SocketOwner | None]
WAYS = [pytest.param(tcp_peer._ask_kernel, id="sock_diag"), pytest.param(tcp_peer._read_tables, id="proc")]
PLACES = [
    (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
    (socket.AF_INET, "127.0.0.1", "127.8.8.8"),
    (socket.AF_INET6, "::1", "::1"),
    (socket.AF_INET6, "::ffff:127.0.0.1", "127.0.0.1"),
]


@contextmanager
def connected(family: int, host: str, target: str) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A client and the server's end of its connection."""
    with ExitStack() as held:
        listener = held.enter_context(socket.socket(family))
        listener.bind((host if target == "127.0.0.1" else target, 0))
        listener.listen()
        client = held.enter_context(socket.create_connection((target, listener.getsockname()[1]), 5))
        accepted = held.enter_context(listener.accept()[0])
        yield client, accepted


def ends(accepted: socket.socket) -> tuple[Address, Address]:
    return accepted.getpeername()[:2], accepted.getsockname()[:2]


@pytest.mark.parametrize("ask", WAYS)
@pytest.mark.parametrize(("family", "host", "target"), PLACES)
def test_a_connection_of_ours_is_ours(ask: Ask, family: int, host: str, target: str) -> None:
    with connected(family, host, target) as (client, accepted):
        assert ask(*ends(accepted)) == SocketOwner(os.geteuid(), os.fstat(client.fileno()).st_ino)


@pytest.mark.parametrize("ask", WAYS)
def test_a_peer_that_only_ended_its_sending_is_still_known(ask: Ask) -> None:
    with connected(*PLACES[0]) as (client, accepted):
        client.shutdown(socket.SHUT_WR)
        assert accepted.recv(1) == b""
        assert ask(*ends(accepted)) == SocketOwner(os.geteuid(), os.fstat(client.fileno()).st_ino)


@pytest.mark.parametrize("ask", WAYS)
def test_a_peer_that_is_gone_is_nobody_and_not_root(ask: Ask) -> None:
    """The kernel shows a socket that no process holds as root's."""
    with connected(*PLACES[0]) as (client, accepted):
        client.close()
        assert accepted.recv(1) == b""
        assert ask(*ends(accepted)) is None


@pytest.mark.parametrize("ask", WAYS)
def test_a_listener_on_the_peers_port_is_not_the_peer(ask: Ask) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert ask(other.getsockname(), ("127.0.0.1", 9)) is None


@pytest.mark.parametrize("ask", WAYS)
def test_a_connection_of_another_user_is_theirs(ask: Ask) -> None:
    """Root is somebody else for a moment; everybody else is only ever themselves."""
    before, other = os.geteuid(), 65534 if os.geteuid() == 0 else os.geteuid()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        os.seteuid(other)
        try:
            client = socket.create_connection(listener.getsockname(), 5)
        finally:
            os.seteuid(before)
        with client, listener.accept()[0] as accepted:
            assert ask(*ends(accepted)) == SocketOwner(other, os.fstat(client.fileno()).st_ino)


def test_without_sock_diag_the_tables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_peer, "_NETLINK_SOCK_DIAG", 31)  # a protocol that no kernel has
    with connected(*PLACES[0]) as (_, accepted):
        with pytest.raises(OSError):
            tcp_peer._ask_kernel(*ends(accepted))
        assert tcp_peer_uid(*ends(accepted)) == os.geteuid()


@pytest.mark.parametrize(("host", "expected"), [("127.3.2.1", True), ("::1", True), ("203.0.113.9", False)])
def test_loopback_is_this_machine_and_another_address_is_not(host: str, expected: bool) -> None:
    assert is_local(host) is expected


def test_the_user_of_a_listener_is_found_on_every_address_it_serves() -> None:
    with socket.create_server(("0.0.0.0", 0)) as everywhere:
        assert listener_uid(("127.0.0.1", everywhere.getsockname()[1])) == os.geteuid()
    assert listener_uid(("127.0.0.1", 1)) is None
