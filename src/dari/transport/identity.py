"""Who answers at an address: we, or somebody else? Asked before anybody is advised to send a token there."""

from __future__ import annotations

import hmac
import os
import socket
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from dari.daemon.peer import peer_credentials
from dari.daemon.tcp_peer import listener_uid
from dari.daemon.unix_socket import socket_address
from dari.errors import InvalidInput
from dari.transport.health import MIN_CHALLENGE_BYTES, PATH, Served, proof, read_token

TIMEOUT_S = 2.0
MAX_ANSWER_BYTES = 64 * 1024


class HttpAnswerer(msgspec.Struct, frozen=True):
    """What was found at an address where something listens."""

    token_path: Path | None = None
    """The token file whose token the answerer holds, which proves that it is one of us; None: it did not prove it."""
    uid: int | None = None
    """The user that listens there, where the system tells."""


def hub_on(socket_path: Path) -> Served | None:
    """What the hub of this Unix socket serves; None when none of ours runs there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(TIMEOUT_S)
        try:
            connection.connect(socket_address(socket_path))
            if peer_credentials(connection).uid != os.geteuid():
                return None
            return msgspec.json.decode(_get(connection, PATH, "localhost"), type=Served)
        except (OSError, ValueError, msgspec.MsgspecError, InvalidInput):
            return None


def identify(host: str, port: int, token_paths: Iterable[Path]) -> HttpAnswerer | None:
    """Who listens there, and whether it holds one of our tokens; None: nobody listens. No token is sent."""
    try:
        connection = socket.create_connection((host, port), TIMEOUT_S)
    except OSError:
        return None
    with connection:
        address, challenge = connection.getpeername()[0], os.urandom(MIN_CHALLENGE_BYTES).hex()
        uid = listener_uid((address, port))
        try:
            body = _get(
                connection, f"{PATH}?challenge={challenge}", f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            )
            given = msgspec.json.decode(body, type=dict[str, str]).get("proof", "")
        except (OSError, ValueError, msgspec.MsgspecError):
            return HttpAnswerer(None, uid)
    for path in token_paths:
        expected = proof(read_token(path), address, port, challenge.encode())
        if expected and hmac.compare_digest(given.encode(), expected.encode()):
            return HttpAnswerer(path, uid)
    return HttpAnswerer(None, uid)


def _get(connection: socket.socket, target: str, host: str) -> bytes:
    """The body of a plain answer; ValueError when it is none."""
    connection.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    until_s = time.monotonic() + TIMEOUT_S
    answer = b""
    while part := connection.recv(8192):
        answer += part
        if len(answer) > MAX_ANSWER_BYTES or time.monotonic() > until_s:
            raise ValueError("the answer does not end")
    head, _, body = answer.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 "):
        raise ValueError("the answer is not 200")
    return body
