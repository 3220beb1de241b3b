"""The engine: listeners, deadlines, and changes of settings while it runs."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
import sys
from types import EllipsisType
from typing import TYPE_CHECKING, cast

from dari.daemon.listener import is_listening
from dari.errors import Conflict, Failed
from dari.log import format_event
from dari.proxy.engine.client import ClientConnection
from dari.proxy.engine.config import EngineConfig
from dari.proxy.engine.connector import Connector
from dari.proxy.engine.core import EngineContext
from dari.proxy.engine.hooks import AccessHook, AllowAll, RecorderHook, RulesHook, ThrottleHook
from dari.proxy.engine.sniffer import ProtocolSniffer

if TYPE_CHECKING:
    from dari.proxy.ca import CertificateAuthority  # 60 ms of cryptography that a start can do without

_log = logging.getLogger("dari.proxy")
_BACKLOG = 1024
_SO_ORIGINAL_DST = 80


class ProxyEngine:
    """`await start()` binds, `await stop()` ends every connection. Ports and settings are swapped while it runs."""

    def __init__(
        self,
        config: EngineConfig | None = None,
        *,
        rules: RulesHook | None = None,
        recorder: RecorderHook | None = None,
        gate: AccessHook | None = None,
        throttle: ThrottleHook | None = None,
        authority: CertificateAuthority | None = None,
    ) -> None:
        self._config = config or EngineConfig()
        self._rules = rules
        self._recorder = recorder
        self._gate = gate
        self._throttle = throttle
        self._authority = authority
        self._core: EngineContext | None = None
        self._servers: dict[str, asyncio.Server] = {}
        self._ticker: asyncio.TimerHandle | None = None
        self._dead: dict[str, tuple[str, int]] = {}
        """Listeners that were lost, and where they were."""
        self._reviving: set[str] = set()

    @property
    def is_running(self) -> bool:
        return self._core is not None

    @property
    def address(self) -> tuple[str, int] | None:
        """Where the proxy listens, with the port that was taken."""
        return _bound(self._servers.get("proxy"))

    @property
    def transparent_address(self) -> tuple[str, int] | None:
        return _bound(self._servers.get("transparent"))

    @property
    def connection_count(self) -> int:
        return len(self._core.connections) + len(self._core.tunnels) if self._core is not None else 0

    @property
    def pinned_hosts(self) -> frozenset[str]:
        """Hosts whose clients refused our certificate."""
        return frozenset(self._core.pinned) if self._core is not None else frozenset()

    async def start(self) -> None:
        if self._core is not None:
            raise Conflict("proxy already running", "stop it first")
        core = EngineContext(self._config, self._rules, self._recorder, self._gate, self._throttle, self._authority)
        self._core = core
        try:
            await self._bind(core)
        except BaseException:
            await self.stop()
            raise
        self._tick()

    async def stop(self) -> None:
        core, self._core = self._core, None
        if self._ticker is not None:
            self._ticker.cancel()
            self._ticker = None
        servers = list(self._servers.values())
        self._servers.clear()
        self._dead.clear()
        for server in servers:
            server.close()
        if core is not None:
            await core.close()
        for server in servers:
            await server.wait_closed()

    async def apply(self, config: EngineConfig) -> None:
        """Change the settings; connections live on. Only a changed address is bound anew."""
        before, core = self._config, self._core
        if core is None:
            Connector(config, AllowAll(), lambda _: False)  # raises what a running engine would
            self._config = config
            return
        core.configure(config)
        self._config = config
        try:
            if (before.host, before.port) != (config.host, config.port):
                await self._rebind(core, "proxy", config.host, config.port)
            changed = (before.transparent_host, before.transparent_port)
            if changed != (config.transparent_host, config.transparent_port):
                await self._rebind(core, "transparent", config.transparent_host, config.transparent_port)
        except Failed:
            self._config = before
            core.configure(before)
            raise

    def use(
        self,
        *,
        rules: RulesHook | None = None,
        recorder: RecorderHook | None = None,
        gate: AccessHook | None = None,
        authority: CertificateAuthority | EllipsisType | None = ...,
    ) -> None:
        """Replace what is given; the next request sees it.

        A new authority signs from the next handshake on, and with None nothing more is decrypted; connections that
        run are kept.
        """
        self._rules = rules or self._rules
        self._recorder = recorder or self._recorder
        self._gate = gate or self._gate
        if not isinstance(authority, EllipsisType):
            self._authority = authority
        core = self._core
        if core is None:
            return
        core.rules = rules or core.rules
        core.recorder = recorder or core.recorder
        if gate is not None:
            core.gate = gate
            core.configure(core.config)
        if not isinstance(authority, EllipsisType):
            core.trust(authority)

    def throttle(self, throttle: ThrottleHook | None) -> None:
        """None lifts it."""
        self._throttle = throttle
        if self._core is not None:
            self._core.throttle = throttle

    # Inside.

    async def _bind(self, core: EngineContext) -> None:
        config = self._config
        await self._rebind(core, "proxy", config.host, config.port)
        await self._rebind(core, "transparent", config.transparent_host, config.transparent_port)

    async def _rebind(self, core: EngineContext, name: str, host: str, port: int | None) -> None:
        """The new listener first: when its address is taken the old one stays."""
        fresh: asyncio.Server | None = None
        if port is not None:
            try:
                fresh = await core.loop.create_server(
                    lambda: _Arrival(core, name == "transparent"), host, port, backlog=_BACKLOG
                )
            except OSError as error:
                raise Failed(f"cannot listen on {host}:{port}: {error.strerror}", "choose another port") from error
        old = self._servers.pop(name, None)
        if old is not None:
            old.close()
        if fresh is not None:
            self._servers[name] = fresh
        self._dead.pop(name, None)
        core.listeners = [(where[0], where[1]) for one in self._servers.values() if (where := _bound(one)) is not None]

    def _tick(self) -> None:
        """One timer for all deadlines: a timer per request costs more than the request's rules."""
        core = self._core
        if core is None:
            return
        now = core.clock()
        for connection in [one for one in core.connections if one.deadline < now]:
            connection.timed_out()
        core.pool.sweep(core.config.pool_idle_s)
        self._watch_listeners(core)
        self._ticker = core.loop.call_later(core.config.tick_s, self._tick)

    def _watch_listeners(self, core: EngineContext) -> None:
        """A listener that died is bound anew where it was; while that fails it is tried at every tick."""
        for name, server in list(self._servers.items()):
            for one in server.sockets:
                if not is_listening(one):
                    host, port = self._dead[name] = one.getsockname()[:2]
                    _log.error(format_event("proxy", "listener_gone", f"{host}:{port} takes no more connections"))
                    del self._servers[name]
                    server.close()
                    break
        for name, where in self._dead.items():
            if name not in self._reviving:
                self._reviving.add(name)
                core.spawn(self._revive(core, name, where))

    async def _revive(self, core: EngineContext, name: str, where: tuple[str, int]) -> None:
        try:
            await self._rebind(core, name, *where)
            self._dead.pop(name, None)
            _log.info(format_event("proxy", "start", f"{where[0]}:{where[1]} again"))
        except Failed as error:
            _log.warning(format_event("proxy", "listener_gone", error.message))
        finally:
            self._reviving.discard(name)


class _Arrival(asyncio.Protocol):
    """An accepted connection, until it is known whose it is."""

    def __init__(self, core: EngineContext, is_transparent: bool) -> None:
        self._core = core
        self._is_transparent = is_transparent

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)
        core = self._core
        name = transport.get_extra_info("peername")
        if name is None or core.is_stopping:
            transport.abort()
            return
        ip = name[0].removeprefix("::ffff:")
        if len(core.connections) + len(core.tunnels) >= core.config.max_connections or not core.gate.admits(ip):
            transport.abort()
            return
        peer = f"[{ip}]:{name[1]}" if ":" in ip else f"{ip}:{name[1]}"
        owner = core.owner_of((ip, name[1]), transport.get_extra_info("sockname")[:2])
        protocol: ClientConnection | ProtocolSniffer
        if self._is_transparent:
            host, port = _original_destination(transport)
            protocol = ProtocolSniffer(core, peer, host, port, owner=owner)
        else:
            protocol = ClientConnection(core, peer, owner=owner)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)


def _bound(server: asyncio.Server | None) -> tuple[str, int] | None:
    if server is None or not server.sockets:
        return None
    name = server.sockets[0].getsockname()
    return name[0], name[1]


def _original_destination(transport: asyncio.Transport) -> tuple[str | None, int]:
    """Where a redirected connection was going (Linux); without a redirect its first bytes must name the host."""
    sock = transport.get_extra_info("socket")
    own = transport.get_extra_info("sockname")
    if sys.platform == "linux" and sock is not None:
        try:
            if sock.family == socket.AF_INET6:
                raw = sock.getsockopt(socket.IPPROTO_IPV6, _SO_ORIGINAL_DST, 28)
                host, port = socket.inet_ntop(socket.AF_INET6, raw[8:24]), struct.unpack("!H", raw[2:4])[0]
            else:
                raw = sock.getsockopt(socket.SOL_IP, _SO_ORIGINAL_DST, 16)
                host, port = socket.inet_ntoa(raw[4:8]), struct.unpack("!H", raw[2:4])[0]
            if (host, port) != (own[0], own[1]):
                return host, port
        except OSError:
            pass
    return None, 443
