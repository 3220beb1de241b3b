"""JSON-RPC batches, which 2025-03-26 asks for and every other revision forbids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dari.mcp.failures import invalid_request
from dari.mcp.link import Link
from dari.mcp.session import Running
from dari.rpc.codec import UNREADABLE, decode_batch, error_message

if TYPE_CHECKING:
    from dari.mcp.server import Server

MOST_MESSAGES = 1000


class _Batch:
    """Gathers the replies of one batch and sends them as one array, in the order of the requests."""

    def __init__(self, link: Link, size: int) -> None:
        self.link = link
        self._replies = [b""] * size
        self._open = size

    def close(self, place: int, reply: bytes) -> None:
        """A message was served; what needs no reply leaves its place empty."""
        self._replies[place] = reply
        self._open -= 1
        if self._open:
            return
        replies = [reply for reply in self._replies if reply]
        if replies:
            self.link.reply(b"[" + b",".join(replies) + b"]")
        else:
            self.link.say_nothing()


class _Part(Link):
    """The way back of one message of a batch."""

    def __init__(self, batch: _Batch, place: int) -> None:
        self._batch = batch
        self._place = place
        self.session = batch.link.session
        self.grant = batch.link.grant
        self.transport = batch.link.transport
        self.owns_ids = batch.link.owns_ids
        self.can_ask = batch.link.can_ask
        self._is_running = False
        self._reply = b""

    def started(self, call: Running) -> None:
        self._is_running = True

    def reply(self, message: bytes, code: int = 0) -> None:
        self._reply = message
        if self._is_running:
            self._batch.close(self._place, message)

    def abandon(self, message: bytes) -> None:
        self.reply(message)

    def received(self) -> None:
        """The message was taken. Unless a call runs, its reply is here by now, or none will come."""
        if not self._is_running:
            self._batch.close(self._place, self._reply)

    def emit(self, message: bytes) -> None:
        self._batch.link.emit(message)

    async def drain(self) -> None:
        await self._batch.link.drain()


def receive_batch(server: Server, data: bytes, link: Link) -> None:
    """Serve every message of a batch; the replies leave together when the last one is there."""
    try:
        parts = [] if isinstance(link, _Part) else [bytes(part) for part in decode_batch(data)]
    except UNREADABLE:
        parts = []
    if not parts or len(parts) > MOST_MESSAGES:
        fault = invalid_request(f"a batch holds 1 to {MOST_MESSAGES} messages and no other batch")
        link.reply(error_message(None, fault.code, fault.message), fault.code)
        return
    batch = _Batch(link, len(parts))
    for place, data in enumerate(parts):
        part = _Part(batch, place)
        server.receive(data, part)
        part.received()
