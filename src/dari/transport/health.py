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
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from dari.rpc.codec import encode
from dari.transport.guard import TokenFile

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
