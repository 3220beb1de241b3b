"""The way down: latency, the rule that edits the body, the breakpoint, then head and body to the client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dari.proxy.engine import response_writer
from dari.proxy.engine.flow_control import PAUSED, PEER_FULL
from dari.proxy.engine.heads import BadHead, ResponseHead
from dari.proxy.engine.hooks import PASS, Decision, HeadEdit
from dari.proxy.engine.local_response import may_have_body
from dari.proxy.engine.tunnel import join
from dari.proxy.engine.upload import BODY_WAIT_BYTES, BODY_WAIT_S
from dari.proxy.engine.upstream import UpstreamConnection
from dari.proxy.engine.websocket import WebSocketTap

if TYPE_CHECKING:
    from dari.proxy.engine.exchange import Exchange

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


class Download:
    """The response's side of an exchange: what the origin sends, and how it gets to the client."""

    __slots__ = ("_body_edit", "_exchange", "_held", "_truncates_after")

    def __init__(self, exchange: Exchange, decision: Decision) -> None:
        self._exchange = exchange
        self._held: _Held | None = None
        self._body_edit: Callable[[bytes], bytes] | None = None
        self._truncates_after = decision.truncate_bytes if decision.fault == "truncate" else None

    # From the origin.

    def informational(self, head: ResponseHead) -> None:
        exchange = self._exchange
        if head.status == 100:
            if exchange.upload.has_continued:
                return
            exchange.upload.has_continued = True
        if exchange.head.version != "1.0" and not exchange.has_begun_response:
            exchange.writer.send_interim(head)

    def response_begins(self, head: ResponseHead, raw: bytes, payload: Sequence[bytes], is_done: bool) -> None:
        exchange = self._exchange
        flow = exchange.flow
        if head.status == 407 and (proxy := exchange.core.dialer.forwarder(exchange.route)) is not None:
            # A client would take it for ours, and has no password for a proxy that it does not know.
            exchange.drop_upstream()
            exchange.fail(502, proxy.wants_login())
            return
        exchange.outbox = b""
        if exchange.is_request_done:
            exchange.client.deadline = _NEVER
        flow.upstream_status = head.status
        flow.response_headers = head.headers.copy()
        exchange.note_head()
        if payload:
            exchange.note_response(payload, is_done)
        if is_done and exchange.is_request_done:
            exchange.release_upstream()
        is_plain = exchange.decision is PASS
        flow.status = status = head.status if is_plain else exchange.core.rules.respond(flow, head.status)
        if is_plain and exchange.throttle_down is None:
            self._deliver(head, status, raw, payload, is_done)
        else:
            self._held = _Held(head, status, raw, list(payload), is_done)
            self._hold_back()

    def response_continues(self, raw: bytes, payload: Sequence[bytes], is_done: bool) -> None:
        exchange = self._exchange
        if payload:
            exchange.note_response(payload)
        if is_done and exchange.is_request_done:
            exchange.release_upstream()
        held = self._held
        if held is None:
            self._pass_down(raw, payload, is_done)
            return
        held.payload.extend(payload)
        self._held = held._replace(raw=held.raw + raw, is_done=is_done)
        if self._body_edit is not None:
            self._edit_when_whole()

    def stop(self) -> None:
        """The request is answered here: what the origin said of it, and was held back, is not sent any more."""
        self._held = self._body_edit = None

    def upstream_failed(self, reason: str) -> None:
        """The origin's bytes are not HTTP."""
        exchange = self._exchange
        exchange.lose_upstream()
        exchange.fail(502, reason)

    def upstream_lost(self, upstream: UpstreamConnection, exc: Exception | None) -> None:
        """The origin's connection is gone."""
        exchange = self._exchange
        exchange.lose_upstream()
        exchange.client.free(PEER_FULL)
        if exchange.is_over:
            return
        if exchange.is_response_done or (self._held is not None and self._held.is_done):
            exchange.finish_if_done()  # an early response; the rest of the upload is read and dropped
        elif exchange.has_begun_response or self._held is not None:
            self._held = None
            exchange.fail(502, f"{exchange.upload.far_end()} closed the connection in the middle of its response")
        elif not exchange.upload.retries(upstream):
            detail = f": {exc}" if exc is not None else ""
            exchange.fail(502, f"{exchange.upload.far_end()} closed the connection without a response{detail}")

    def switched(self, head: ResponseHead, rest: bytes) -> None:
        """101: from here on both sides speak another protocol."""
        exchange = self._exchange
        upstream = exchange.upstream
        assert upstream is not None
        if exchange.head.upgrade != b"websocket" or head.upgrade != b"websocket" or exchange.has_begun_response:
            exchange.drop_upstream()
            self.upstream_failed("the origin switched protocols without being asked")
            return
        if exchange.throttle_up is not None and exchange.throttle_up.is_busy:
            exchange.drop_upstream()
            self.upstream_failed("the origin switched protocols before it had the whole request")
            return
        flow, core = exchange.flow, exchange.core
        flow.status = flow.upstream_status = 101
        flow.response_headers = head.headers.copy()
        exchange.note_head()
        exchange.is_over = True
        upstream.exchange = None
        early = exchange.client.hand_over()
        upstream.free(~0)
        tap = WebSocketTap(flow, head.headers, core.recorder if flow.is_recorded else None)
        exchange.client.transport.write(response_writer.switching_head(head))
        tunnel = join(core, flow, exchange.client.transport, upstream.transport, early, tap.feed)
        if rest:
            tunnel.origin.data_received(rest)

    # Before the head goes on: latency, the rule that edits the body, the breakpoint.

    def _hold_back(self) -> None:
        exchange = self._exchange
        pacer = exchange.throttle_down
        delay_s = pacer.throttle.delay_s(exchange.flow) if pacer is not None else 0.0
        if delay_s > 0:
            if exchange.upstream is not None:
                exchange.upstream.hold(PAUSED)
            exchange.core.loop.call_later(delay_s, self._after_latency)
        else:
            self._after_latency()

    def _after_latency(self) -> None:
        exchange = self._exchange
        held = self._held
        if exchange.is_over or held is None:
            return
        edit = exchange.decision.response_body
        if edit is not None and may_have_body(held.head.status, exchange.flow.method):
            self._body_edit = edit
            if exchange.upstream is not None:
                exchange.upstream.free(PAUSED)
            self._edit_when_whole()
        elif exchange.decision.pause_response is not None and not held.is_done:
            self._body_edit = _unchanged
            if exchange.upstream is not None:
                exchange.upstream.free(PAUSED)
            exchange.core.loop.call_later(BODY_WAIT_S, self._stop_waiting)
        else:
            self._pause_response()

    def _stop_waiting(self) -> None:
        if not self._exchange.is_over and self._held is not None and self._body_edit is _unchanged:
            self._body_edit = None
            self._pause_response()

    def _edit_when_whole(self) -> None:
        held = self._held
        assert held is not None and self._body_edit is not None
        if held.is_done and self._body_edit is not _unchanged:
            self._exchange.core.spawn(self._edit(self._body_edit, held))
            return
        if not held.is_done:
            most_bytes = BODY_WAIT_BYTES if self._body_edit is _unchanged else self._exchange.core.config.edit_bytes
            if len(held.raw) <= most_bytes:
                return
        self._body_edit = None
        self._pause_response()

    async def _edit(self, edit: Callable[[bytes], bytes], held: _Held) -> None:
        # In a thread, as `Upload` does.
        body = b"".join(held.payload)
        try:
            edited = await asyncio.to_thread(edit, body)
        except Exception as error:
            self._exchange.edit_failed(error)
            return
        if self._exchange.is_over or self._held is None:
            return
        if edited != body:
            head = response_writer.with_length(held.head, len(edited))
            self._held = _Held(head, held.status, edited, [edited] if edited else [], True)
        self._body_edit = None
        self._pause_response()

    def _pause_response(self) -> None:
        exchange = self._exchange
        pause = exchange.decision.pause_response
        if pause is None:
            self._resume_response(None)
            return
        if exchange.upstream is not None:
            exchange.upstream.hold(PAUSED)
        pause(exchange.flow, self._resume_response)

    def _resume_response(self, edit: HeadEdit | None) -> None:
        """Once per pause; what comes later, or after the client has gone, changes nothing."""
        exchange = self._exchange
        held, self._held = self._held, None
        if exchange.is_over or held is None:
            return
        head, status, raw, payload, is_done = held
        if edit is not None:
            if edit.abort:
                exchange.break_off("aborted at a breakpoint", "fault")
                return
            if edit.body is not None:
                # What the origin still sends belongs to a body that nobody wants any more.
                exchange.drop_upstream()
                raw, payload, is_done = edit.body, [edit.body], True
            try:
                head = response_writer.edited_head(head, edit)
            except BadHead as error:
                exchange.fail(error.status, str(error))
                return
            exchange.flow.status = status = edit.status or status
        # The client reads a body, or none, by its own method and the status that it sees; the origin had others.
        method = exchange.flow.method
        if not may_have_body(status, method):
            exchange.is_muted = bool(raw) or method != exchange.head.method
        elif not raw and not may_have_body(head.status, exchange.head.method):
            head = response_writer.with_length(head, 0)
        self._deliver(head, status, raw, payload, is_done)
        if exchange.upstream is not None:
            exchange.upstream.free(PAUSED)

    # To the client.

    def _deliver(self, head: ResponseHead, status: int, raw: bytes, payload: Sequence[bytes], is_done: bool) -> None:
        exchange = self._exchange
        try:
            exchange.writer.prepare(exchange, head, status)
        except BadHead as error:
            exchange.fail(error.status, str(error))
            return
        exchange.reply = head
        exchange.has_begun_response = True
        if (
            self._truncates_after is not None
            or exchange.throttle_down is not None
            or exchange.dechunks
            or exchange.is_muted
        ):
            exchange.writer.send_head(b"")
            self._pass_down(raw, payload, is_done)
            return
        # One write for head and body: on stock asyncio each is a system call.
        exchange.writer.send_head(raw)
        if is_done:
            exchange.response_done()

    def _pass_down(self, raw: bytes, payload: Sequence[bytes], is_done: bool) -> None:
        exchange = self._exchange
        if exchange.is_muted:
            raw = b""
        elif exchange.dechunks:
            raw = b"".join(payload)
        if self._truncates_after is not None:
            raw = raw[: self._truncates_after]
            self._truncates_after -= len(raw)
            exchange.client.transport.write(raw)
            if is_done or self._truncates_after <= 0:
                exchange.end_broken("truncated by a rule", "fault")
        elif exchange.throttle_down is not None:
            exchange.throttle_down.write(raw, exchange.response_done if is_done else None)
        else:
            if raw:
                exchange.client.transport.write(raw)
            if is_done:
                exchange.response_done()
