"""What every connection of one engine shares: settings, ports, the pool, the clock and what is alive."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from dari.daemon.tcp_peer import Address
from dari.proxy.access import parse_ip
from dari.proxy.cert_page import CertPage
from dari.proxy.engine.client_process import ConnectionOwner, ProcessFinder
from dari.proxy.engine.config import EngineConfig
from dari.proxy.engine.connector import Connector
from dari.proxy.engine.hooks import (
    AccessHook,
    AllowAll,
    Decision,
    NoRecorder,
    NoRules,
    RecorderHook,
    RulesHook,
    ThrottleHook,
)
from dari.proxy.engine.pool import UpstreamPool
from dari.proxy.engine.tunnel import Tunnel
from dari.proxy.flow import Body, Flow

if TYPE_CHECKING:
    from dari.proxy.ca import CertificateAuthority  # 60 ms of cryptography that a start can do without


class TimedConnection(Protocol):
    """Something with a deadline that ends when the engine does."""

    @property
    def deadline(self) -> float: ...
    def timed_out(self) -> None: ...
    def abort(self) -> None: ...


class EngineContext:
    def __init__(
        self,
        config: EngineConfig,
        rules: RulesHook | None,
        recorder: RecorderHook | None,
        gate: AccessHook | None,
        throttle: ThrottleHook | None,
        authority: CertificateAuthority | None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.clock = self.loop.time
        self.rules = rules or NoRules()
        self.recorder = recorder or NoRecorder()
        self.gate = gate or AllowAll()
        self.throttle = throttle
        self.ids = itertools.count(1)
        self.pool = UpstreamPool(self.clock)
        self.connections: set[TimedConnection] = set()
        self.tunnels: set[Tunnel] = set()
        self.pinned: set[str] = set()
        """Hosts whose clients refused our certificate."""
        self.is_stopping = False
        self.listeners: list[tuple[str, int]] = []
        self._finder: ProcessFinder | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.trust(authority)
        self.configure(config)

    def configure(self, config: EngineConfig) -> None:
        """Raises InvalidInput, and then nothing has changed."""
        self.dialer = Connector(config, self.gate, self.is_self)
        self.config = config
        # Connections made under the old settings (verification, proxy, certificates) must not serve the new ones.
        self.pool.close()

    def trust(self, authority: CertificateAuthority | None) -> None:
        self.authority = authority
        # They refused another one's certificates.
        self.pinned.clear()
        self.cert_page = CertPage(authority)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def begin(self, flow: Flow, decision: Decision) -> None:
        flow.is_recorded = decision.is_recorded
        flow.rule_ids = decision.rule_ids
        if decision.is_recorded:
            self.recorder.began(flow)

    def finish(self, flow: Flow, total_ms: float | None = None) -> None:
        flow.state = "done"
        flow.total_ms = max(time.time() * 1000 - flow.started_unix_ms, 0.0) if total_ms is None else total_ms
        if flow.request_body.outcome == "open":
            _close_body(flow.request_body, flow.error)
        if flow.response_body.outcome == "open":
            _close_body(flow.response_body, flow.error)
        if flow.is_recorded:
            self.recorder.finished(flow)

    def tunnel_done(self, tunnel: Tunnel, problem: Exception | None) -> None:
        self.tunnels.discard(tunnel)
        if problem is not None and tunnel.flow.error is None and not self.is_stopping:
            tunnel.flow.error = str(problem) or type(problem).__name__
        self.finish(tunnel.flow)

    def owner_of(self, peer: Address, own: Address) -> ConnectionOwner | None:
        if not self.config.finds_process or not peer[0].startswith(("127.", "::1")):
            return None
        if self._finder is None:
            self._finder = ProcessFinder()
        return self._finder.look(peer, own)

    def throttle_of(self, flow: Flow) -> ThrottleHook | None:
        throttle = self.throttle
        return throttle if throttle is not None and throttle.applies(flow) else None

    def is_self(self, transport: asyncio.Transport) -> bool:
        """Whether a connection that we opened leads back to one of our listeners."""
        there = transport.get_extra_info("peername")
        here = transport.get_extra_info("sockname")
        if there is None or here is None:
            return False  # closed again already
        to, own = parse_ip(there[0]), parse_ip(here[0])
        for listener, port in self.listeners:
            bound = parse_ip(listener)
            # All of 127.0.0.0/8 is this machine, whatever address the connection came from.
            if there[1] == port and (to == bound or (bound.is_unspecified and (to == own or to.is_loopback))):
                return True
        return False

    async def close(self) -> None:
        """End every connection and wait for every task."""
        self.is_stopping = True
        for connection in list(self.connections):
            connection.abort()
        for tunnel in list(self.tunnels):
            tunnel.abort()
        self.pool.close()
        if self._finder is not None:
            self._finder.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # Transports report their end on the next turns of the loop; `finish` of their flows runs there.
        for _ in range(20):
            await asyncio.sleep(0)
            if not self.connections and not self.tunnels:
                break


def _close_body(body: Body, error: str | None) -> None:
    body.outcome = "complete" if error is None else "error"
    body.error = error
