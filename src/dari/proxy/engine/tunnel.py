"""Bytes both ways, unread: CONNECT tunnels and what follows 101. Each direction ends by itself (half-close)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from dari.proxy.engine.flow_control import PACED, PEER_FULL, PIECE_BYTES, FlowControlledProtocol
from dari.proxy.engine.hooks import ThrottleHook
from dari.proxy.flow import Body, Flow

if TYPE_CHECKING:
    from dari.proxy.engine.core import EngineContext

ESTABLISHED = b"HTTP/1.1 200 Connection Established\r\n\r\n"

Tap = Callable[[bool, bytes], None]
"""(from the client?, bytes): sees what goes by."""


class TunnelEnd(FlowControlledProtocol):
    def __init__(self, tunnel: Tunnel, body: Body, from_client: bool) -> None:
        self._tunnel = tunnel
        self._body = body
        self._from_client = from_client
        self.other: TunnelEnd
        self.is_ended = False
        """Its sender has said that nothing more comes."""
        self.is_lost = False

    def data_received(self, data: bytes) -> None:
        if self._tunnel.tap is not None and (self.has_more or len(data) > PIECE_BYTES):
            self.in_slices(data, self._received)
        else:
            self._received(data)

    def _received(self, data: bytes) -> None:
        tunnel = self._tunnel
        self._body.size_bytes += len(data)
        if tunnel.tap is not None:
            tunnel.tap(self._from_client, data)
        self.other.transport.write(data)
        if tunnel.throttle is not None:
            wait_s = tunnel.throttle.take("upstream" if self._from_client else "downstream", len(data))
            if wait_s > 0:
                self.hold(PACED)
                asyncio.get_running_loop().call_later(wait_s, self.free, PACED)

    def eof_received(self) -> bool:
        if self.ends_later():
            return True
        self.is_ended = True
        self._body.outcome = "complete"
        if self.other.is_ended or self.other.is_lost or not self.other.transport.can_write_eof():
            self._tunnel.close()
            return False
        self.other.transport.write_eof()
        self.watch()
        return True

    def pause_writing(self) -> None:
        self.other.hold(PEER_FULL)

    def resume_writing(self) -> None:
        self.other.free(PEER_FULL)

    def connection_lost(self, exc: Exception | None) -> None:
        # After its last byte a reset is how HTTPS ends every day: a close_notify that reached nobody.
        problem = None if self.is_ended else exc
        self.is_lost = True
        self.is_ended = True
        self._tunnel.lost(self, problem)


class Tunnel:
    """Two ends and the flow that tells of them. `on_done` is called once, when both are gone."""

    def __init__(
        self,
        flow: Flow,
        on_done: Callable[[Tunnel, Exception | None], None],
        throttle: ThrottleHook | None = None,
        tap: Tap | None = None,
    ) -> None:
        self.flow = flow
        self.throttle = throttle
        self.tap = tap
        self._on_done = on_done
        self._problem: Exception | None = None
        self.client = TunnelEnd(self, flow.request_body, True)
        self.origin = TunnelEnd(self, flow.response_body, False)
        self.client.other = self.origin
        self.origin.other = self.client

    def join(self, client: asyncio.Transport, origin: asyncio.Transport) -> None:
        """Take both transports over; their reading must not be paused for a reason of their old protocols."""
        self.client.connection_made(client)
        self.origin.connection_made(origin)
        client.set_protocol(self.client)
        origin.set_protocol(self.origin)

    def close(self) -> None:
        self.client.transport.close()
        self.origin.transport.close()

    def abort(self) -> None:
        self.client.transport.abort()
        self.origin.transport.abort()

    def lost(self, end: TunnelEnd, exc: Exception | None) -> None:
        if exc is not None and self._problem is None:
            self._problem = exc
        if end.other.is_lost:
            self._on_done(self, self._problem)
        elif exc is not None:
            end.other.reset()
        else:
            end.other.transport.close()


def join(
    core: EngineContext,
    flow: Flow,
    client: asyncio.Transport,
    origin: asyncio.Transport,
    early: bytes,
    tap: Tap | None = None,
    greeting: bytes = b"",
) -> Tunnel:
    """Make a tunnel of two transports; `early` is what the client sent before it stood, `greeting` what the server."""
    tunnel = Tunnel(flow, core.tunnel_done, core.throttle_of(flow), tap)
    flow.state = "response"
    core.tunnels.add(tunnel)
    tunnel.join(client, origin)
    if early:
        tunnel.client.data_received(early)
    if greeting:
        tunnel.origin.data_received(greeting)
    return tunnel
