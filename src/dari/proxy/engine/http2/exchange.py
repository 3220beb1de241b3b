"""A request on a stream: the exchange of HTTP/1.1, whose response goes out as fields, data and trailers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from dari.proxy.engine import response_heads
from dari.proxy.engine.exchange import Exchange
from dari.proxy.engine.heads import BadHead, RequestHead, ResponseHead, without
from dari.proxy.engine.hooks import Decision
from dari.proxy.engine.http2.fields import plain_fields
from dari.proxy.engine.targets import RequestTarget
from dari.proxy.engine.upstream import Route, UpstreamConnection
from dari.proxy.flow import Event, Flow, Headers

if TYPE_CHECKING:
    from dari.proxy.engine.client import ClientConnection
    from dari.proxy.engine.http2.stream import Http2Stream


class StreamExchange(Exchange):
    __slots__ = ("_stream",)

    def __init__(
        self,
        client: ClientConnection,
        head: RequestHead,
        target: RequestTarget,
        route: Route,
        flow: Flow,
        decision: Decision,
    ) -> None:
        super().__init__(client, head, target, route, flow, decision)
        self._stream = cast("Http2Stream", client.transport)
        self.dechunks = True  # a stream frames its data itself

    def informational(self, head: ResponseHead) -> None:
        if head.status == 100:
            if self._has_continued:
                return
            self._has_continued = True
        if not self.has_begun_response:
            self._send_head(head.status, without(head.headers, head.drop or ()))

    def _continue(self) -> None:
        if not (self.is_over or self.is_request_done or self._has_continued or self.has_begun_response):
            self._has_continued = True
            self._send_head(100, [])

    def _send_head(self, status: int, headers: Headers) -> None:
        self._stream.send_head([(b":status", b"%d" % status), *plain_fields(headers)])

    def _send_answer(self, wire: bytes, has_body: bool) -> None:
        if self.is_over:
            return
        assert self.flow.status is not None
        self._send_head(self.flow.status, self.flow.response_headers)
        if has_body:
            self.client_writable()
        else:
            self._end_of_source()

    def _deliver(self, head: ResponseHead, status: int, raw: bytes, payload: Sequence[bytes], is_done: bool) -> None:
        try:
            headers = response_heads.final_headers(self, head, status)
        except BadHead as error:
            self._fail(error.status, str(error))
            return
        self.reply = head
        self.has_begun_response = True
        self._send_head(status, headers)
        self._pass_down(raw, payload, is_done)

    def _response_done(self) -> None:
        if not self.is_over:
            trailers = None if self.is_muted else self.flow.response_body.trailers
            self._stream.finish(plain_fields(trailers) if trailers else [])
        super()._response_done()

    def upstream_lost(self, upstream: UpstreamConnection, exc: Exception | None) -> None:
        super().upstream_lost(upstream, exc)
        self._finish_if_done()

    def _finish_if_done(self) -> None:
        # The rest of an upload that nobody reads is not awaited: the next request has a stream of its own.
        if self.is_response_done and (self.is_request_done or self.upstream is None):
            self._finish()

    def _end_broken(self, reason: str, event: Event) -> None:
        self._break(reason, event)

    def _retarget(self, url: str) -> bool:
        is_found = super()._retarget(url)
        self.route = self.route._replace(is_multiplexed=self.route.scheme == "https")
        return is_found
