"""`/healthz`: is it alive, and is it the one that holds the token?

Another program may have taken the port. A caller that has the token file asks `/healthz?challenge=<hex>`; the answer
carries an HMAC over the challenge and the address of the connection, keyed with the token. The token itself is never
sent, and a proof that is relayed from another port does not fit. On the Unix socket, which only we can reach, the
answer says which address is served.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import socket
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from dari.daemon.peer import peer_credentials
from dari.daemon.tcp_peer import listener_uid
from dari.daemon.unix_socket import socket_address
from dari.errors import InvalidInput
from dari.rpc.codec import encode
from dari.struct_types import ready
from dari.transport.token_file import TokenFile

PATH = "/healthz"
MIN_CHALLENGE_BYTES = 16
_CHALLENGE = re.compile(rb"(?:^|&)challenge=([0-9a-f]{32,128})(?:&|$)")

Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Served(Struct, frozen=True):
    """What a running hub tells on its own Unix socket."""

    status: str = "ok"
    pid: int = 0
    url: str = ""
    token_path: str = ""


class HealthApp:
    """What stands beside `/mcp` where nothing else is mounted."""

    def __init__(self, token: TokenFile | None = None, url: Callable[[], str] = str) -> None:
        self._token = token
        self._url = url

    async def __call__(self, scope: Scope, receive: Any, send: Send) -> None:
        is_health = scope["path"] == PATH
        allowed = scope["method"] in ("GET", "HEAD")
        status = (200 if allowed else 405) if is_health else 404
        body = encode(self._health(scope) if status == 200 else {"error": _REASONS[status]})
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def _health(self, scope: Scope) -> Served | dict[str, str]:
        if scope.get("client") is None:
            path = "" if self._token is None else str(self._token.path)
            return Served(pid=os.getpid(), url=self._url(), token_path=path)
        found = _CHALLENGE.search(scope["query_string"])
        host, port = scope.get("server") or ("", None)
        if found is None or self._token is None or port is None:
            return {"status": "ok"}
        return {"status": "ok", "proof": self._token.prove(lambda token: proof(token, host, port, found[1]))}


_REASONS = {404: "not found", 405: "method not allowed"}


def proof(token: bytes, host: str, port: int, challenge: bytes) -> str:
    """What only a holder of the token can say about this challenge at this address; empty without a token."""
    if not token:
        return ""
    return hmac.new(token, b"dari proof\n%b:%d\n%b" % (host.encode(), port, challenge), hashlib.sha256).hexdigest()


def read_token(path: Path) -> bytes:
    """The token in a file that only we can read; empty when there is none."""
    try:
        if path.stat().st_mode & 0o077:
            return b""
        return path.read_bytes().strip()
    except OSError:
        return b""


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
            return msgspec.json.decode(_get(connection, PATH, "localhost"), type=ready(Served))
        except (OSError, ValueError, msgspec.MsgspecError, InvalidInput):
            return None


def identify(host: str, port: int, token_paths: Iterable[Path]) -> HttpAnswerer | None:
    """Who listens there, and whether it holds one of our tokens; None without a listener. No token is sent."""
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
