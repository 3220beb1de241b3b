"""The options that choose requests, the same for every command that reads traffic."""

from __future__ import annotations

import argparse
import re
import time
from datetime import datetime
from typing import Any

_AGE = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MEMBERS = {
    "host": "host",
    "method": "method",
    "status": "status",
    "url": "url_contains",
    "url_regex": "url_regex",
    "header": "header_contains",
    "body": "body_contains",
    "mime": "mime",
    "since": "since_unix_ms",
    "errors": "has_error",
    "event": "event",
    "process": "process",
}


def add_filters(parser: argparse.ArgumentParser) -> None:
    chosen = parser.add_argument_group("which requests", "All conditions must hold; text is compared without case.")
    chosen.add_argument("--host", help="this host and its sub-domains; '*.example.com' for the latter only")
    chosen.add_argument("--method", help="one, or several with commas")
    chosen.add_argument("--status", help="404, 4xx, 400-499, 500-, or several with commas")
    chosen.add_argument("--url", metavar="TEXT", help="in the URL")
    chosen.add_argument("--url-regex", metavar="REGEX", help="found in the URL")
    chosen.add_argument("--header", metavar="TEXT", help="in a 'name: value' line of either direction")
    chosen.add_argument("--body", metavar="TEXT", help="in the decoded text of either direction")
    chosen.add_argument("--mime", metavar="TEXT", help="in the media type, such as json")
    chosen.add_argument("--since", metavar="WHEN", type=since, help="10m, 2h, 1d ago, or a time: 2026-11-16T09:30")
    chosen.add_argument("--errors", action="store_true", default=None, help="failed, or answered with 400 or above")
    chosen.add_argument("--event", help="upstream, tunnel, map_local, map_remote, blocked, fault, upstream_error …")
    chosen.add_argument("--process", metavar="NAME", help="in the name of the process that asked, or its pid")


def filter_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """What was given, as the service takes it."""
    given = {member: getattr(arguments, option, None) for option, member in _MEMBERS.items()}
    return {member: value for member, value in given.items() if value is not None}


def since(text: str) -> int:
    """Milliseconds since 1970 of a time, or of so long ago."""
    found = _AGE.fullmatch(text)
    if found is not None:
        return int(time.time() * 1000 - float(found[1]) * _UNITS_MS[found[2]])
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is no time; give an age (30s, 10m, 2h, 1d) or a time (2026-11-16T09:30)"
        ) from None
