"""The broker of `network: loopback`, against children that use it to hold us up or to listen elsewhere."""

from __future__ import annotations

import errno
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from dari.sandbox.confinement import Confinement
from dari.sandbox.network_broker import LoopbackBroker, SyscallNotification, listen_on_loopback
from tests.support.requirements import require_asking
from tests.support.sandboxes import said

LOOPBACK = Confinement(mode="enforce", network="loopback")
CONNECTS_AND_LISTENS = """
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as eager:
    socket.create_connection(server.getsockname()).close()
    eager.setblocking(False)
    print(eager.connect_ex(server.getsockname()))
"""
WAITS_AND_LISTENS = """
import socket, sys, threading
full = ("127.0.0.1", int(sys.argv[1]))
waiting = [socket.socket() for _ in range(8)]
for one in waiting:
    threading.Thread(target=one.connect, args=(full,), daemon=True).start()
socket.create_server(("127.0.0.1", 0)).close()
eager = socket.socket()
eager.setblocking(False)
print(eager.connect_ex(full), flush=True)
"""


@contextmanager
def full_backlog() -> Iterator[tuple[str, int]]:
    """An address to which a connect waits until its time limit."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):
            filling = stack.enter_context(socket.socket())
            filling.setblocking(False)
            filling.connect_ex(server.getsockname())
        yield server.getsockname()


async def test_nothing_that_a_child_asks_for_is_done_in_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    # Whether its socket blocks is the child's to change, also between our look and our call.
    require_asking()
    threads: list[threading.Thread] = []
    perform: Any = LoopbackBroker._perform

    def watched(broker: LoopbackBroker, question: SyscallNotification, mine: int) -> int:
        threads.append(threading.current_thread())
        return perform(broker, question, mine)  # type: ignore[no-any-return]

    monkeypatch.setattr(LoopbackBroker, "_perform", watched)
    assert await said((sys.executable, "-c", CONNECTS_AND_LISTENS), LOOPBACK) == f"{errno.EINPROGRESS}\n"
    assert len(threads) == 4 and threading.main_thread() not in threads


async def test_connections_that_wait_hold_up_neither_a_listener_nor_the_end_of_our_process() -> None:
    require_asking()
    with full_backlog() as (_, port):
        told = await said((sys.executable, "-c", WAITS_AND_LISTENS, str(port)), LOOPBACK)
        assert told == f"{errno.EINPROGRESS}\n"
        for thread in threading.enumerate():
            if thread.name.startswith("loopback"):
                thread.join(10)
                assert not thread.is_alive()


class EndsAfterALook(socket.socket):
    """A connection that the child ends as soon as somebody has looked at its address."""

    has_ended = False

    def getsockname(self) -> Any:
        name = super().getsockname()
        if not self.has_ended:
            self.has_ended = True
            self.shutdown(socket.SHUT_RDWR)
        return name


def test_a_connection_that_ends_before_it_listens_does_not_listen_on_all_addresses() -> None:
    with full_backlog() as address, EndsAfterALook() as ending:
        ending.setblocking(False)
        assert ending.connect_ex(address) == errno.EINPROGRESS
        assert listen_on_loopback(ending, 1) == errno.EACCES
        assert ending.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 0


def test_a_socket_of_another_family_does_not_listen() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert listen_on_loopback(ours, 1) == errno.EACCES
