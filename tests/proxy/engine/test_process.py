"""Which process made a connection: by netlink, by the table in /proc, for both families."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path

import pytest

from dari.proxy.engine.process import Holders, Process, ProcessFinder
from dari.proxy.engine.socket_table import SocketTable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's socket table")
OURSELVES = Process(os.getpid(), Path("/proc/self/comm").read_text().strip())
FAMILIES = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]


def connected(family: int, ip: str) -> tuple[socket.socket, socket.socket, socket.socket]:
    listener = socket.socket(family)
    listener.bind((ip, 0))
    listener.listen()
    client = socket.create_connection((ip, listener.getsockname()[1]))
    return listener, client, listener.accept()[0]


@pytest.mark.parametrize(("family", "ip"), FAMILIES)
@pytest.mark.parametrize("way", ["netlink", "table"])
def test_the_inode_is_the_one_of_the_client_s_socket(family: int, ip: str, way: str) -> None:
    table = SocketTable()
    if way == "table":
        table.close()
        table._netlink = None
    listener, client, accepted = connected(family, ip)
    with listener, client, accepted:
        found = table.inode(ip, client.getsockname()[1], listener.getsockname()[1])
        assert found == str(os.fstat(client.fileno()).st_ino)
        assert Holders().of({f"socket:[{found}]"}) == {f"socket:[{found}]": OURSELVES}
        assert table.inode(ip, 1, listener.getsockname()[1]) is None
    table.close()


def test_other_addresses_of_this_machine_are_found_in_the_table() -> None:
    table = SocketTable()
    listener, client, accepted = connected(socket.AF_INET, "127.0.0.7")
    with listener, client, accepted:
        found = table.inode("127.0.0.7", client.getsockname()[1], listener.getsockname()[1])
        assert found == str(os.fstat(client.fileno()).st_ino)
    table.close()


def test_a_socket_that_nobody_holds_has_no_holder() -> None:
    assert Holders().of({"socket:[1]"}) == {}
    assert Holders().of(set()) == {}


async def test_many_connections_at_once_are_looked_up_together() -> None:
    finder = ProcessFinder()
    made = [connected(socket.AF_INET, "127.0.0.1") for _ in range(30)]
    owners = [
        finder.look("127.0.0.1", client.getsockname()[1], listener.getsockname()[1]) for listener, client, _ in made
    ]
    while any(owner.pid is None for owner in owners):  # noqa: ASYNC110 (an owner has no event)
        await asyncio.sleep(0.001)
    assert {Process(owner.pid or 0, owner.name or "") for owner in owners} == {OURSELVES}
    finder.close()
    for sockets in made:
        for each in sockets:
            each.close()
