"""The proxy behind this one: HTTP, HTTPS or SOCKS5, and the hosts that are reached without it."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
from typing import cast
from urllib.parse import unquote, urlsplit

from dari.errors import InvalidInput
from dari.proxy.engine.heads import BadHead, ResponseHead, head_end
from dari.proxy.engine.upstream import Route

_DEFAULT_PORTS = {"http": 8080, "https": 443, "socks5": 1080, "socks5h": 1080}
_FORMS = "http://host:port, https://host:port or socks5://host:port"
_MAX_SOCKS_NAME_BYTES = 255
_SOCKS_REFUSALS = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "TTL expired",
    7: "CONNECT is not supported",
    8: "the kind of address is not supported",
}


class ProxyRefused(Exception):
    """It answered, and opened no tunnel; the message names it."""


class Blank(asyncio.Protocol):
    """Reads nothing until the connection's real protocol takes over. uvloop starts to read all the same."""

    def __init__(self, early: bytes = b"") -> None:
        self.early = early
        self.is_ended = False
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        self.early += data
        self.transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_ended = True


class UpstreamProxy:
    """Raises InvalidInput for a URL that names none; the URL may hold a password and stands in no message."""

    def __init__(self, url: str, bypass: tuple[str, ...] = ()) -> None:
        try:
            parts = urlsplit(url)
            scheme, host, port = parts.scheme.lower(), parts.hostname, parts.port
        except ValueError as error:
            raise InvalidInput(f"upstream proxy: {error}", f"give {_FORMS}") from error
        if scheme not in _DEFAULT_PORTS or not host:
            raise InvalidInput(f"the upstream proxy's URL must be {_FORMS}", "write its scheme, host and port")
        self.scheme = scheme
        self.host = host
        self.port = port or _DEFAULT_PORTS[scheme]
        shown = f"[{host}]" if ":" in host else host
        self.name = f"{scheme}://{shown}:{self.port}"
        """For messages: without user and password."""
        self._login: tuple[bytes, bytes] | None = None
        self.authorization: bytes | None = None
        if parts.username is not None:
            self._login = unquote(parts.username).encode(), unquote(parts.password or "").encode()
            self.authorization = b"Basic " + base64.b64encode(b":".join(self._login))
        self._bypass = bypass

    @property
    def forwards(self) -> bool:
        """Whether a plain HTTP request is sent to it with its whole URL; SOCKS has tunnels only."""
        return self.scheme in ("http", "https")

    def serves(self, host: str, port: int) -> bool:
        return not bypasses(host, port, self._bypass)

    async def open_tunnel(self, transport: asyncio.Transport, route: Route) -> None:
        """Make `transport` a connection to the route's host. Raises ProxyRefused, or OSError when it is cut off."""
        try:
            if self.forwards:
                await self._connect(transport, route)
            else:
                await self._socks(transport, route)
        except BaseException:
            transport.abort()
            raise

    async def _connect(self, transport: asyncio.Transport, route: Route) -> None:
        host = f"[{route.host}]" if ":" in route.host else route.host
        authority = f"{host}:{route.port}".encode("ascii")
        head = b"CONNECT " + authority + b" HTTP/1.1\r\nHost: " + authority + b"\r\n"
        if self.authorization is not None:
            head += b"Proxy-Authorization: " + self.authorization + b"\r\n"
        answer = _ConnectAnswer()
        transport.set_protocol(answer)
        transport.write(head + b"\r\n")
        transport.resume_reading()
        status = await answer.status
        if status == 407:
            raise ProxyRefused(self.wants_login())
        if not 200 <= status < 300:
            raise ProxyRefused(f"the upstream proxy {self.name} answered {status} for {host}:{route.port}")
        _hand_over(transport, answer.rest, answer.is_lost)

    def wants_login(self) -> str:
        given = "refuses the user and password of its URL" if self._login is not None else "asks for a login"
        return f"the upstream proxy {self.name} {given} (407): set it as {self.scheme}://USER:PASSWORD@HOST:PORT"

    async def _socks(self, transport: asyncio.Transport, route: Route) -> None:
        """RFC 1928, with the name and not its address: the proxy's resolver may know more than ours."""
        reader = _Reader()
        transport.set_protocol(reader)
        transport.resume_reading()
        transport.write(b"\x05\x02\x00\x02" if self._login is not None else b"\x05\x01\x00")
        version, method = await reader.exactly(2)
        if version != 5:
            raise ProxyRefused(f"the upstream proxy {self.name} does not speak SOCKS5")
        if method == 2 and self._login is not None:
            user, password = (part[:255] for part in self._login)
            transport.write(bytes((1, len(user))) + user + bytes((len(password),)) + password)
            if (await reader.exactly(2))[1] != 0:
                raise ProxyRefused(self.wants_login().replace(" (407)", ""))
        elif method != 0:
            raise ProxyRefused(self.wants_login().replace(" (407)", ""))
        transport.write(b"\x05\x01\x00" + _socks_address(route.host) + route.port.to_bytes(2, "big"))
        _, code, _, kind = await reader.exactly(4)
        if code != 0:
            why = _SOCKS_REFUSALS.get(code, f"code {code}")
            raise ProxyRefused(f"the upstream proxy {self.name} cannot reach {route.host}:{route.port}: {why}")
        length = {1: 4, 4: 16}.get(kind)
        await reader.exactly((length if length is not None else (await reader.exactly(1))[0]) + 2)
        _hand_over(transport, reader.rest, reader.is_lost)


def _hand_over(transport: asyncio.Transport, early: bytes, is_lost: bool) -> None:
    """The tunnel stands, and the next protocol begins with `early`: a server behind it may have spoken first.

    Nobody else could take that for an answer: to TLS and HTTP/2 it is an error, and a connection for plain requests
    is given up when it brings something before it was asked (`UpstreamConnection`).
    """
    blank = Blank(early)
    blank.is_ended = is_lost
    blank.transport = transport
    transport.pause_reading()
    transport.set_protocol(blank)


def bypasses(host: str, port: int, patterns: tuple[str, ...]) -> bool:
    """As `NO_PROXY` is read: `*`, a host with its sub-domains, `.suffix`, an address or a network, each with a port."""
    host = host.lower().strip("[]").removesuffix(".")
    for pattern in patterns:
        name, wanted = _split_port(pattern.strip().lower())
        if not name or (wanted is not None and wanted != port):
            continue
        if name == "*":
            return True
        try:
            if ipaddress.ip_address(host) in ipaddress.ip_network(name, strict=False):
                return True
        except ValueError:
            suffix = name.removeprefix("*").removeprefix(".")
            if host == suffix or host.endswith("." + suffix):
                return True
    return False


def _split_port(pattern: str) -> tuple[str, int | None]:
    if pattern.startswith("["):
        host, _, rest = pattern[1:].partition("]")
        return host, int(rest[1:]) if rest[1:].isascii() and rest[1:].isdigit() else None
    host, colon, port = pattern.partition(":")
    return (host, int(port)) if colon and port.isascii() and port.isdigit() else (pattern, None)


def _socks_address(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.encode("ascii", "replace")[:_MAX_SOCKS_NAME_BYTES]
        return bytes((3, len(name))) + name
    return bytes((1 if address.version == 4 else 4,)) + address.packed


class _ConnectAnswer(asyncio.Protocol):
    def __init__(self) -> None:
        self.status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.rest = b""
        """What came behind the answer's head, once that is here."""
        self.is_lost = False

    def data_received(self, data: bytes) -> None:
        self.rest += data
        if self.status.done():
            return
        try:
            end = head_end(self.rest)
            if end < 0:
                return
            head = ResponseHead(self.rest[:end], "CONNECT")
        except BadHead as error:
            self.status.set_exception(ConnectionError(f"its answer is malformed: {error}"))
        else:
            self.rest = self.rest[end:]
            self.status.set_result(head.status)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        if not self.status.done():
            self.status.set_exception(exc or ConnectionResetError("it closed the connection"))


class _Reader(asyncio.Protocol):
    """A few bytes at a time."""

    def __init__(self) -> None:
        self.rest = b""
        self.is_lost = False
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def exactly(self, n_bytes: int) -> bytes:
        while len(self.rest) < n_bytes:
            if self._error is not None:
                raise self._error
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        taken, self.rest = self.rest[:n_bytes], self.rest[n_bytes:]
        return taken

    def data_received(self, data: bytes) -> None:
        self.rest += data
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self._error = exc or ConnectionResetError("it closed the connection")
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
