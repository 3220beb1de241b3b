"""A response as HTTP/1.1 puts it on the wire. `http2.stream_writer` has the other form."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from dari.proxy.engine import response_heads
from dari.proxy.engine.heads import ResponseHead
from dari.proxy.flow import Flow

if TYPE_CHECKING:
    from dari.proxy.engine.exchange import Exchange


class ResponseWriter(Protocol):
    """How the head, the 100 and the end of one response reach the client; bodies are written to its transport."""

    is_http2: bool

    def send_continue(self) -> None: ...

    def send_interim(self, head: ResponseHead) -> None:
        """A 1xx of the origin."""

    def prepare(self, exchange: Exchange, head: ResponseHead, status: int) -> None:
        """Make the final head, ready for `send_head`; raises BadHead when it may not be sent."""

    def send_head(self, body: bytes) -> None:
        """Send the head that was prepared, and the first bytes of the body with it."""

    def send_local_head(self, wire: bytes, flow: Flow) -> None:
        """The head of a response made here: as bytes of HTTP/1.1, or from the flow."""

    def end(self, exchange: Exchange) -> None:
        """The body is complete."""

    def leaves_upload(self, exchange: Exchange) -> bool:
        """Whether the exchange may end while its request is still coming."""


class Http1Writer:
    __slots__ = ("_head", "_transport")

    is_http2 = False

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""

    def send_continue(self) -> None:
        self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def send_interim(self, head: ResponseHead) -> None:
        self._transport.write(response_heads.informational_head(head))

    def prepare(self, exchange: Exchange, head: ResponseHead, status: int) -> None:
        self._head = response_heads.wire_head(exchange, head, status)

    def send_head(self, body: bytes) -> None:
        # One write for head and body: on stock asyncio each is a system call.
        self._transport.write(self._head + body if body else self._head)

    def send_local_head(self, wire: bytes, flow: Flow) -> None:
        self._transport.write(wire)

    def end(self, exchange: Exchange) -> None:
        """Its framing has said so."""

    def leaves_upload(self, exchange: Exchange) -> bool:
        # With `keeps` the rest of an upload is awaited: the next request begins behind it.
        return not exchange.keeps
