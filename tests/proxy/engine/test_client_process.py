"""Which process made a connection, for both families."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from dari.daemon.tcp_peer import tcp_peer_owner
from dari.proxy.engine.client_process import ClientProcess, ProcessFinder, SocketHolders
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's socket table")
OURSELVES = ClientProcess(os.getpid(), Path("/proc/self/comm").read_text().strip())
FAMILIES = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "127.0.0.7"), (socket.AF_INET6, "::1")]


def connected(family: int, ip: str) -> tuple[socket.socket, socket.socket, socket.socket]:
    listener = socket.socket(family)
    listener.bind((ip, 0))
    listener.listen()
    client = socket.create_connection((ip, listener.getsockname()[1]))
    return listener, client, listener.accept()[0]


@pytest.mark.parametrize(("family", "ip"), FAMILIES)
def test_the_holder_of_a_clients_socket_is_its_process(family: int, ip: str) -> None:
    listener, client, accepted = connected(family, ip)
    with listener, client, accepted:
        held = tcp_peer_owner(accepted.getpeername()[:2], accepted.getsockname()[:2])
        assert held is not None
        assert SocketHolders().of({f"socket:[{held.inode}]"}) == {f"socket:[{held.inode}]": OURSELVES}


def test_a_socket_that_nobody_holds_has_no_holder() -> None:
    assert SocketHolders().of({"socket:[1]"}) == {}
    assert SocketHolders().of(set()) == {}


async def test_many_connections_at_once_are_looked_up_together() -> None:
    finder = ProcessFinder()
    made = [connected(socket.AF_INET, "127.0.0.1") for _ in range(30)]
    owners = [finder.look(client.getsockname(), listener.getsockname()) for listener, client, _ in made]
    await until(lambda: not (any(owner.pid is None for owner in owners)))
    assert {ClientProcess(owner.pid or 0, owner.name or "") for owner in owners} == {OURSELVES}
    finder.close()
    for sockets in made:
        for each in sockets:
            each.close()


async def test_a_finder_that_is_closed_while_it_looks_leaves_the_others_unknown() -> None:
    problems: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
    finder = ProcessFinder()
    listener, client, accepted = connected(socket.AF_INET, "127.0.0.1")
    with listener, client, accepted:
        first, second = (finder.look(client.getsockname(), listener.getsockname()) for _ in range(2))
        finder.close()
        third = finder.look(client.getsockname(), listener.getsockname())
        await until(lambda: first.pid is not None)
        await asyncio.sleep(0)
        assert (second.pid, third.pid, problems) == (None, None, [])
