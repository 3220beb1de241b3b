"""Calls over Streamable HTTP: open a session, check one reply, then let wrk repeat the request."""

import json
import socket
from dataclasses import dataclass
from pathlib import Path

from bench import wrk
from bench.contenders import Contender
from bench.errors import BenchError
from bench.messages import HANDSHAKE, Call, Era, Json, http_request, initialize, initialized
from bench.processes import TOKEN

REPLY_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class CheckedCall:
    """A request that is known to be answered rightly, ready to repeat."""

    who: str
    port: int
    request: bytes
    reply_bytes: int

    def load(self, connections: int, seconds: int, scratch: Path) -> wrk.Load:
        load = wrk.run(self.port, self.request, connections, seconds, scratch)
        self._require_right_replies(load)
        return load

    def _require_right_replies(self, load: wrk.Load) -> None:
        if any(load.errors.values()) or not load.requests:
            raise BenchError(f"{self.who} failed under load: {load.errors} in {load.requests} requests")
        # wrk counts bytes as they arrive, so a reply that is on its way at the end counts in part.
        found = load.reply_bytes / load.requests
        if abs(found - self.reply_bytes) > 0.02 * self.reply_bytes + 1:
            raise BenchError(
                f"{self.who} answered {found:.1f} bytes a call under load, {self.reply_bytes} to one call",
                "some replies were no results; send the request by hand and look",
            )


def prepare(contender: Contender, port: int, call: Call, era: Era) -> CheckedCall:
    """Handshake where the era has one, then one checked call."""
    # All servers get the same headers; only ours looks at the token.
    headers = {"Authorization": f"Bearer {TOKEN}"}
    if era == HANDSHAKE and contender.speaks_mcp:
        headers["Mcp-Session-Id"] = _open_session(contender, port, headers)
    request = http_request(port, {**headers, **call.headers(era)}, call.message(era))
    reply = _exchange(contender.name, port, request)
    call.check(contender.name, reply.json())
    return CheckedCall(contender.name, port, request, reply.size)


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    headers: dict[str, str]
    body: bytes
    size: int

    def json(self) -> Json:
        decoded = json.loads(self.body)
        if self.status != 200 or not isinstance(decoded, dict):
            raise BenchError(f"HTTP {self.status}: {self.body[:400]!r}")
        return decoded


def _open_session(contender: Contender, port: int, headers: dict[str, str]) -> str:
    reply = _exchange(contender.name, port, http_request(port, headers, initialize()))
    session = reply.headers.get("mcp-session-id", "")
    if reply.status != 200 or not session:
        raise BenchError(f"{contender.name} answered initialize with {reply.status} {reply.body[:400]!r}")
    headers = {**headers, "Mcp-Session-Id": session, "MCP-Protocol-Version": HANDSHAKE}
    _exchange(contender.name, port, http_request(port, headers, initialized()))
    return session


def _exchange(who: str, port: int, request: bytes) -> _Reply:
    """One request on its own connection, by raw bytes: wrk's count is compared with this size."""
    with socket.create_connection(("127.0.0.1", port), timeout=REPLY_TIMEOUT_S) as connection:
        connection.sendall(request)
        received = b""
        while b"\r\n\r\n" not in received:
            received += _receive(who, connection)
        head, _, body = received.partition(b"\r\n\r\n")
        status_line, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        if "chunked" in headers.get("transfer-encoding", ""):
            raise BenchError(f"{who} answered in chunks: {received[:400]!r}")
        length = int(headers.get("content-length", 0))
        while len(body) < length:
            body += _receive(who, connection)
        return _Reply(int(status_line.split()[1]), headers, body, len(head) + 4 + length)


def _receive(who: str, connection: socket.socket) -> bytes:
    if data := connection.recv(1 << 16):
        return data
    raise BenchError(f"{who} closed the connection in the middle of a reply")
