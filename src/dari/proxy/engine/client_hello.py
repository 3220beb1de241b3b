"""The server name in a ClientHello, sans-I/O: read before TLS begins, to choose the leaf or to tunnel untouched."""

from __future__ import annotations

# Post-quantum key shares make a hello of 1.7 KB; far above that nothing sane is sent.
_MAX_BYTES = 64 * 1024
# RFC 8446, 5.1: no record of a handshake is empty, and none is longer.
_MAX_RECORD_BYTES = 16 * 1024
# All of them are looked at again with each read: a hello in crumbs would cost more time than it has bytes.
_MAX_RECORDS = 256


class Incomplete(Exception):
    """More bytes are needed."""


def server_name(data: bytes) -> str | None:
    """The SNI of the hello at the start of `data`; None when there is none or it cannot be read."""
    hello = _handshake(data)
    try:
        return _find_name(hello)
    except (IndexError, UnicodeDecodeError):
        return None


def _handshake(data: bytes) -> bytes:
    """The hello's body, out of some records; empty when there is none. Raises Incomplete for at most 80 KiB."""
    body = b""
    position = 0
    for _ in range(_MAX_RECORDS):
        if len(data) < position + 5:
            raise Incomplete
        if data[position] != 0x16 or position > _MAX_BYTES:
            return b""
        size = int.from_bytes(data[position + 3 : position + 5], "big")
        if not 0 < size <= _MAX_RECORD_BYTES:
            return b""
        if len(data) < position + 5 + size:
            raise Incomplete
        body += data[position + 5 : position + 5 + size]
        position += 5 + size
        if len(body) >= 4:
            wanted = int.from_bytes(body[1:4], "big")
            if body[0] != 1 or wanted > _MAX_BYTES:
                return b""
            if len(body) >= 4 + wanted:
                return body[4 : 4 + wanted]
    return b""


def _find_name(hello: bytes) -> str | None:
    position = 34  # version and random
    position += 1 + hello[position]  # session id
    position += 2 + int.from_bytes(hello[position : position + 2], "big")  # cipher suites
    position += 1 + hello[position]  # compression methods
    end = position + 2 + int.from_bytes(hello[position : position + 2], "big")
    position += 2
    while position + 4 <= min(end, len(hello)):
        kind = int.from_bytes(hello[position : position + 2], "big")
        size = int.from_bytes(hello[position + 2 : position + 4], "big")
        if kind == 0:
            names = hello[position + 4 : position + 4 + size]
            if names[2] == 0:
                length = int.from_bytes(names[3:5], "big")
                return names[5 : 5 + length].decode("ascii").lower().rstrip(".") or None
        position += 4 + size
    return None
