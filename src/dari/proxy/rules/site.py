"""Where a request goes: scheme, host and port, and the authority pattern that most rules name it by."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import NamedTuple

DEFAULT_PORTS = {"http": 80, "https": 443}
SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https"}
"""A WebSocket starts as a request of these schemes, so a matcher may be written either way."""


class Site(NamedTuple):
    """One scheme and authority, parsed. `port` is the effective one: explicit, else the scheme's."""

    scheme: str
    authority: str
    host: str
    port: int | None

    @classmethod
    def of(cls, scheme: str, authority: str) -> Site:
        scheme = scheme.lower()
        host, port = split_authority(authority)
        return cls(scheme, authority, host, DEFAULT_PORTS.get(scheme) if port is None else port)


class AuthorityPattern(NamedTuple):
    """`host[:port]`: the host or any sub-domain; `*.suffix`: sub-domains only; `*`: any host.

    The port is compared only if the pattern has one.
    """

    host: str
    port: int | None = None
    is_strict: bool = False

    @classmethod
    def parse(cls, text: str) -> AuthorityPattern | None:
        """None for a text that names no host; such a pattern never matches."""
        host, port = split_authority(text.strip())
        if host in {"*", "*.*"}:
            return cls("*", port)
        is_strict = host.startswith("*.")
        host = host[2:] if is_strict else host
        return cls(host, port, is_strict) if host else None

    @property
    def globs(self) -> tuple[str, ...]:
        """The hosts it stands for, as globs."""
        if self.host == "*":
            return ("*",)
        return (f"*.{self.host}",) if self.is_strict else (self.host, f"*.{self.host}")

    def matches(self, site: Site) -> bool:
        if self.port is not None and self.port != site.port:
            return False
        if self.host == "*":
            return True
        if site.host == self.host:
            return not self.is_strict
        return site.host.endswith(self.host) and site.host[-len(self.host) - 1] == "."


def split_authority(authority: str) -> tuple[str, int | None]:
    """Host (lower case, without brackets, final dot or userinfo) and the explicit port, if there is one."""
    authority = authority.rpartition("@")[2]
    if authority.startswith("["):
        host, _, rest = authority[1:].partition("]")
        port = rest[1:] if rest.startswith(":") else ""
    elif authority.count(":") > 1:
        host, port = authority, ""  # an IPv6 address that lost its brackets
    else:
        host, _, port = authority.partition(":")
        if port and not _is_port(port):
            return authority.lower(), None
    return canonical_host(host), int(port) if _is_port(port) else None


@lru_cache(maxsize=4096)
def canonical_host(host: str) -> str:
    """One spelling for one host: IPv6 compressed, international names in their ASCII form."""
    host = host.removesuffix(".").lower()
    if ":" in host:
        try:
            return ipaddress.IPv6Address(host.partition("%")[0]).compressed
        except ValueError:
            return host
    if not host.isascii():
        try:
            return host.encode("idna").decode()
        except UnicodeError:
            return host
    return host


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5


_URL = re.compile(r"(https?)://([^/?#\s\\]+)([^#]*)", re.IGNORECASE)
_AUTHORITY = re.compile(r"(?:[^@]*@)?(?:\[[0-9A-Fa-f:.%]+\]|[^\[\]:@\"<>^`{|}]+)(?::(\d{1,5}))?")
_BLANK_OR_CONTROL = re.compile(r"[\x00-\x20\x7f]")


class Destination(NamedTuple):
    """`authority` is what the Host header becomes; `target` is path and query."""

    scheme: str
    authority: str
    target: str


def parse_destination(url: str) -> Destination | None:
    """None unless it is an absolute http or https URL that can be sent as it stands."""
    found = _URL.match(url)
    if found is None or _BLANK_OR_CONTROL.search(url):
        return None
    scheme, authority, target = found.groups()
    fits = _AUTHORITY.fullmatch(authority)
    if fits is None or (fits[1] is not None and not 0 < int(fits[1]) < 65536):
        return None
    target = target if target.startswith("/") else "/" + target
    return Destination(scheme.lower(), authority.rpartition("@")[2], target)


def destination_problem(url: str) -> str | None:
    """Why a URL cannot be a destination, in words; None if it can."""
    if parse_destination(url) is not None:
        return None
    if not url.lower().startswith(("http://", "https://")):
        return f"map_remote destination {url!r} is not an absolute http:// or https:// URL"
    return f"map_remote destination {url!r} has no valid host or port"
