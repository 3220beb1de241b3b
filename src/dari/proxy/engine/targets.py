"""Where a request wants to go: the four forms of a request target, and strict authorities."""

from __future__ import annotations

import re

from msgspec import Struct

from dari.transport.authority import Authority, BadAuthority, parse_authority

DEFAULT_PORTS = {"http": 80, "https": 443}

_URL = re.compile(rb"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^#]*)")


BadTarget = BadAuthority
"""The request target or the Host header names no place."""


class RequestTarget(Struct, frozen=True, gc=False):
    scheme: str
    authority: Authority
    path: bytes
    """Path and query, or `*`."""

    @property
    def port(self) -> int:
        return self.authority.port or DEFAULT_PORTS[self.scheme]


def target_of(url: bytes, scheme: str, host: Authority | None) -> RequestTarget:
    """The place of a request that is not CONNECT. An absolute URL beats the Host header."""
    if url.startswith(b"/"):
        if host is None:
            raise BadTarget("neither the target nor a Host header names the host")
        return RequestTarget(scheme, host, url.partition(b"#")[0])
    found = _URL.match(url)
    if found is not None:
        named, authority, path = found.groups()
        scheme = "http" if named == b"http" else named.decode("ascii").lower()
        if scheme not in DEFAULT_PORTS:
            raise BadTarget(f"scheme {scheme[:20]!r} is not proxied")
        return RequestTarget(scheme, parse_authority(authority), path if path.startswith(b"/") else b"/" + path)
    if url == b"*" and host is not None:
        return RequestTarget(scheme, host, url)
    raise BadTarget("the request target is neither a path nor a URL")


def tunnel_target(url: bytes) -> Authority:
    """The place of a CONNECT request, which must name its port."""
    authority = parse_authority(url)
    if authority.port is None:
        raise BadTarget("CONNECT names no port")
    return authority


def url_target(url: str) -> RequestTarget:
    """The place an absolute URL names."""
    if "://" not in url:
        raise BadTarget(f"the URL must be absolute, got {url[:80]!r}")
    try:
        value = url.encode("ascii")
    except UnicodeEncodeError as error:
        raise BadTarget(f"{url[:80]!r} is not ASCII") from error
    if re.search(rb"[\x00-\x20\x7f]", value):
        raise BadTarget(f"{url[:80]!r} holds a space or a control character")
    return target_of(value, "http", None)
