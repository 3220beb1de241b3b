"""Where map_remote sends a request: an absolute http(s) URL, taken apart once."""

from __future__ import annotations

import re
from typing import NamedTuple

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
