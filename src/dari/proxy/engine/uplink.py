"""The way up: rules and breakpoints before the head is sent, the connection, the request's body, one retry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from dari.proxy.engine import request_heads
from dari.proxy.engine.body_framing import note_body
from dari.proxy.engine.connector import ConnectFailed
from dari.proxy.engine.ending import Ending
from dari.proxy.engine.flow_control import CONNECTING, PAUSED
from dari.proxy.engine.heads import BadHead, RequestHead
from dari.proxy.engine.hooks import PASS, Decision, HeadEdit, LocalResponse
from dari.proxy.engine.local_response import make_refusal
from dari.proxy.engine.targets import BadTarget, RequestTarget, url_target
from dari.proxy.engine.throttled_writer import ThrottledWriter
from dari.proxy.engine.upstream import Route, UpstreamConnection
from dari.proxy.flow import Flow

if TYPE_CHECKING:
    from dari.proxy.engine.client import ClientConnection
    from dari.proxy.engine.exchange import Exchange

_IDEMPOTENT = frozenset(("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE", "PROPFIND"))
_REPLAY_BYTES = 64 * 1024
_NEVER = float("inf")
BODY_WAIT_S = 2.0
"""How long a breakpoint waits for the rest of a body, so that it can be shown and replaced; a stream never ends."""
BODY_WAIT_BYTES = 1024 * 1024


class Uplink(Ending):
    __slots__ = ("_collected", "_has_continued", "_has_retried", "_is_paused", "_is_replayable")

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
        self._has_retried = False
        self._has_continued = False
        self._is_paused = False
        self._is_replayable = False
        """Asking twice would do no harm, and all of it is still here; known when it is first sent."""
        self._collected: list[bytes] | None = None
        """The payload so far, while a rule waits for the whole body."""

    def begin(self, raw: bytes, payload: Sequence[bytes], is_done: bool) -> None:
        """The head passed every check; `raw` is what came with it, `payload` what that carries."""
        self.note_request(payload, is_done)
        decision = self.decision
        if self._core.throttle is not None:
            self._pace()
        if decision is PASS:
            self._send(raw)
            return
        if decision.request_body is not None or (decision.pause_request is not None and not is_done):
            self._collected = list(payload)
        self.outbox = raw
        if decision.delay_s > 0:
            self._hold_upload()
            self._core.loop.call_later(decision.delay_s, self._delayed)
        else:
            self._apply()

    def note_request(self, payload: Sequence[bytes], is_done: bool) -> None:
        self.is_request_done = is_done
        body = self.flow.request_body
        if payload:
            note_body(body, payload, self._core.config.sample_bytes)
            if self.spools:
                for piece in payload:
                    self._core.recorder.body(self.flow, True, piece)
        if is_done:
            body.outcome = "complete"

    def request_continues(self, raw: bytes, payload: Sequence[bytes], is_done: bool) -> None:
        self.note_request(payload, is_done)
        if self._collected is not None:
            self._collected.extend(payload)
            self.outbox += raw
            self._edit_when_whole()
        elif self.upstream is not None:
            self.outbox = b""
            if self._pacer_up is not None:
                self._pacer_up.write(raw)
            else:
                self.upstream.transport.write(raw)
        elif not self.has_begun_response:
            self.outbox += raw
        if is_done:
            self._request_done()

    def request_failed(self, reason: str) -> None:
        """The rest of the request is malformed; nothing of it was passed on."""
        self.flow.request_body.outcome = "error"
        self.flow.request_body.error = reason
        self.keeps = False
        self._fail(400, reason, "bad_request")

    def attach(self, upstream: UpstreamConnection) -> None:
        """There is a connection: send what waits for it."""
        self.upstream = upstream
        upstream.serve(cast("Exchange", self))  # the way down is in the subclass
        if self.flow.tls is not None:
            request_heads.note_tls(self.flow.tls, upstream)
        if self._pacer_up is not None:
            self._pacer_up.attach(upstream.transport.write)
            self._pacer_up.write(self.outbox)
        else:
            upstream.transport.write(self.outbox)
        if not upstream.is_reused or not self._is_replayable:
            self.outbox = b""
        if self.is_request_done:
            self._await_response()
            return
        self.client.deadline = self._core.clock() + self._core.config.request_timeout_s
        self.client.free(CONNECTING)
        if self.head.expects_continue:
            self._core.loop.call_later(self._core.config.continue_s, self._continue)

    # Inside.

    def _request_done(self) -> None:
        if self.is_over:
            return
        if self.is_response_done:
            self._release()
            self._finish_if_done()
        elif self.upstream is not None and not self.has_begun_response:
            self._await_response()
        else:
            self.client.deadline = _NEVER

    def _hold_upload(self) -> None:
        # Only if more of it is to come: a client that is not read cannot be seen to go away.
        if not self.is_request_done:
            self.client.hold(PAUSED)

    def _delayed(self) -> None:
        if not self.is_over:
            self.client.free(PAUSED)
            self._apply()

    def _apply(self) -> None:
        """What the rules decided, in the reference's order: block, fault, local answer, elsewhere."""
        decision, flow = self.decision, self.flow
        if decision.block_status is not None:
            self.answer(make_refusal(decision.block_status, "blocked by a rule"), "blocked")
        elif decision.fault == "reset":
            self._break("reset by a rule", "fault")
        elif decision.local is not None:
            flow.map_local = decision.map_local
            marked = (*decision.local.headers, (b"x-crab-mitm", b"map_local"))
            local = LocalResponse(decision.local.status, marked, decision.local.body, decision.local.file)
            self.answer(local, "map_local")
        else:
            if decision.remote_url is not None:
                flow.event = "map_remote"
                flow.map_remote, flow.map_remote_to = decision.map_remote, decision.remote_url
                if not self._retarget(decision.remote_url):
                    return
            if self._collected is not None:
                if decision.request_body is None:
                    self._core.loop.call_later(BODY_WAIT_S, self._stop_waiting_up)
                self._edit_when_whole()
            else:
                self._pause_request()

    def _stop_waiting_up(self) -> None:
        if not self.is_over and self._collected is not None:
            self._collected = None
            self._pause_request()

    def _retarget(self, url: str) -> bool:
        try:
            self.target = url_target(url)
        except BadTarget as error:
            self._fail(502, f"the new URL is no URL: {error}")
            return False
        host = self.target.authority.host
        self.route = Route(self.target.scheme, host, self.target.port, host)
        return True

    def _edit_when_whole(self) -> None:
        """Give the body to the rule that edits it, or show it at a breakpoint, unless it is more than we may keep."""
        assert self._collected is not None
        edit = self.decision.request_body
        if self.is_request_done:
            if edit is not None:
                self.outbox = edit(b"".join(self._collected))
                self.head = request_heads.with_length(self.head, len(self.outbox))
        elif len(self.outbox) <= (self._core.config.edit_bytes if edit is not None else BODY_WAIT_BYTES):
            if self.head.expects_continue:
                self._continue()
            return
        self._collected = None
        self._pause_request()

    def _pause_request(self) -> None:
        pause = self.decision.pause_request
        if pause is None:
            raw, self.outbox = self.outbox, b""
            self._send(raw)
            return
        self._is_paused = True
        self._hold_upload()
        self.client.deadline = _NEVER
        pause(self.flow, self._resume_request)

    def _resume_request(self, edit: HeadEdit | None) -> None:
        """Once per pause; what comes later, or after the client has gone, changes nothing."""
        if self.is_over or not self._is_paused:
            return
        self._is_paused = False
        self.client.free(PAUSED)
        raw, self.outbox = self.outbox, b""
        if edit is not None:
            if edit.abort:
                self._fail(502, "aborted at a breakpoint", "blocked")
                return
            if edit.url is not None and not self._retarget(edit.url):
                return
            try:
                self.head = request_heads.edited_head(self.head, edit, self.is_request_done)
            except BadHead as error:
                self._fail(400, str(error), "bad_request")
                return
            raw = raw if edit.body is None else edit.body
        self._send(raw)

    def _send(self, raw: bytes) -> None:
        core = self._core
        try:
            head = request_heads.wire_head(self.head, self.target, self.decision, core.dialer, self.route)
        except BadHead as error:
            self._fail(error.status, str(error))
            return
        self.outbox = head + raw if raw else head
        self._is_replayable = (
            self.is_request_done and self.flow.method in _IDEMPOTENT and len(self.outbox) <= _REPLAY_BYTES
        )
        upstream = core.pool.take(self.route, self._is_replayable)
        if upstream is not None:
            self.attach(upstream)
        else:
            self._connect()

    def _retries(self, upstream: UpstreamConnection) -> bool:
        """A pooled connection was closed while our request was on its way; nobody has answered it, so ask again."""
        if self._has_retried:
            return False
        if upstream.unprocessed is not None and self._pacer_up is None:
            self.outbox = upstream.unprocessed
        elif not upstream.is_reused or upstream.has_answered or not self.outbox:
            return False
        self._has_retried = True
        self._connect()
        return True

    def _connect(self) -> None:
        if not self.is_request_done:
            self.client.hold(CONNECTING)
        self.client.deadline = _NEVER  # the dialer has its own
        if self.route in self._core.pool.multiplexed:
            self.route = self.route._replace(is_multiplexed=True)
        self._core.spawn(self._dial())

    async def _dial(self) -> None:
        core, route = self._core, self.route
        try:
            if route.is_multiplexed:
                from dari.proxy.engine.http2.origin import reach

                upstream = await reach(core, route)
            else:
                upstream = await core.dialer.open(route, lambda _: UpstreamConnection(core.pool, route))
        except ConnectFailed as error:
            if error.wants_other_protocol and not route.is_multiplexed:
                core.pool.note_multiplexed(route)
                self.route = route._replace(is_multiplexed=True)
                await self._dial()
            elif not self.is_over:
                if error.is_tls and self.flow.tls is not None:
                    self.flow.tls.problem = str(error)
                self._fail(error.status, str(error))
            return
        if self.is_over:
            upstream.drop()
        elif upstream.is_lost:
            self._fail(502, f"{self._far_end()} closed the connection without a response")
        else:
            self.attach(upstream)

    def _far_end(self) -> str:
        """Whom the connection leads to, for messages."""
        proxy = self._core.dialer.forwarder(self.route)
        return "the origin" if proxy is None else f"the upstream proxy {proxy.name}, or the origin behind it,"

    def _await_response(self) -> None:
        self.client.deadline = self._core.clock() + self._core.config.response_timeout_s

    def _continue(self) -> None:
        """The origin said nothing; a client that waits for 100 would wait on (HTTP/1.0 origins never send it)."""
        if not (self.is_over or self.is_request_done or self._has_continued or self.has_begun_response):
            self._has_continued = True
            self.client.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _pace(self) -> None:
        throttle = self._core.throttle_of(self.flow)
        if throttle is not None:
            self._pacer_up = ThrottledWriter(throttle, "upstream", lambda: self.client)
            self._pacer_down = ThrottledWriter(throttle, "downstream", lambda: self.upstream)
            self._pacer_down.attach(self.client.transport.write)
