from __future__ import annotations

import os
import socket
import struct
import sys

import pytest

from dari.daemon.peer import PeerCredentials, parse_xucred, peer_credentials


def test_the_kernel_tells_who_is_at_the_other_end() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert peer_credentials(ours) == PeerCredentials(os.geteuid(), os.getegid(), os.getpid())


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
