"""The proxy that the caller's environment names, with what NO_PROXY leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

_VARIABLES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
_SCHEMES = {"http": "http", "https": "https", "socks5": "socks5", "socks5h": "socks5h", "socks": "socks5"}
LOCAL = ("localhost", "127.0.0.0/8", "::1")
"""Never behind somebody else's proxy."""


class Upstream(NamedTuple):
    url: str
    bypass: tuple[str, ...]
    variable: str


def upstream_of(environment: Mapping[str, str]) -> Upstream | None:
    """None when there is none, or none that we can go through."""
    for variable in _VARIABLES:
        value = environment.get(variable, "").strip()
        if not value:
            continue
        url = value if "://" in value else f"http://{value}"
        try:
            parts = urlsplit(url)
            is_usable = parts.scheme.lower() in _SCHEMES and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_usable = False
        if is_usable:
            scheme = _SCHEMES[parts.scheme.lower()]
            named = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
            bypass = tuple(part.strip() for part in named.replace(" ", ",").split(",") if part.strip())
            return Upstream(f"{scheme}://{url.partition('://')[2].rstrip('/')}", (*bypass, *LOCAL), variable)
    return None
