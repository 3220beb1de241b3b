"""What an exchange knows, the answers made here, and every way it ends."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dari.proxy.engine import response_heads
from dari.proxy.engine.body_framing import note_body
from dari.proxy.engine.flow_control import CONNECTING, PAUSED, PEER_FULL
from dari.proxy.engine.heads import BadHead, RequestHead, ResponseHead
from dari.proxy.engine.hooks import PASS, Decision, LocalResponse
from dari.proxy.engine.local_response import LocalBody, make_refusal, may_have_body
from dari.proxy.engine.targets import RequestTarget
from dari.proxy.engine.throttled_writer import ThrottledWriter
from dari.proxy.engine.upstream import Route, UpstreamConnection
from dari.proxy.flow import Event, Flow

if TYPE_CHECKING:
    from dari.proxy.engine.client import ClientConnection

_NEVER = float("inf")


class Ending:
    """The part of an exchange that both directions share. One writer: the event loop's thread."""

    __slots__ = (
        "_began", "_core", "_pacer_down", "_pacer_up", "_source", "client", "decision", "dechunks", "flow",
        "has_begun_response", "head", "is_muted", "is_over", "is_request_done", "is_response_done", "keeps", "outbox",
        "reply", "route", "spools", "target", "upstream",
    )  # fmt: skip

    def __init__(
        self,
        client: ClientConnection,
        head: RequestHead,
        target: RequestTarget,
        route: Route,
        flow: Flow,
        decision: Decision,
    ) -> None:
        self._core = client.core
        self._began = time.perf_counter()
        self.client = client
        self.head = head
        self.target = target
        self.route = route
        self.flow = flow
        self.decision = decision
        self.upstream: UpstreamConnection | None = None
        self.outbox = b""
        """What goes up once there is a connection; kept while it may have to be sent again."""
        self.is_request_done = False
        self.is_response_done = False
        self.has_begun_response = False
        """A final status line was written to the client: nothing but that response may follow."""
        self.is_over = False
        self.keeps = head.keep_alive
        """Whether the client's connection serves another request after this one."""
        self.dechunks = False
        """The body goes out without its chunks, for a client of HTTP/1.0."""
        self.is_muted = False
        """The status was rewritten to one without a body."""
        self.reply: ResponseHead | None = None
        self.spools = self._core.recorder.spools and decision.is_recorded
        self._source: LocalBody | None = None
        self._pacer_up: ThrottledWriter | None = None
        self._pacer_down: ThrottledWriter | None = None

    # Answers made here.

    def answer(self, answer: LocalResponse, event: Event) -> None:
        flow = self.flow
        flow.event = event
        try:
            self._source = source = LocalBody(answer)
        except OSError as error:
            flow.error = f"cannot read {answer.file}: {error.strerror or error}"
            self.answer(make_refusal(502, flow.error), event)
            return
        self._detach()
        self.outbox = b""
        self._head_known()
        flow.status = status = answer.status if self.decision is PASS else self._core.rules.respond(flow, answer.status)
        try:
            flow.response_headers, wire = response_heads.local_head(self, source, answer.status, status)
        except BadHead as error:
            source.close()
            self._break(str(error), "upstream_error")
            return
        self.has_begun_response = True
        # The rest of an upload must keep coming; a slow reader may take its time.
        limit_s = _NEVER if self.is_request_done else self._core.config.request_timeout_s
        self.client.deadline = self._core.clock() + limit_s
        self.client.free(CONNECTING | PAUSED)
        has_body = may_have_body(status, flow.method)
        pacer = self._pacer_down
        # A mapped answer stands for the origin's, so it is as slow; a refusal is not.
        delay_s = pacer.throttle.delay_s(flow) if pacer is not None and event == "map_local" else 0.0
        if delay_s > 0:
            self._core.loop.call_later(delay_s, self._send_answer, wire, has_body)
        else:
            self._send_answer(wire, has_body)

    def _send_answer(self, wire: bytes, has_body: bool) -> None:
        if self.is_over:
            return
        self.client.transport.write(wire)
        if has_body:
            self.client_writable()
        else:
            self._end_of_source()

    def client_writable(self) -> None:
        """The client takes more: go on with a local answer, or let the origin send."""
        if self.upstream is not None:
            self.upstream.free(PEER_FULL)
        source, pacer = self._source, self._pacer_down
        if pacer is not None and pacer.is_busy:
            return
        while source is not None and not self.is_over and not self.client.is_full:
            try:
                block = source.block()
            except OSError as error:
                self._end_broken(str(error), "upstream_error")
                return
            if not block:
                self._end_of_source()
                return
            self._note_down((block,))
            if pacer is not None:
                pacer.write(block, self.client_writable)
                return
            self.client.transport.write(block)

    def client_full(self) -> None:
        if self.upstream is not None:
            self.upstream.hold(PEER_FULL)

    def _end_of_source(self) -> None:
        if self._source is not None:
            self._source.close()
            self._source = None
        self._response_done()

    def _head_known(self) -> None:
        self.flow.state = "response"
        self.flow.head_ms = (time.perf_counter() - self._began) * 1000

    def _note_down(self, payload: Sequence[bytes], is_all: bool = False) -> None:
        """`is_all`: the whole body is here. When the sample holds it, nobody has to keep it elsewhere."""
        body = self.flow.response_body
        note_body(body, payload, self._core.config.sample_bytes)
        if self.spools and not (is_all and len(body.sample) == body.size_bytes):
            for piece in payload:
                self._core.recorder.body(self.flow, False, piece)

    # Ends.

    def client_lost(self, reason: str = "the client closed the connection") -> None:
        if self.is_over:
            return
        if not self.is_response_done:
            self.flow.error = reason
        self._finish()

    def timed_out(self) -> None:
        if self.has_begun_response:
            self._break("the client or the origin went silent", "upstream_error")
        elif self.is_request_done:
            self._fail(504, f"no response within {self._core.config.response_timeout_s:g} s")
        else:
            self.keeps = False
            self._fail(408, "the request's body stopped arriving", "bad_request")

    def _response_done(self) -> None:
        if self.is_over:
            return
        self.is_response_done = True
        self.flow.response_body.outcome = "complete"
        self._finish_if_done()

    def _finish_if_done(self) -> None:
        # With `keeps` the rest of an upload is awaited: the next request begins behind it.
        if self.is_response_done and (self.is_request_done or not self.keeps):
            self._finish()

    def _fail(self, status: int, reason: str, event: Event = "upstream_error") -> None:
        """Answer for an origin that cannot; never after a status line."""
        self.flow.error = reason
        if self.has_begun_response:
            self._end_broken(reason, event)
        else:
            self.answer(make_refusal(status, reason), event)

    def _end_broken(self, reason: str, event: Event) -> None:
        """End the client's connection so that it cannot take the response for a whole one."""
        is_told_by_close = self._source is not None or (
            self.reply is not None and not self.dechunks and response_heads.shows_its_end(self.reply)
        )
        if not is_told_by_close:
            self._break(reason, event)
            return
        self.flow.event, self.flow.error = event, reason
        self.keeps = False
        self._finish()

    def _break(self, reason: str, event: Event) -> None:
        self.flow.event, self.flow.error = event, reason
        self.client.reset()
        self._finish()

    def _release(self) -> None:
        """Both directions are through: the origin's connection may serve the next request."""
        upstream, self.upstream = self.upstream, None
        if upstream is not None:
            upstream.release()

    def _detach(self) -> None:
        upstream, self.upstream = self.upstream, None
        if upstream is not None:
            upstream.drop()

    def _finish(self) -> None:
        if self.is_over:
            return
        self.is_over = True
        self._detach()
        if self._source is not None:
            self._source.close()
        if self._pacer_up is not None and self._pacer_down is not None:
            self._pacer_up.close()
            self._pacer_down.close()
        self._core.finish(self.flow, (time.perf_counter() - self._began) * 1000)
        self.client.exchange_over(self.keeps, self.is_request_done)
