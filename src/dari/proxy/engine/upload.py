"""The way up: rules and breakpoints before the head is sent, the connection, the request's body, one retry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dari.proxy.engine import request_heads
from dari.proxy.engine.body_framing import note_body
from dari.proxy.engine.connector import ConnectFailed
from dari.proxy.engine.flow_control import CONNECTING, PAUSED
from dari.proxy.engine.heads import BadHead
from dari.proxy.engine.hooks import PASS, HeadEdit, LocalResponse
from dari.proxy.engine.local_response import make_refusal
from dari.proxy.engine.targets import BadTarget, url_target
from dari.proxy.engine.throttled_writer import ThrottledWriter
from dari.proxy.engine.upstream import Route, UpstreamConnection

if TYPE_CHECKING:
    from dari.proxy.engine.exchange import Exchange

_IDEMPOTENT = frozenset(("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE", "PROPFIND"))
_REPLAY_BYTES = 64 * 1024
_NEVER = float("inf")
BODY_WAIT_S = 2.0
"""How long a breakpoint waits for the rest of a body, so that it can be shown and replaced; a stream never ends."""
BODY_WAIT_BYTES = 1024 * 1024


class Upload:
    """The request's side of an exchange: what the client sends, and how it gets to the origin."""

    __slots__ = ("_collected", "_exchange", "_has_retried", "_is_paused", "_is_replayable", "has_continued")

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self.has_continued = False
        """The client was sent its 100."""
        self._has_retried = False
        self._is_paused = False
        """By a rule's delay or a breakpoint; what was read before that still comes, and waits."""
        self._is_replayable = False
        """Asking twice would do no harm, and all of it is still here; known when it is first sent."""
        self._collected: list[bytes] | None = None
        """The payload so far, while a rule waits for the whole body."""

    def begin(self, raw: bytes, payload: Sequence[bytes], is_done: bool) -> None:
        """The head passed every check; `raw` is what came with it, `payload` what that carries."""
        exchange = self._exchange
        self.note_request(payload, is_done)
        decision = exchange.decision
        if exchange.core.throttle is not None:
            self._throttle()
        if decision is PASS:
            self._send(raw)
            return
        if decision.request_body is not None or (decision.pause_request is not None and not is_done):
            self._collected = list(payload)
        exchange.outbox = raw
        if decision.delay_s > 0:
            self._is_paused = True
            self._hold_upload()
            exchange.core.loop.call_later(decision.delay_s, self._delayed)
        else:
            self._apply()

    def note_request(self, payload: Sequence[bytes], is_done: bool) -> None:
        exchange = self._exchange
        exchange.is_request_done = is_done
        body = exchange.flow.request_body
        if payload:
            note_body(body, payload, exchange.core.config.sample_bytes)
            if exchange.spools:
                for piece in payload:
                    exchange.core.recorder.body(exchange.flow, True, piece)
        if is_done:
            body.outcome = "complete"

    def request_continues(self, raw: bytes, payload: Sequence[bytes], is_done: bool) -> None:
        exchange = self._exchange
        self.note_request(payload, is_done)
        if self._collected is not None:
            self._collected.extend(payload)
            exchange.outbox += raw
            if not self._is_paused:
                self._edit_when_whole()
        elif exchange.upstream is not None:
            exchange.outbox = b""
            if exchange.throttle_up is not None:
                exchange.throttle_up.write(raw)
            else:
                exchange.upstream.transport.write(raw)
        elif not exchange.has_begun_response and exchange.flow.upstream_status is None:
            exchange.outbox += raw
        if is_done:
            self._request_done()
        elif exchange.throttle_up is not None:
            self._start_limit()

    def stop(self) -> None:
        """The request is answered here: nothing of it goes up any more."""
        self._collected = None
        self._is_paused = False

    def request_failed(self, reason: str) -> None:
        """The rest of the request is malformed; nothing of it was passed on."""
        exchange = self._exchange
        exchange.flow.request_body.outcome = "error"
        exchange.flow.request_body.error = reason
        exchange.keeps = False
        exchange.fail(400, reason, "bad_request")

    def attach(self, upstream: UpstreamConnection) -> None:
        """There is a connection: send what waits for it."""
        exchange = self._exchange
        exchange.upstream = upstream
        upstream.serve(exchange)
        if exchange.flow.tls is not None:
            request_heads.note_tls(exchange.flow.tls, upstream)
        if exchange.throttle_up is not None:
            exchange.throttle_up.attach(upstream.transport.write)
            exchange.throttle_up.write(exchange.outbox)
        else:
            upstream.transport.write(exchange.outbox)
        if not upstream.is_reused or not self._is_replayable:
            exchange.outbox = b""
        self._start_limit()
        if exchange.is_request_done:
            return
        exchange.client.free(CONNECTING)
        if exchange.head.expects_continue:
            exchange.core.loop.call_later(exchange.core.config.continue_s, self._continue)

    # Inside.

    def _request_done(self) -> None:
        exchange = self._exchange
        if exchange.is_over:
            return
        if exchange.is_response_done:
            exchange.release_upstream()
            exchange.finish_if_done()
        elif exchange.upstream is not None and not exchange.has_begun_response:
            self._start_limit()
        else:
            exchange.client.deadline = _NEVER

    @property
    def _is_answered(self) -> bool:
        """Whether it is too late to ask the origin, after a wait in which the client went or was answered here."""
        return self._exchange.is_over or self._exchange.has_begun_response

    def _hold_upload(self) -> None:
        exchange = self._exchange
        # Only if more of it is to come: a client that is not read cannot be seen to go away.
        if not exchange.is_request_done:
            exchange.client.hold(PAUSED)

    def _delayed(self) -> None:
        exchange = self._exchange
        if not self._is_answered:
            self._is_paused = False
            exchange.client.free(PAUSED)
            self._apply()

    def _apply(self) -> None:
        """What the rules decided, in the reference's order: block, fault, local answer, elsewhere."""
        exchange = self._exchange
        decision, flow = exchange.decision, exchange.flow
        if decision.block_status is not None:
            exchange.answer(make_refusal(decision.block_status, "blocked by a rule"), "blocked")
        elif decision.fault == "reset":
            exchange.break_off("reset by a rule", "fault")
        elif decision.local is not None:
            flow.map_local = decision.map_local
            marked = (*decision.local.headers, (b"x-crab-mitm", b"map_local"))
            local = LocalResponse(decision.local.status, marked, decision.local.body, decision.local.file)
            exchange.answer(local, "map_local")
        else:
            if decision.remote_url is not None:
                flow.event = "map_remote"
                flow.map_remote, flow.map_remote_to = decision.map_remote, decision.remote_url
                if not self._retarget(decision.remote_url):
                    return
            if self._collected is not None:
                if decision.request_body is None:
                    exchange.core.loop.call_later(BODY_WAIT_S, self._stop_waiting)
                self._edit_when_whole()
            else:
                self._pause_request()

    def _stop_waiting(self) -> None:
        if not self._is_answered and self._collected is not None:
            self._collected = None
            self._pause_request()

    def _retarget(self, url: str) -> bool:
        exchange = self._exchange
        try:
            exchange.target = url_target(url)
        except BadTarget as error:
            exchange.fail(502, f"the rule's new URL is not valid: {error}")
            return False
        host = exchange.target.authority.host
        is_multiplexed = exchange.writer.is_http2 and exchange.target.scheme == "https"
        exchange.route = Route(exchange.target.scheme, host, exchange.target.port, host, is_multiplexed)
        return True

    def _edit_when_whole(self) -> None:
        """Give the body to the rule that edits it, or show it at a breakpoint, unless it is more than we may keep."""
        exchange = self._exchange
        assert self._collected is not None
        edit = exchange.decision.request_body
        if exchange.is_request_done:
            if edit is not None:
                exchange.core.spawn(self._edit(edit, b"".join(self._collected)))
                self._collected = None
                return
        elif len(exchange.outbox) <= (exchange.core.config.edit_bytes if edit is not None else BODY_WAIT_BYTES):
            if exchange.head.expects_continue:
                self._continue()
            return
        self._collected = None
        if exchange.decision.needs_body_edit:
            exchange.keeps = False
            most_mb = exchange.core.config.edit_bytes // 1024 // 1024
            reason = f"a rule leaves secrets at home, and bodies above {most_mb} MB are not searched for them"
            exchange.fail(413, reason, "blocked")
            return
        self._pause_request()

    async def _edit(self, edit: Callable[[bytes], bytes], body: bytes) -> None:
        exchange = self._exchange
        # To unpack a body and look for secrets in it may take seconds, and others want to be served meanwhile.
        try:
            edited = await asyncio.to_thread(edit, body)
        except Exception as error:
            exchange.edit_failed(error)
            return
        if self._is_answered:
            return
        # A body that stays as it is keeps its framing: a GET without one gets no length. Trailers were not looked at.
        if edited != body or exchange.flow.request_body.trailers:
            exchange.outbox = edited
            exchange.head = request_heads.with_length(exchange.head, len(edited))
        self._pause_request()

    def _pause_request(self) -> None:
        exchange = self._exchange
        pause = exchange.decision.pause_request
        if pause is None:
            raw, exchange.outbox = exchange.outbox, b""
            self._send(raw)
            return
        self._is_paused = True
        self._hold_upload()
        exchange.client.deadline = _NEVER
        pause(exchange.flow, self._resume_request)

    def _resume_request(self, edit: HeadEdit | None) -> None:
        """Once per pause; what comes later, or after the client has gone, changes nothing."""
        exchange = self._exchange
        if self._is_answered or not self._is_paused:
            return
        self._is_paused = False
        exchange.client.free(PAUSED)
        raw, exchange.outbox = exchange.outbox, b""
        if edit is not None:
            if edit.abort:
                exchange.fail(502, "aborted at a breakpoint", "blocked")
                return
            if edit.url is not None and not self._retarget(edit.url):
                return
            try:
                exchange.head = request_heads.edited_head(exchange.head, edit, exchange.is_request_done)
            except BadHead as error:
                exchange.fail(400, str(error), "bad_request")
                return
            raw = raw if edit.body is None else edit.body
        self._send(raw)

    def _send(self, raw: bytes) -> None:
        exchange = self._exchange
        core = exchange.core
        try:
            head = request_heads.wire_head(
                exchange.head, exchange.target, exchange.decision, core.dialer, exchange.route
            )
        except BadHead as error:
            exchange.fail(error.status, str(error))
            return
        exchange.outbox = head + raw if raw else head
        self._is_replayable = (
            exchange.is_request_done and exchange.head.method in _IDEMPOTENT and len(exchange.outbox) <= _REPLAY_BYTES
        )
        upstream = core.pool.take(exchange.route, self._is_replayable)
        if upstream is not None:
            self.attach(upstream)
        else:
            self._connect()

    def retries(self, upstream: UpstreamConnection) -> bool:
        """A pooled connection was closed while our request was on its way; nobody has answered it, so ask again."""
        exchange = self._exchange
        if self._has_retried:
            return False
        if upstream.unprocessed is not None and exchange.throttle_up is None:
            exchange.outbox = upstream.unprocessed
        elif not upstream.is_reused or upstream.has_answered or not exchange.outbox:
            return False
        self._has_retried = True
        self._connect()
        return True

    def _connect(self) -> None:
        exchange = self._exchange
        if not exchange.is_request_done:
            exchange.client.hold(CONNECTING)
        exchange.client.deadline = _NEVER  # the dialer has its own
        if exchange.route in exchange.core.pool.multiplexed:
            exchange.route = replace(exchange.route, is_multiplexed=True)
        exchange.core.spawn(self._dial())

    async def _dial(self) -> None:
        exchange = self._exchange
        core, route = exchange.core, exchange.route
        try:
            if route.is_multiplexed:
                from dari.proxy.engine.http2.origin import reach

                upstream = await reach(core, route)
            else:
                upstream = await core.dialer.open(route, lambda _: UpstreamConnection(core.pool, route))
        except ConnectFailed as error:
            if error.wants_other_protocol and not route.is_multiplexed:
                core.pool.note_multiplexed(route)
                exchange.route = replace(route, is_multiplexed=True)
                await self._dial()
            elif not self._is_answered:
                if error.is_tls and exchange.flow.tls is not None:
                    exchange.flow.tls.problem = str(error)
                exchange.fail(error.status, str(error))
            return
        if self._is_answered:
            upstream.drop()
        elif upstream.is_lost:
            exchange.fail(502, f"{self.far_end()} closed the connection without a response")
        else:
            self.attach(upstream)

    def far_end(self) -> str:
        """Whom the connection leads to, for messages."""
        exchange = self._exchange
        proxy = exchange.core.dialer.forwarder(exchange.route)
        return "the origin" if proxy is None else f"the upstream proxy {proxy.name}, or the origin behind it,"

    def _start_limit(self) -> None:
        """Of the origin for its answer, or of the client for more of its body; not while it is we who are slow."""
        exchange = self._exchange
        pacer = exchange.throttle_up
        if pacer is not None:
            if exchange.is_over:
                return
            if pacer.is_busy:
                exchange.client.deadline = _NEVER
                pacer.then(self._start_limit)
                return
        if not exchange.is_request_done:
            exchange.client.deadline = exchange.core.clock() + exchange.core.config.request_timeout_s
        elif exchange.flow.upstream_status is None:
            exchange.client.deadline = exchange.core.clock() + exchange.core.config.response_timeout_s
        else:
            exchange.client.deadline = _NEVER  # an early answer that is held back

    def _continue(self) -> None:
        """The origin said nothing; a client that waits for 100 would wait on (HTTP/1.0 origins never send it)."""
        exchange = self._exchange
        if not (exchange.is_over or exchange.is_request_done or self.has_continued or exchange.has_begun_response):
            self.has_continued = True
            exchange.writer.send_continue()

    def _throttle(self) -> None:
        exchange = self._exchange
        throttle = exchange.core.throttle_of(exchange.flow)
        if throttle is not None:
            exchange.throttle_up = ThrottledWriter(throttle, "upstream", lambda: exchange.client)
            exchange.throttle_down = ThrottledWriter(throttle, "downstream", lambda: exchange.upstream)
            exchange.throttle_down.attach(exchange.client.transport.write)
