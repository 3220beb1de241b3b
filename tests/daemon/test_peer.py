from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from dari.daemon.ancestry import read_process
from dari.daemon.peer import PeerCredentials, parse_xucred, peer_credentials


def test_the_kernel_tells_who_is_at_the_other_end() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        peer = peer_credentials(ours)
    assert (peer.uid, peer.gid, peer.pid) == (os.geteuid(), os.getegid(), os.getpid())
    if sys.platform == "linux":
        own = read_process(os.getpid())
        assert own is not None and peer.started == own.started


_CONNECT_AND_LEAVE = """
import os, socket, sys
connected = socket.socket(socket.AF_UNIX)
connected.connect(sys.argv[1])
if os.fork():
    os._exit(0)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_process_that_connected_and_ended_is_not_named_by_its_pid(tmp_path: Path) -> None:
    """Its child holds the connection, and another process may get the pid."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        command = [sys.executable, "-c", _CONNECT_AND_LEAVE, str(tmp_path / "s")]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as connecting:
            connecting.wait()
            accepted, _ = listening.accept()
            with accepted:
                peer = peer_credentials(accepted)
            assert connecting.stdin is not None
            connecting.stdin.close()
    assert (peer.uid, peer.pid, peer.started) == (os.geteuid(), None, None)


@pytest.mark.skipif(sys.platform != "linux", reason="macOS raises instead")
def test_a_socket_without_a_peer_is_nobody_of_ours() -> None:
    with socket.socket(socket.AF_UNIX) as unconnected:
        assert peer_credentials(unconnected).uid != os.geteuid()


def test_credentials_of_macos_are_read_from_its_structure() -> None:
    xucred = struct.pack("IIh16I", 0, 501, 2, 20, 12, *[0] * 14)
    assert parse_xucred(xucred, struct.pack("i", 77)) == PeerCredentials(501, 20, 77)
    assert parse_xucred(xucred, struct.pack("i", 0)).pid is None


@pytest.mark.parametrize(
    "xucred",
    [b"", b"\0" * 8, struct.pack("IIh16I", 1, 501, 1, *[20] * 16), struct.pack("IIh16I", 0, 501, 0, *[20] * 16)],
)
def test_credentials_that_cannot_be_trusted_are_an_os_error(xucred: bytes) -> None:
    with pytest.raises(OSError):
        parse_xucred(xucred, struct.pack("i", 1))
