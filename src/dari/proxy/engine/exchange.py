"""One request and its response.

    begin → (delay, rules, pause) → connect → request goes up → response comes down → finish

Both bodies flow at the same time, so an early response is delivered while its request is still being uploaded.
`Ending` holds what both directions share, `Uplink` the way up; the way down is here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dari.proxy.engine import response_heads
from dari.proxy.engine.connector import ConnectFailed, FarEnd
from dari.proxy.engine.flow_control import CONNECTING, PAUSED, PEER_FULL
from dari.proxy.engine.heads import BadHead, RequestHead, ResponseHead
from dari.proxy.engine.hooks import PASS, Decision, HeadEdit
from dari.proxy.engine.local_response import make_refusal, may_have_body
from dari.proxy.engine.targets import RequestTarget
from dari.proxy.engine.tunnel import ESTABLISHED, join
from dari.proxy.engine.uplink import BODY_WAIT_BYTES, BODY_WAIT_S, Uplink
from dari.proxy.engine.upstream import Route, UpstreamConnection
from dari.proxy.engine.websocket import WebSocketTap
from dari.proxy.flow import Flow

if TYPE_CHECKING:
    from dari.proxy.engine.client import ClientConnection

_NEVER = float("inf")


class _Held(NamedTuple):
    """A response whose head has not gone on yet, with what arrived of its body."""

    head: ResponseHead
    status: int
    raw: bytes
    payload: list[bytes]
    is_done: bool


def _unchanged(body: bytes) -> bytes:
    """Stands in for an edit while a breakpoint waits for the whole body."""
    return body


class Exchange(Uplink):
    __slots__ = ("_body_edit", "_held", "_truncates_after")

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
        self._held: _Held | None = None
        self._body_edit: Callable[[bytes], bytes] | None = None
        self._truncates_after = decision.truncate_bytes if decision.fault == "truncate" else None

    # From the origin.

    def informational(self, head: ResponseHead) -> None:
        if head.status == 100:
            if self._has_continued:
                return
            self._has_continued = True
        if self.head.version == "1.1" and not self.has_begun_response:
            self.client.transport.write(response_heads.informational_head(head))

    def response_begins(self, head: ResponseHead, raw: bytes, payload: Sequence[bytes], is_done: bool) -> None:
        flow = self.flow
        if head.status == 407 and (proxy := self._core.dialer.forwarder(self.route)) is not None:
            # A client would take it for ours, and has no password for a proxy that it does not know.
            self._detach()
            self._fail(502, proxy.wants_login())
            return
        self.outbox = b""
        if self.is_request_done:
            self.client.deadline = _NEVER
        flow.upstream_status = head.status
        flow.response_headers = head.headers
        self._head_known()
        if payload:
            self._note_down(payload, is_done)
        if is_done and self.is_request_done:
            self._release()
        is_plain = self.decision is PASS
        flow.status = status = head.status if is_plain else self._core.rules.respond(flow, head.status)
        if is_plain and self._pacer_down is None:
            self._deliver(head, status, raw, payload, is_done)
        else:
            self._held = _Held(head, status, raw, list(payload), is_done)
            self._hold_back()

    def response_continues(self, raw: bytes, payload: Sequence[bytes], is_done: bool) -> None:
        if payload:
            self._note_down(payload)
        if is_done and self.is_request_done:
            self._release()
        held = self._held
        if held is None:
            self._pass_down(raw, payload, is_done)
            return
        held.payload.extend(payload)
        self._held = held._replace(raw=held.raw + raw, is_done=is_done)
        if self._body_edit is not None:
            self._edit_when_whole_down()

    def upstream_failed(self, reason: str) -> None:
        """What the origin sent is no HTTP."""
        self.upstream = None
        self._held = None
        self._fail(502, reason)

    def upstream_lost(self, upstream: UpstreamConnection, exc: Exception | None) -> None:
        """The origin's connection is gone."""
        self.upstream = None
        self.client.free(PEER_FULL)
        if self.is_over or self.is_response_done or (self._held is not None and self._held.is_done):
            return  # an early response; the rest of the upload is read and dropped
        if self.has_begun_response or self._held is not None:
            self._held = None
            self._fail(502, f"{self._far_end()} closed the connection in the middle of its response")
        elif not self._retries(upstream):
            detail = f": {exc}" if exc is not None else ""
            self._fail(502, f"{self._far_end()} closed the connection without a response{detail}")

    def switched(self, head: ResponseHead, rest: bytes) -> None:
        """101: from here on both sides speak another protocol."""
        upstream = self.upstream
        assert upstream is not None
        if self.head.upgrade != b"websocket" or head.upgrade != b"websocket" or self.has_begun_response:
            self._detach()
            self.upstream_failed("the origin switched protocols without being asked")
            return
        flow, core = self.flow, self._core
        flow.status = flow.upstream_status = 101
        flow.response_headers = head.headers
        self._head_known()
        self.is_over = True
        upstream.exchange = None
        early = self.client.hand_over()
        upstream.free(~0)
        tap = WebSocketTap(flow, head.headers, core.recorder if flow.is_recorded else None)
        self.client.transport.write(response_heads.switching_head(head))
        tunnel = join(core, flow, self.client.transport, upstream.transport, early, tap.feed)
        if rest:
            tunnel.origin.data_received(rest)

    # Before the head goes on: latency, the rule that edits the body, the breakpoint.

    def _hold_back(self) -> None:
        pacer = self._pacer_down
        delay_s = pacer.throttle.delay_s(self.flow) if pacer is not None else 0.0
        if delay_s > 0:
            if self.upstream is not None:
                self.upstream.hold(PAUSED)
            self._core.loop.call_later(delay_s, self._after_latency)
        else:
            self._after_latency()

    def _after_latency(self) -> None:
        held = self._held
        if self.is_over or held is None:
            return
        edit = self.decision.response_body
        if edit is not None and may_have_body(held.head.status, self.flow.method):
            self._body_edit = edit
            if self.upstream is not None:
                self.upstream.free(PAUSED)
            self._edit_when_whole_down()
        elif self.decision.pause_response is not None and not held.is_done:
            self._body_edit = _unchanged
            if self.upstream is not None:
                self.upstream.free(PAUSED)
            self._core.loop.call_later(BODY_WAIT_S, self._stop_waiting_down)
        else:
            self._pause_response()

    def _stop_waiting_down(self) -> None:
        if not self.is_over and self._held is not None and self._body_edit is _unchanged:
            self._body_edit = None
            self._pause_response()

    def _edit_when_whole_down(self) -> None:
        held = self._held
        assert held is not None and self._body_edit is not None
        if held.is_done and self._body_edit is not _unchanged:
            body = self._body_edit(b"".join(held.payload))
            head = response_heads.with_length(held.head, len(body))
            self._held = _Held(head, held.status, body, [body] if body else [], True)
        elif not held.is_done:
            most_bytes = BODY_WAIT_BYTES if self._body_edit is _unchanged else self._core.config.edit_bytes
            if len(held.raw) <= most_bytes:
                return
        self._body_edit = None
        self._pause_response()

    def _pause_response(self) -> None:
        pause = self.decision.pause_response
        if pause is None:
            self._resume_response(None)
            return
        if self.upstream is not None:
            self.upstream.hold(PAUSED)
        pause(self.flow, self._resume_response)

    def _resume_response(self, edit: HeadEdit | None) -> None:
        """Once per pause; what comes later, or after the client has gone, changes nothing."""
        held, self._held = self._held, None
        if self.is_over or held is None:
            return
        head, status, raw, payload, is_done = held
        if edit is not None:
            if edit.abort:
                self._break("aborted at a breakpoint", "fault")
                return
            if edit.body is not None:
                # What the origin still sends belongs to a body that nobody wants any more.
                self._detach()
                raw, payload, is_done = edit.body, [edit.body], True
            try:
                head = response_heads.edited_head(head, edit)
            except BadHead as error:
                self._fail(error.status, str(error))
                return
            self.flow.status = status = edit.status or status
        self._deliver(head, status, raw, payload, is_done)
        if self.upstream is not None:
            self.upstream.free(PAUSED)

    # To the client.

    def _deliver(self, head: ResponseHead, status: int, raw: bytes, payload: Sequence[bytes], is_done: bool) -> None:
        try:
            wire = response_heads.wire_head(self, head, status)
        except BadHead as error:
            self._fail(error.status, str(error))
            return
        self.reply = head
        self.has_begun_response = True
        if self._truncates_after is not None or self._pacer_down is not None or self.dechunks or self.is_muted:
            self.client.transport.write(wire)
            self._pass_down(raw, payload, is_done)
            return
        # One write for head and body: on stock asyncio each is a system call.
        self.client.transport.write(wire + raw if raw else wire)
        if is_done:
            self._response_done()

    def _pass_down(self, raw: bytes, payload: Sequence[bytes], is_done: bool) -> None:
        if self.is_muted:
            raw = b""
        elif self.dechunks:
            raw = b"".join(payload)
        if self._truncates_after is not None:
            raw = raw[: self._truncates_after]
            self._truncates_after -= len(raw)
            self.client.transport.write(raw)
            if is_done or self._truncates_after <= 0:
                self._end_broken("truncated by a rule", "fault")
        elif self._pacer_down is not None:
            self._pacer_down.write(raw, self._response_done if is_done else None)
        else:
            if raw:
                self.client.transport.write(raw)
            if is_done:
                self._response_done()

    # CONNECT without decryption.

    def open_tunnel(self) -> None:
        self.is_request_done = True
        decision = self.decision
        if decision.block_status is not None:
            self.answer(make_refusal(decision.block_status, "blocked by a rule"), "blocked")
        elif decision.fault is not None:
            self._break("reset by a rule", "fault")
        else:
            self.client.hold(CONNECTING)
            self._core.spawn(self._dial_tunnel())

    async def _dial_tunnel(self) -> None:
        core, flow = self._core, self.flow
        throttle = core.throttle_of(flow)
        delay_s = self.decision.delay_s + (throttle.delay_s(flow) if throttle is not None else 0.0)
        if delay_s > 0:
            await asyncio.sleep(delay_s)
        try:
            far = await core.dialer.open(self.route, lambda _: FarEnd(), is_tunnel=True)
        except ConnectFailed as error:
            if not self.is_over:
                self._fail(error.status, str(error))
            return
        if self.is_over:
            far.transport.abort()
            return
        flow.status = 200
        flow.head_ms = (time.perf_counter() - self._began) * 1000
        self.is_over = True
        self.client.transport.write(ESTABLISHED)
        join(core, flow, self.client.transport, far.transport, self.client.hand_over(), greeting=far.early)
