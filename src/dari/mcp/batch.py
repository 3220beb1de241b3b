"""JSON-RPC batches, which 2025-03-26 asks for and every other revision forbids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dari.mcp.failures import invalid_request
from dari.mcp.link import Link
from dari.rpc.codec import UNREADABLE, decode_batch, decode_message, error_message

if TYPE_CHECKING:
    from dari.mcp.server import Server

MOST_MESSAGES = 1000


class _Collecting(Link):
    """Gathers the replies of one batch and sends them as one array."""

    def __init__(self, outer: Link, expected: int) -> None:
        self._outer = outer
        self._expected = expected
        self._replies: list[bytes] = []
        self.session = outer.session
        self.grant = outer.grant

    def reply(self, message: bytes, code: int = 0) -> None:
        self._replies.append(message)
        if len(self._replies) == self._expected:
            self._outer.reply(b"[" + b",".join(self._replies) + b"]")

    def abandon(self, message: bytes) -> None:
        self.reply(message)

    def emit(self, message: bytes) -> None:
        self._outer.emit(message)

    async def drain(self) -> None:
        await self._outer.drain()


def receive_batch(server: Server, data: bytes, link: Link) -> None:
    """Serve every message of a batch; the replies leave together when the last one is there."""
    try:
        parts = [bytes(part) for part in decode_batch(data)]
    except UNREADABLE:
        parts = []
    if not parts or len(parts) > MOST_MESSAGES:
        fault = invalid_request(f"a batch holds 1 to {MOST_MESSAGES} messages")
        link.reply(error_message(None, fault.code, fault.message), fault.code)
        return
    collecting = _Collecting(link, sum(_expects_reply(part) for part in parts))
    for part in parts:
        server.receive(part, collecting)


def _expects_reply(part: bytes) -> bool:
    """Requests and unreadable messages are answered; notifications and responses are not."""
    try:
        message = decode_message(part)
    except UNREADABLE:
        return True
    is_call = isinstance(message.method, str)
    is_answer = not is_call and (message.result is not None or message.error is not None)
    return not (is_answer or (is_call and not isinstance(message.id, int | str | float | None)))
