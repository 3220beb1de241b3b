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
        self._require_right_replies(load, connections)
        return load

    def _require_right_replies(self, load: wrk.Load, connections: int) -> None:
        if any(load.errors.values()) or not load.requests:
            raise BenchError(f"{self.who} failed under load: {load.errors} in {load.requests} requests")
        # wrk counts bytes as they arrive, so a reply that is on its way at the end counts in part: one a connection.
        found = load.reply_bytes / load.requests
        if abs(found - self.reply_bytes) > (0.02 + connections / load.requests) * self.reply_bytes + 1:
            raise BenchError(
                f"{self.who} answered {found:.1f} bytes a call under load, {self.reply_bytes} to one call",
                "some replies were no results; send the request by hand and look",
            )


def prepare(contender: Contender, port: int, call: Call, era: Era) -> CheckedCall:
    """Handshake where the era has one, then one checked call."""
    # All servers get the same headers; only ours looks at the token.
    headers = {"Authorization": f"Bearer {TOKEN}"}
    if era == HANDSHAKE and contender.speaks_mcp:
        headers["Mcp-Session-Id"] = open_session(contender.name, port, headers)
    request = http_request(port, {**headers, **call.headers(era)}, call.message(era))
    return check(contender.name, port, request, call)


def check(who: str, port: int, request: bytes, call: Call) -> CheckedCall:
    """Send the request once and look at the reply."""
    reply = exchange(who, port, request)
    call.check(who, reply.json())
    return CheckedCall(who, port, request, reply.size)


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes
    size: int
    """All bytes of it on the wire."""

    def json(self) -> Json:
        text = self.body
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            # The reply is the last event; a notification may come before it.
            data = [line.removeprefix(b"data:") for line in text.splitlines() if line.startswith(b"data:")]
            text = data[-1] if data else b"null"
        decoded = json.loads(text or b"null")
        if self.status != 200 or not isinstance(decoded, dict):
            raise BenchError(f"HTTP {self.status}: {self.body[:400]!r}")
        return decoded


def open_session(who: str, port: int, headers: dict[str, str]) -> str:
    """Shake hands as a client of 2025-11-25 does; the id of the session."""
    reply = exchange(who, port, http_request(port, headers, initialize()))
    session = reply.headers.get("mcp-session-id", "")
    if reply.status != 200 or not session:
        raise BenchError(f"{who} answered initialize with {reply.status} {reply.body[:400]!r}")
    headers = {**headers, "Mcp-Session-Id": session, "MCP-Protocol-Version": HANDSHAKE}
    exchange(who, port, http_request(port, headers, initialized()))
    return session


def exchange(who: str, port: int, request: bytes) -> Reply:
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
            while not body.endswith(b"0\r\n\r\n"):
                body += _receive(who, connection)
            size, body = len(head) + 4 + len(body), _joined(body)
        else:
            length = int(headers.get("content-length", 0))
            while len(body) < length:
                body += _receive(who, connection)
            size = len(head) + 4 + length
        return Reply(int(status_line.split()[1]), headers, body, size)


def _joined(chunks: bytes) -> bytes:
    """The content of a chunked body."""
    content = b""
    while chunks:
        size, _, rest = chunks.partition(b"\r\n")
        length = int(size.partition(b";")[0], 16)
        content, chunks = content + rest[:length], rest[length + 2 :]
        if not length:
            break
    return content


def _receive(who: str, connection: socket.socket) -> bytes:
    if data := connection.recv(1 << 16):
        return data
    raise BenchError(f"{who} closed the connection in the middle of a reply")
