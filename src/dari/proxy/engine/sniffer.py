"""The first bytes of a connection whose protocol is not known: after CONNECT, or on the transparent listener.

0x16          TLS: decrypted with a leaf for its SNI when the rules say so
PRI *         HTTP/2 by a client that knows its origin speaks it: the same is spoken there
a capital     an HTTP method: requests are read
else          tunnelled
silence       the far end is dialled, and tunnelled if it speaks first; a client that is only slow is still read
"""

from __future__ import annotations

import asyncio
import ssl
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from dari.errors import DariError
from dari.proxy.engine.client import ClientConnection, Via
from dari.proxy.engine.client_hello import Incomplete, server_name
from dari.proxy.engine.client_process import ConnectionOwner
from dari.proxy.engine.connector import ConnectFailed, FarEnd
from dari.proxy.engine.flow_control import CONNECTING, FlowControlledProtocol
from dari.proxy.engine.hooks import Decision
from dari.proxy.engine.tls import TlsLayer
from dari.proxy.engine.tunnel import join
from dari.proxy.engine.upstream import Route
from dari.proxy.flow import Event, Flow, Tls

if TYPE_CHECKING:
    from dari.proxy.engine.core import EngineContext
    from dari.proxy.engine.http2.client import ClientSession

_NEVER = float("inf")
_OUR_REFUSALS = frozenset(
    (
        "UNSUPPORTED_PROTOCOL",
        "NO_SHARED_CIPHER",
        "VERSION_TOO_LOW",
        "WRONG_VERSION_NUMBER",
        "NO_SUITABLE_SIGNATURE_ALGORITHM",
    )
)
"""Handshakes that we end: what the client offers is too old, or no TLS."""
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class ProtocolSniffer(FlowControlledProtocol):
    """`host` and `port` are where the client wanted to go; None on the transparent listener when nobody knows."""

    def __init__(
        self,
        core: EngineContext,
        peer: str,
        host: str | None,
        port: int,
        flow: Flow | None = None,
        *,
        decrypts: bool = False,
        owner: ConnectionOwner | None = None,
    ) -> None:
        self._core = core
        self._owner = owner
        self._peer = peer
        self._host = host
        self._port = port
        self._flow = flow
        self._decrypts = decrypts
        self._buffer = b""
        self._silence: asyncio.TimerHandle | None = None
        self._far: FarEnd | None = None
        self._has_left = False
        self._has_limit = False
        self.deadline = _NEVER

    def open(self, transport: asyncio.Transport, early: bytes) -> None:
        """Take the transport of a client whose CONNECT was answered."""
        if self._flow is not None:
            self._flow.status = 200
        transport.set_protocol(self)
        self.connection_made(transport)
        if early:
            self.data_received(early)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._core.connections.add(self)
        if self._host is not None:
            self._silence = self._core.loop.call_later(self._core.config.sniff_s, self._hear_server)
        else:
            self.deadline = self._core.clock() + self._core.config.request_timeout_s

    def data_received(self, data: bytes) -> None:
        self._quiet()
        self._buffer += data
        first = self._buffer[0]
        if first == 0x16:
            try:
                sni = server_name(self._buffer)
            except Incomplete:
                if self._flow is not None and not self._decrypts:
                    self._tunnel()
                    return
                self._start_limit(self._core.config.connect_timeout_s)
                return
            self._tls(sni)
        elif self._buffer[: len(_PREFACE)] == _PREFACE[: len(self._buffer)] and self._host is not None:
            if len(self._buffer) < len(_PREFACE):
                self._start_limit(self._core.config.request_timeout_s)
            else:
                via = Via("http", self._host, self._port, self._host)
                self._serve(_session(self._core, self._peer, via, self._owner))
        elif 0x41 <= first <= 0x5A:
            self._plain()
        else:
            self._tunnel()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        if self._flow is not None:
            self._record(self._flow, "the client closed the connection before the tunnel stood", "tunnel")

    def timed_out(self) -> None:
        self.transport.close()

    def abort(self) -> None:
        self.transport.abort()

    # Inside.

    def _start_limit(self, limit_s: float) -> None:
        """Once: a client that sends a byte now and then gets no more time for it."""
        if not self._has_limit:
            self._has_limit = True
            self.deadline = self._core.clock() + limit_s

    def _quiet(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None

    def _hear_server(self) -> None:
        self._silence = None
        assert self._host is not None
        self._core.spawn(self._hear(Route("https", self._host, self._port, self._host)))

    async def _hear(self, route: Route) -> None:
        try:
            far = await self._core.dialer.open(route, lambda _: FarEnd(self._server_spoke), is_tunnel=True)
        except ConnectFailed as error:
            if not self._has_spoken and (self._flow is not None or self._ask_rules(route.host)):
                self._fail_tunnel(error)
            return
        if self._has_spoken:
            far.transport.abort()
            return
        self._far = far
        if far.early or far.is_lost:
            self._server_spoke()

    @property
    def _has_spoken(self) -> bool:
        """The client was first, or has gone."""
        return self._has_left or bool(self._buffer) or bool(self._held)

    def _server_spoke(self) -> None:
        far = self._far
        if far is None or self._has_spoken:
            return
        if far.is_lost:
            self._far = None
        self._tunnel()

    def _leave(self) -> bytes:
        """Somebody else takes the connection, or it is gone."""
        self._quiet()
        self._has_left = True
        self._core.connections.discard(self)
        if self._far is not None:
            self._far.transport.abort()
            self._far = None
        data, self._buffer = self._buffer, b""
        return data

    def _plain(self) -> None:
        via = None if self._host is None else Via("http", self._host, self._port, self._host)
        self._serve(ClientConnection(self._core, self._peer, via, self._owner))

    def _serve(self, client: ClientConnection | ClientSession) -> None:
        transport, data = self.transport, self._leave()
        transport.set_protocol(client)
        client.connection_made(transport)
        client.data_received(data)

    def _tls(self, sni: str | None) -> None:
        core = self._core
        host = self._host or sni
        if host is None:
            self.transport.close()
            return
        if self._flow is None:
            if not self._ask_rules(sni or host):
                return
        elif self._flow.tls is not None:
            self._flow.tls.sni = sni
        name = sni or host
        if self._decrypts and core.config.passes_through_pinned and name in core.pinned:
            self._decrypts = False
            self._note_problem("a client refused our certificate for this host before; passed through")
        if not self._decrypts or core.authority is None:
            self._host = host
            self._tunnel()
            return
        try:
            context = core.authority.context_for(name)
        except (ValueError, DariError) as error:
            self._note_problem(f"no certificate can be made for {name[:100]!r}: {error}")
            self._host = host
            self._tunnel()
            return
        flow = self._flow
        assert flow is not None
        via = Via("https", host, self._port, name, sni)
        client = ClientConnection(core, self._peer, via, self._owner)

        def ready() -> None:
            core.connections.discard(self)
            if layer.get_extra_info("ssl_object").selected_alpn_protocol() == "h2":
                layer.set_protocol(_session(core, self._peer, via, self._owner))

        layer = TlsLayer(
            client,
            context,
            server_side=True,
            on_failed=lambda error: self._refused(flow, name, error),
            on_ready=ready,
        )
        transport, data = self.transport, self._leave()
        # Still ours until the handshake is done: it has a deadline, and ends when the engine does.
        core.connections.add(self)
        self.deadline = core.clock() + core.config.connect_timeout_s
        layer.start(transport, data)

    def _ask_rules(self, name: str) -> bool:
        """For a connection without a CONNECT. False when the rules want it ended, which it then is."""
        core = self._core
        authority = f"[{name}]:{self._port}" if ":" in name else f"{name}:{self._port}"
        flow = Flow(next(core.ids), self._peer, int(time.time() * 1000), "CONNECT", "https", authority, "")
        if self._owner is not None:
            self._owner.sign(flow)
        flow.event = "tunnel"
        flow.tls = Tls(sni=name)
        decision = core.rules.decide(flow)
        self._flow = flow
        self._decrypts = prepare(core, flow, decision)
        if decision.block_status is None and decision.fault is None:
            return True
        self._flow = None
        self._record(flow, "ended by a rule", "blocked" if decision.fault is None else "fault")
        self.reset()
        return False

    def _note_problem(self, problem: str) -> None:
        if self._flow is not None and self._flow.tls is not None:
            self._flow.tls.problem = problem

    def _tunnel(self) -> None:
        core = self._core
        host = self._host
        if host is None:
            self.transport.close()
            return
        if self._flow is None and not self._ask_rules(host):
            return
        flow = self._flow
        assert flow is not None
        flow.is_encrypted = True
        if flow.tls is not None and flow.tls.problem is None:
            flow.tls.problem = "the client did not begin TLS"
        self.hold(CONNECTING)
        core.spawn(self._join(flow, Route("https", host, self._port, host)))

    async def _join(self, flow: Flow, route: Route) -> None:
        core = self._core
        far, self._far = self._far, None
        try:
            if far is None:
                far = await core.dialer.open(route, lambda _: FarEnd(), is_tunnel=True)
        except ConnectFailed as error:
            self._fail_tunnel(error)
            return
        if self.transport.is_closing():
            far.transport.abort()
            return
        far.free(~0)
        self._flow = None
        data = self._leave()
        core.begin(flow, Decision(is_recorded=flow.is_recorded, rule_ids=flow.rule_ids))
        join(core, flow, self.transport, far.transport, data, greeting=far.early)
        self.free(~0)

    def _fail_tunnel(self, error: ConnectFailed) -> None:
        flow, self._flow = self._flow, None
        if flow is not None:
            self._record(flow, str(error), "upstream_error")
        self.transport.close()

    def _record(self, flow: Flow, error: str, event: Event) -> None:
        """A CONNECT that came to nothing is a flow of its own; one that was decrypted is not."""
        flow.event, flow.error = event, error
        flow.is_encrypted = True
        self._core.begin(flow, Decision(is_recorded=flow.is_recorded, rule_ids=flow.rule_ids))
        self._core.finish(flow)

    def _refused(self, flow: Flow, name: str, error: Exception) -> None:
        """The client broke the handshake off: pinned, or the CA is not installed there."""
        self._core.connections.discard(self)
        reason = error.reason if isinstance(error, ssl.SSLError) and error.reason else str(error)
        problem = f"{'tls_failed' if reason in _OUR_REFUSALS else 'tls_client_rejected'}: {reason}"
        if isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or ""):
            self._core.pinned.add(name)
        if flow.tls is not None:
            flow.tls.problem = problem
        self._record(flow, problem, "tunnel")


def _session(core: EngineContext, peer: str, via: Via, owner: ConnectionOwner | None) -> ClientSession:
    # 40 ms of imports that most runs never need.
    from dari.proxy.engine.http2.client import ClientSession

    return ClientSession(core, peer, replace(via, is_multiplexed=True), owner)


def prepare(core: EngineContext, flow: Flow, decision: Decision) -> bool:
    """Whether this CONNECT is decrypted; when not, the flow says why."""
    flow.event = "tunnel"
    flow.is_recorded = decision.is_recorded
    flow.rule_ids = decision.rule_ids
    if decision.decrypts and core.authority is not None:
        return True
    flow.is_encrypted = True
    if flow.tls is not None:
        flow.tls.problem = "no CA is loaded" if decision.decrypts else decision.reason or "no rule asks for it"
    return False
