"""Resource limits of a child: memory, processor time, open files."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dari.errors import InvalidInput

LIMIT_NAMES = ("as", "core", "cpu", "data", "fsize", "memlock", "nofile", "nproc", "stack")
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def parse_limits(given: Mapping[str, int | str]) -> dict[str, int]:
    """`{"as": "1G", "nofile": 256}` in plain numbers. Units are powers of 1024."""
    limits: dict[str, int] = {}
    for name, value in given.items():
        if name.lower() not in LIMIT_NAMES:
            raise InvalidInput(f"there is no resource limit {name!r}", f"known: {', '.join(LIMIT_NAMES)}")
        found = _SIZE.fullmatch(str(value).strip())
        if found is None:
            raise InvalidInput(
                f"{value!r} is no value for the limit {name!r}", "a number, with K, M, G or T if you like"
            )
        limits[name.lower()] = int(found[1]) * _UNITS[found[2].lower()]
    return limits


def to_rlimits(limits: Mapping[str, int]) -> list[tuple[int, int]]:
    """Pairs that `setrlimit` takes on this machine."""
    if not limits:
        return []
    import resource

    return [(getattr(resource, f"RLIMIT_{name.upper()}"), value) for name, value in limits.items()]
