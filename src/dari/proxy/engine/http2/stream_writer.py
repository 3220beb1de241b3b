"""A response as HTTP/2 puts it on the wire: fields, data and trailers of one stream."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from dari.proxy.engine import response_heads
from dari.proxy.engine.heads import ResponseHead, without
from dari.proxy.engine.http2.fields import plain_fields
from dari.proxy.flow import Flow, Headers

if TYPE_CHECKING:
    from dari.proxy.engine.exchange import Exchange
    from dari.proxy.engine.http2.stream import Http2Stream


class StreamWriter:
    """Implements `ResponseWriter`."""

    __slots__ = ("_headers", "_status", "_stream")

    is_http2 = True

    def __init__(self, transport: asyncio.Transport) -> None:
        self._stream = cast("Http2Stream", transport)
        self._status = 0
        self._headers: Headers = []

    def send_continue(self) -> None:
        self._send(100, [])

    def send_interim(self, head: ResponseHead) -> None:
        self._send(head.status, without(head.headers, head.drop or ()))

    def prepare(self, exchange: Exchange, head: ResponseHead, status: int) -> None:
        self._status, self._headers = status, response_heads.final_headers(exchange, head, status)

    def send_head(self, body: bytes) -> None:
        self._send(self._status, self._headers)
        if body:
            self._stream.write(body)

    def send_local_head(self, wire: bytes, flow: Flow) -> None:
        assert flow.status is not None
        self._send(flow.status, flow.response_headers)

    def end(self, exchange: Exchange) -> None:
        trailers = None if exchange.is_muted else exchange.flow.response_body.trailers
        self._stream.finish(plain_fields(trailers) if trailers else [])

    def leaves_upload(self, exchange: Exchange) -> bool:
        # The rest of an upload that nobody reads is not awaited: the next request has a stream of its own.
        return exchange.upstream is None

    def _send(self, status: int, headers: Headers) -> None:
        self._stream.send_head([(b":status", b"%d" % status), *plain_fields(headers)])
