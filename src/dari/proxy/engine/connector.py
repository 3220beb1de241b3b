"""Reaching an origin: names, both address families, an upstream proxy, TLS. One task per new connection."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import ssl
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, cast

from dari.proxy.engine.config import EngineConfig
from dari.proxy.engine.flow_control import CONNECTING, FlowControlledProtocol
from dari.proxy.engine.hooks import AccessHook
from dari.proxy.engine.tls import TlsLayer
from dari.proxy.engine.upstream import Route
from dari.proxy.engine.upstream_proxy import Blank, ProxyRefused, UpstreamProxy

# RFC 8305: the second family gets its turn after this long without an answer from the first.
_STAGGER_S = 0.25
_SESSIONS = 256

P = TypeVar("P", bound=FlowControlledProtocol)
T = TypeVar("T", bound=FlowControlledProtocol | Blank)


class ConnectFailed(Exception):
    """No connection; `status` is what the client gets."""

    def __init__(self, status: int, reason: str, is_tls: bool = False, wants_other_protocol: bool = False) -> None:
        super().__init__(reason)
        self.status = status
        self.is_tls = is_tls
        self.wants_other_protocol = wants_other_protocol
        """The origin speaks none of the protocols it was offered."""


class Connector:
    """Opens connections under one configuration; its TLS contexts are made once per kind."""

    def __init__(self, config: EngineConfig, gate: AccessHook, is_self: Callable[[asyncio.Transport], bool]) -> None:
        self._config = config
        self._gate = gate
        self._is_self = is_self
        self._contexts: dict[tuple[bool, bool, str], ssl.SSLContext] = {}
        self._sessions: OrderedDict[Route, ssl.SSLSession] = OrderedDict()
        url = config.upstream_proxy
        self._proxy = UpstreamProxy(url, config.upstream_bypass) if url else None

    def proxy_for(self, route: Route) -> UpstreamProxy | None:
        """The proxy behind this one, for a host that is reached through it."""
        proxy = self._proxy
        return proxy if proxy is not None and proxy.serves(route.host, route.port) else None

    def forwarder(self, route: Route) -> UpstreamProxy | None:
        """The same, where it is sent requests with their whole URL instead of a tunnel."""
        if self._proxy is None or route.scheme != "http" or route.is_multiplexed:
            return None
        proxy = self.proxy_for(route)
        return proxy if proxy is not None and proxy.forwards else None

    async def open(self, route: Route, factory: Callable[[str | None], P], is_tunnel: bool = False) -> P:
        """A connected protocol, after TLS where the route asks for it. Raises DialFailed, and nothing else.

        `factory` is called once the connection stands, with what was agreed by ALPN.
        """
        timeout_s = self._config.connect_timeout_s
        stage = _Stage(f"connection to {route.host}:{route.port}")
        try:
            async with asyncio.timeout(timeout_s):
                return await self._open(route, factory, is_tunnel, stage)
        except TimeoutError as error:
            raise ConnectFailed(504, f"no {stage.awaits} within {timeout_s:g} s") from error
        except ssl.SSLCertVerificationError as error:
            raise ConnectFailed(502, f"certificate of {route.server_name}: {error.verify_message}", True) from error
        except ssl.SSLError as error:
            # Python has no name for this alert; OpenSSL has.
            is_refused = "no application protocol" in str(error).lower().replace("_", " ")
            reason = f"TLS with {route.server_name}: {error.reason or error}"
            raise ConnectFailed(502, reason, True, is_refused) from error
        except socket.gaierror as error:
            raise ConnectFailed(502, f"{route.host} is not known: {error.strerror}") from error
        except ConnectFailed:
            raise
        except Exception as error:  # whatever it is, the client gets an answer
            raise ConnectFailed(502, f"cannot connect to {route.host}:{route.port}: {_reason(error)}") from error

    async def _open(self, route: Route, factory: Callable[[str | None], P], is_tunnel: bool, stage: _Stage) -> P:
        is_tls = route.scheme == "https" and not is_tunnel
        proxy = self.proxy_for(route)
        if proxy is not None:
            if not self._gate.permits(route.host):
                raise ConnectFailed(403, f"{route.host} is a private address, blocked by policy")
            is_tunnelled = is_tls or is_tunnel or route.is_multiplexed or not proxy.forwards
            transport = await self._through(proxy, route, is_tunnelled, stage)
        else:
            transport = await self._connect(route.host, route.port, is_checked=True)
        if is_tls:
            return await self._start_tls(transport, route, factory)
        early = _early(transport)
        peer = factory(None)
        transport.set_protocol(peer)
        peer.connection_made(transport)
        if early:
            peer.data_received(early)
        transport.resume_reading()
        return peer

    async def _through(
        self, proxy: UpstreamProxy, route: Route, is_tunnelled: bool, stage: _Stage
    ) -> asyncio.Transport:
        """A connection to the upstream proxy, or through it. What fails on the way there is not the origin's fault."""
        direct, stage.awaits = stage.awaits, f"connection to the upstream proxy {proxy.name}"
        try:
            transport = await self._connect(proxy.host, proxy.port, is_checked=False)
            if proxy.scheme == "https":
                stage.awaits = f"TLS handshake with the upstream proxy {proxy.name}"
                transport = await self._tls_to(proxy, transport)
            if is_tunnelled:
                stage.awaits = f"tunnel to {route.host}:{route.port} from the upstream proxy {proxy.name}"
                await proxy.open_tunnel(transport, route)
        except (ConnectFailed, TimeoutError):
            raise
        except ProxyRefused as error:
            raise ConnectFailed(502, str(error)) from error
        except ssl.SSLCertVerificationError as error:
            reason = f"certificate of the upstream proxy {proxy.name}: {error.verify_message}"
            raise ConnectFailed(502, reason) from error
        except ssl.SSLError as error:
            reason = f"TLS with the upstream proxy {proxy.name}: {error.reason or error}"
            raise ConnectFailed(502, reason) from error
        except socket.gaierror as error:
            reason = f"the upstream proxy {proxy.name} is not known: {error.strerror}"
            raise ConnectFailed(502, reason) from error
        except Exception as error:
            raise ConnectFailed(502, f"no {stage.awaits}: {_reason(error)}") from error
        stage.awaits = f"{direct} through the upstream proxy {proxy.name}"
        return transport

    async def _tls_to(self, proxy: UpstreamProxy, transport: asyncio.Transport) -> asyncio.Transport:
        route = Route("https", proxy.host, proxy.port, proxy.host)
        return (await self._start_tls(transport, route, lambda _: Blank())).transport

    async def _connect(self, host: str, port: int, is_checked: bool) -> asyncio.Transport:
        addresses = await _addresses(host, port)
        if is_checked:
            for address in addresses:
                if not self._gate.permits(address):
                    raise ConnectFailed(403, f"{host} is a private address, blocked by policy")
        transport = await _race(addresses, port)
        if self._is_self(transport):
            transport.abort()
            raise ConnectFailed(508, f"{host}:{port} is this proxy itself")
        return transport

    async def _start_tls(self, transport: asyncio.Transport, route: Route, factory: Callable[[str | None], T]) -> T:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def failed(error: Exception) -> None:
            if not done.done():
                done.set_exception(error)

        layer = TlsLayer(
            _Waiter(factory, done), self._context(route), server_side=False, server_hostname=route.server_name,
            on_failed=failed, session=self._sessions.pop(route, None),
            on_session=lambda session: self._keep(route, session),
        )  # fmt: skip
        layer.start(transport, _early(transport))
        transport.resume_reading()
        try:
            return await done
        except BaseException:
            transport.abort()
            raise

    def _keep(self, route: Route, session: ssl.SSLSession) -> None:
        """For the next connection there; each is used once (RFC 8446, C.4)."""
        self._sessions[route] = session
        if len(self._sessions) > _SESSIONS:
            self._sessions.popitem(last=False)

    def _context(self, route: Route) -> ssl.SSLContext:
        config, host = self._config, route.server_name
        is_insecure = "*" in config.insecure_hosts or host in config.insecure_hosts
        certificate = config.client_certificates.get(host)
        key = (is_insecure, route.is_multiplexed, host if certificate else "")
        context = self._contexts.get(key)
        if context is None:
            context = ssl.create_default_context()
            if config.ca_file is not None:
                context.load_verify_locations(config.ca_file)
            if is_insecure:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if certificate is not None:
                context.load_cert_chain(*certificate)
            context.set_alpn_protocols(["h2", "http/1.1"] if route.is_multiplexed else ["http/1.1"])
            self._contexts[key] = context
        return context


class _Stage:
    """What a connection waits for now, for the message when it waited in vain."""

    def __init__(self, awaits: str) -> None:
        self.awaits = awaits


class _Waiter(asyncio.Protocol, Generic[T]):
    """Hands the connection to its protocol once TLS stands."""

    def __init__(self, factory: Callable[[str | None], T], done: asyncio.Future[T]) -> None:
        self._factory = factory
        self._done = done

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        peer = self._factory(transport.get_extra_info("ssl_object").selected_alpn_protocol())
        cast(asyncio.Transport, transport).set_protocol(peer)
        peer.connection_made(transport)
        if not self._done.done():
            self._done.set_result(peer)


class FarEnd(FlowControlledProtocol):
    """The far end of a tunnel before it is joined: a server may speak first, which calls `on_news`."""

    def __init__(self, on_news: Callable[[], None] | None = None) -> None:
        self._on_news = on_news
        self.early = b""
        self.is_lost = False

    def data_received(self, data: bytes) -> None:
        self.early += data
        self.hold(CONNECTING)
        if self._on_news is not None:
            self._on_news()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        if self._on_news is not None:
            self._on_news()


def _early(transport: asyncio.Transport) -> bytes:
    """What came before anybody was there to read it. Raises ConnectionError when the connection is gone again."""
    blank = transport.get_protocol()
    if not isinstance(blank, Blank):
        return b""
    if blank.is_ended or (transport.is_closing() and not blank.early):
        raise ConnectionResetError("closed at once")
    return blank.early


async def _addresses(host: str, port: int) -> list[str]:
    """Families in turns, in the resolver's order of preference."""
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        pass
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    families: dict[int, list[str]] = {}
    for family, _, _, _, address in found:
        families.setdefault(family, []).append(str(address[0]))
    lists = list(families.values())
    longest = max(map(len, lists))
    mixed = [each[index] for index in range(longest) for each in lists if index < len(each)]
    return list(dict.fromkeys(mixed))


async def _race(addresses: Sequence[str], port: int) -> asyncio.Transport:
    loop = asyncio.get_running_loop()
    if len(addresses) == 1:
        transport, _ = await loop.create_connection(Blank, addresses[0], port)
        return transport
    waiting = list(addresses)
    running: set[asyncio.Task[tuple[asyncio.Transport, Blank]]] = set()
    problem: BaseException | None = None
    try:
        while waiting or running:
            if waiting:
                running.add(loop.create_task(loop.create_connection(Blank, waiting.pop(0), port)))
            limit_s = _STAGGER_S if waiting else None
            done, running = await asyncio.wait(running, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
            winner: asyncio.Transport | None = None
            for task in done:
                if (problem := task.exception()) is not None:
                    continue
                if winner is None:
                    winner = task.result()[0]
                else:
                    task.result()[0].abort()
            if winner is not None:
                return winner
        assert problem is not None
        raise problem
    finally:
        for task in running:
            task.cancel()
            task.add_done_callback(_abort_late)


def _abort_late(task: asyncio.Task[tuple[asyncio.Transport, Blank]]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result()[0].abort()


def _reason(error: Exception) -> str:
    number = getattr(error, "errno", None)
    # asyncio's own text names the address and leaves out why.
    return os.strerror(number) if number else str(error) or type(error).__name__
