"""Binding: the default port moves aside when it is taken, a port the user named never does."""

from __future__ import annotations

import errno
import ipaddress
import socket

from dari.errors import Failed, InvalidInput

DEFAULT_PORT = 3847
LAST_FALLBACK = 3857


class BindFailed(Failed):
    """The HTTP listener could not be bound at start; the process ends with exit code 1."""

    name = "bind_failed"
    exit_code = 1


def bind(host: str, port: int | None) -> socket.socket:
    """A listening socket; without a port, 3847 or the first free one up to 3857."""
    candidates = [port] if port is not None else list(range(DEFAULT_PORT, LAST_FALLBACK + 1))
    for candidate in candidates:
        try:
            return _listen(host, candidate)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise BindFailed(
                    f"cannot listen on {host}:{candidate}: {error.strerror}", "check --http-bind and --http-port"
                ) from None
    if port is not None:
        raise BindFailed(f"port {port} on {host} is in use", "stop what uses it, or choose another --http-port")
    raise BindFailed(
        f"ports {DEFAULT_PORT} to {LAST_FALLBACK} on {host} are all in use", "free one, or name another by --http-port"
    )


def is_loopback(host: str) -> bool:
    """Whether a listener there can be reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def url_port(url: str) -> int:
    """The port in one of our own URLs."""
    return int(url.removesuffix("/mcp").rpartition(":")[2])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
            0
        ]
    except (socket.gaierror, UnicodeError):
        raise InvalidInput(f"--http-bind must be an address of this machine, got {host!r}", "use 127.0.0.1") from None
    listener = socket.socket(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener
