"""JSON-RPC batches, which 2025-03-26 asks for and every other revision forbids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dari.mcp.error_mapping import invalid_request
from dari.mcp.reply_channel import ReplyChannel
from dari.mcp.session import RunningRequest
from dari.rpc.codec import MAX_BATCH_MESSAGES, UNREADABLE, decode_batch, error_message

if TYPE_CHECKING:
    from dari.mcp.server import Server


class _Batch:
    """Gathers the replies of one batch and sends them as one array, in the order of the requests."""

    def __init__(self, channel: ReplyChannel, size: int) -> None:
        self.channel = channel
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
            self.channel.reply(b"[" + b",".join(replies) + b"]")
        else:
            self.channel.say_nothing()


class _Part(ReplyChannel):
    """The way back of one message of a batch."""

    def __init__(self, batch: _Batch, place: int) -> None:
        self._batch = batch
        self._place = place
        self.session = batch.channel.session
        self.grant = batch.channel.grant
        self.transport = batch.channel.transport
        self.owns_ids = batch.channel.owns_ids
        self.can_ask = batch.channel.can_ask
        self._is_running = False
        self._reply = b""

    def started(self, call: RunningRequest) -> None:
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
        self._batch.channel.emit(message)

    async def drain(self) -> None:
        await self._batch.channel.drain()


def receive_batch(server: Server, data: bytes, channel: ReplyChannel) -> None:
    """Serve every message of a batch; the replies leave together when the last one is there."""
    try:
        parts = [] if isinstance(channel, _Part) else [bytes(part) for part in decode_batch(data)]
    except UNREADABLE:
        parts = []
    if not parts:
        fault = invalid_request(f"a batch holds 1 to {MAX_BATCH_MESSAGES} messages and no other batch")
        channel.reply(error_message(None, fault.code, fault.message), fault.code)
        return
    batch = _Batch(channel, len(parts))
    for place, data in enumerate(parts):
        part = _Part(batch, place)
        server.receive(data, part)
        part.received()
