"""Where an HTTP server is: its URL, taken apart once."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from dari.errors import InvalidInput

_PORTS = {"http": 80, "https": 443}


class Address(Struct, frozen=True):
    """One endpoint. With `socket_path` the connection goes through a Unix socket, whatever the host says."""

    scheme: str
    host: str
    port: int
    target: str
    """Path and query, as the request line has them."""
    credentials: str = ""
    """`user:password` of the URL, in base64."""
    socket_path: Path | None = None

    @property
    def is_tls(self) -> bool:
        return self.scheme == "https"

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def shown(self) -> str:
        """The URL as a message may have it: a query often holds a key."""
        return f"{self.scheme}://{self.host_header}{self.target.partition('?')[0]}"

    def redirected(self, location: str) -> Address | None:
        """Where a redirect leads; None when that is another origin, which is not followed."""
        try:
            there = parse_address(urljoin(f"{self.scheme}://{self.host_header}{self.target}", location))
        except (InvalidInput, ValueError):  # `urljoin` refuses some itself, such as http://[
            return None
        is_same = (there.scheme, there.host, there.port) == (self.scheme, self.host, self.port)
        return replace(self, target=there.target) if is_same and not there.credentials else None


def parse_address(url: str, socket_path: Path | None = None) -> Address:
    """Take a URL apart, or say what is wrong with it."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidInput(f"the address must be a URL ({error}), got {url!r}", "write http://host:port/mcp") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise InvalidInput(f"the URL must start with http:// or https://, got {url!r}", "write http://host:port/mcp")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not target.isascii() or any(c <= " " for c in target):
        raise InvalidInput(f"{url!r} has characters that a URL must escape", "percent-encode them")
    try:
        host = parts.hostname.encode("ascii" if parts.hostname.isascii() else "idna").decode()
    except UnicodeError as error:
        raise InvalidInput(f"the host name is not valid ({error}): {parts.hostname!r}", "check the URL") from None
    credentials = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        credentials = b64encode(pair.encode()).decode()
    return Address(parts.scheme, host, port or _PORTS[parts.scheme], target, credentials, socket_path)
