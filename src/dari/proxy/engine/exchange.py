"""One request and its response.

    upload.begin → (delay, rules, pause) → connect → request goes up → response comes down → finish

Both bodies flow at the same time, so an early response is delivered while its request is still being uploaded.
`Upload` is the way up, `Download` the way down, the client's `ResponseWriter` the form that a response has on the wire.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dari.proxy.engine import response_writer
from dari.proxy.engine.body_framing import note_body
from dari.proxy.engine.connector import ConnectFailed, FarEnd
from dari.proxy.engine.download import Download
from dari.proxy.engine.flow_control import CONNECTING, PAUSED, PEER_FULL
from dari.proxy.engine.heads import BadHead, RequestHead, ResponseHead
from dari.proxy.engine.hooks import PASS, Decision, LocalResponse
from dari.proxy.engine.local_response import LocalBody, make_refusal, may_have_body
from dari.proxy.engine.targets import RequestTarget
from dari.proxy.engine.throttled_writer import ThrottledWriter
from dari.proxy.engine.tunnel import ESTABLISHED, join
from dari.proxy.engine.upload import Upload
from dari.proxy.engine.upstream import Route, UpstreamConnection
from dari.proxy.flow import Event, Flow

if TYPE_CHECKING:
    from dari.proxy.engine.client import ClientConnection

_NEVER = float("inf")


class Exchange:
    """What both directions share, and every way it ends. One writer: the event loop's thread."""

    __slots__ = (
        "began", "client", "core", "decision", "dechunks", "download", "flow", "has_begun_response", "head", "is_muted",
        "is_over", "is_request_done", "is_response_done", "keeps", "outbox", "reply", "route", "source", "spools",
        "target", "throttle_down", "throttle_up", "upload", "upstream", "writer",
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
        self.core = client.core
        self.began = time.perf_counter()
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
        self.writer = client.writer
        self.dechunks = self.writer.is_http2
        """The body goes out without its chunks: for HTTP/1.0, or because a stream frames its data itself."""
        self.is_muted = False
        """The status was rewritten to one without a body."""
        self.reply: ResponseHead | None = None
        self.spools = self.core.recorder.spools and decision.is_recorded
        self.source: LocalBody | None = None
        self.throttle_up: ThrottledWriter | None = None
        self.throttle_down: ThrottledWriter | None = None
        self.upload = Upload(self)
        self.download = Download(self, decision)

    # Answers made here.

    def answer(self, answer: LocalResponse, event: Event) -> None:
        flow = self.flow
        flow.event = event
        try:
            self.source = source = LocalBody(answer)
        except OSError as error:
            flow.error = f"cannot read {answer.file}: {error.strerror or error}"
            self.answer(make_refusal(502, flow.error), event)
            return
        self.drop_upstream()
        self.outbox = b""
        self.upload.stop()
        self.download.stop()
        self.note_head()
        flow.status = status = answer.status if self.decision is PASS else self.core.rules.respond(flow, answer.status)
        try:
            flow.response_headers, wire = response_writer.local_head(self, source, answer.status, status)
        except BadHead as error:
            source.close()
            self.break_off(str(error), "upstream_error")
            return
        self.has_begun_response = True
        # The rest of an upload must keep coming; a slow reader may take its time.
        limit_s = _NEVER if self.is_request_done else self.core.config.request_timeout_s
        self.client.deadline = self.core.clock() + limit_s
        self.client.free(CONNECTING | PAUSED)
        has_body = may_have_body(status, flow.method)
        pacer = self.throttle_down
        # A mapped answer stands for the origin's, so it is as slow; a refusal is not.
        delay_s = pacer.throttle.delay_s(flow) if pacer is not None and event == "map_local" else 0.0
        if delay_s > 0:
            self.core.loop.call_later(delay_s, self._send_answer, wire, has_body)
        else:
            self._send_answer(wire, has_body)

    def _send_answer(self, wire: bytes, has_body: bool) -> None:
        if self.is_over:
            return
        self.writer.send_local_head(wire, self.flow)
        if has_body:
            self.client_writable()
        else:
            self._end_of_source()

    def client_writable(self) -> None:
        """The client takes more: go on with a local answer, or let the origin send."""
        if self.upstream is not None:
            self.upstream.free(PEER_FULL)
        source, pacer = self.source, self.throttle_down
        if pacer is not None and pacer.is_busy:
            return
        while source is not None and not self.is_over and not self.client.is_full:
            try:
                block = source.block()
            except OSError as error:
                self.end_broken(str(error), "upstream_error")
                return
            if not block:
                self._end_of_source()
                return
            self.note_response((block,))
            if pacer is not None:
                pacer.write(block, self.client_writable)
                return
            self.client.transport.write(block)

    def client_full(self) -> None:
        if self.upstream is not None:
            self.upstream.hold(PEER_FULL)

    def _end_of_source(self) -> None:
        if self.source is not None:
            self.source.close()
            self.source = None
        self.response_done()

    def note_head(self) -> None:
        self.flow.state = "response"
        self.flow.head_ms = (time.perf_counter() - self.began) * 1000

    def note_response(self, payload: Sequence[bytes], is_all: bool = False) -> None:
        """`is_all`: the whole body is here. When the sample holds it, nobody has to keep it elsewhere."""
        body = self.flow.response_body
        note_body(body, payload, self.core.config.sample_bytes)
        if self.spools and not (is_all and len(body.sample) == body.size_bytes):
            for piece in payload:
                self.core.recorder.body(self.flow, False, piece)

    # Ends.

    def client_lost(self, reason: str = "the client closed the connection") -> None:
        if self.is_over:
            return
        if not self.is_response_done:
            self.flow.error = reason
        self.finish()

    def timed_out(self) -> None:
        if self.has_begun_response:
            self.break_off("the client or the origin went silent", "upstream_error")
        elif self.is_request_done:
            self.fail(504, f"no response within {self.core.config.response_timeout_s:g} s")
        else:
            self.keeps = False
            self.fail(408, "the request's body stopped arriving", "bad_request")

    def response_done(self) -> None:
        if self.is_over:
            return
        self.writer.end(self)
        self.is_response_done = True
        self.flow.response_body.outcome = "complete"
        self.finish_if_done()

    def finish_if_done(self) -> None:
        if self.is_response_done and (self.is_request_done or self.writer.leaves_upload(self)):
            self.finish()

    def fail(self, status: int, reason: str, event: Event = "upstream_error") -> None:
        """Answer for an origin that cannot; never after a status line."""
        self.flow.error = reason
        if self.has_begun_response:
            self.end_broken(reason, event)
        else:
            self.answer(make_refusal(status, reason), event)

    def edit_failed(self, error: Exception) -> None:
        """A rule's edit of a body raised: neither body may pass for the edited one."""
        if not (self.is_over or self.has_begun_response):
            self.fail(502, f"the rule's edit of the body failed: {str(error) or type(error).__name__}")

    def end_broken(self, reason: str, event: Event) -> None:
        """End the client's connection so that it cannot take the response for a whole one."""
        is_told_by_close = not self.writer.is_http2 and (
            self.source is not None
            or (self.reply is not None and not self.dechunks and response_writer.shows_its_end(self.reply))
        )
        if not is_told_by_close:
            self.break_off(reason, event)
            return
        self.flow.event, self.flow.error = event, reason
        self.keeps = False
        self.finish()

    def break_off(self, reason: str, event: Event) -> None:
        self.flow.event, self.flow.error = event, reason
        self.client.reset()
        self.finish()

    def release_upstream(self) -> None:
        """Both directions are through: the origin's connection may serve the next request."""
        if self.throttle_up is not None and self.throttle_up.is_busy:
            # An early answer. The origin counts on the rest of this body, and would read the next request as such.
            self.drop_upstream()
            return
        upstream, self.upstream = self.upstream, None
        if upstream is not None:
            upstream.release()

    def drop_upstream(self) -> None:
        upstream, self.upstream = self.upstream, None
        if self.throttle_up is not None:
            self.throttle_up.close()
        if upstream is not None:
            upstream.drop()

    def lose_upstream(self) -> None:
        """Its connection is gone, and with it what a throttle has not sent there yet."""
        self.upstream = None
        if self.throttle_up is not None:
            self.throttle_up.close()

    def finish(self) -> None:
        if self.is_over:
            return
        self.is_over = True
        self.drop_upstream()
        if self.source is not None:
            self.source.close()
        if self.throttle_down is not None:
            self.throttle_down.close()
        # Both refer to this exchange: as a cycle it would wait for the garbage collector, with its heads and bodies.
        del self.upload, self.download
        self.core.finish(self.flow, (time.perf_counter() - self.began) * 1000)
        self.client.exchange_over(self.keeps, self.is_request_done)

    # CONNECT without decryption.

    def open_tunnel(self) -> None:
        self.is_request_done = True
        # A client may send on before it has its answer; in a tunnel that was refused, that would be read as requests.
        self.keeps = False
        decision = self.decision
        if decision.block_status is not None:
            self.answer(make_refusal(decision.block_status, "blocked by a rule"), "blocked")
        elif decision.fault is not None:
            self.break_off("reset by a rule", "fault")
        else:
            self.client.hold(CONNECTING)
            self.core.spawn(self._dial_tunnel())

    async def _dial_tunnel(self) -> None:
        core, flow = self.core, self.flow
        throttle = core.throttle_of(flow)
        delay_s = self.decision.delay_s + (throttle.delay_s(flow) if throttle is not None else 0.0)
        if delay_s > 0:
            await asyncio.sleep(delay_s)
        try:
            far = await core.dialer.open(self.route, lambda _: FarEnd(), is_tunnel=True)
        except ConnectFailed as error:
            if not self.is_over:
                self.fail(error.status, str(error))
            return
        if self.is_over:
            far.transport.abort()
            return
        flow.status = 200
        flow.head_ms = (time.perf_counter() - self.began) * 1000
        self.is_over = True
        self.client.transport.write(ESTABLISHED)
        join(core, flow, self.client.transport, far.transport, self.client.hand_over(), greeting=far.early)
