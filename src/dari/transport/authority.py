"""`host[:port]` as a Host header, an Origin or a request target has it, read strictly.

What two parsers could read as two different hosts is refused: user names, percent-escapes, text after the bracket of
an IPv6 address, a port that is not a number, two ports.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache

from msgspec import Struct

# Names as DNS and hosts files have them.
_AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9._-]{1,255}))(?::([0-9]{1,5}))?")
_ORIGIN = re.compile(rb"(https?)://(.+)")


class BadAuthority(ValueError):
    """The text names no place."""


class Authority(Struct, frozen=True, gc=False, cache_hash=True):
    host: str
    """Lower case, without brackets."""
    port: int | None
    text: str
    """As it was written."""


@lru_cache(maxsize=4096)
def parse_authority(value: bytes) -> Authority:
    try:
        text = value.decode("ascii")
    except UnicodeDecodeError as error:
        raise BadAuthority("the authority is not ASCII") from error
    found = _AUTHORITY.fullmatch(text)
    if found is None:
        raise BadAuthority(f"bad authority {text[:80]!r}")
    address, name, digits = found.groups()
    if address is not None:
        try:
            ipaddress.IPv6Address(address)
        except ValueError as error:
            raise BadAuthority(f"bad address {text!r}") from error
    port = int(digits) if digits is not None else None
    if port is not None and not 0 < port < 65536:
        raise BadAuthority(f"bad port in {text!r}")
    return Authority((address or name).lower(), port, text)


def parse_origin(value: bytes) -> tuple[str, Authority]:
    """Scheme and authority of an Origin header: nothing else may stand in one (RFC 6454 §6.2)."""
    found = _ORIGIN.fullmatch(value)
    if found is None:
        raise BadAuthority(f"bad origin {value[:80]!r}")
    return found[1].decode("ascii"), parse_authority(found[2])
