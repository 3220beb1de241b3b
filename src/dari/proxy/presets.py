"""Links people know by name, as latency and bytes per second."""

from __future__ import annotations

import re
from typing import NamedTuple

from dari.errors import InvalidInput

_KIB = 1024


class Preset(NamedTuple):
    name: str
    latency_ms: int
    downstream_bps: int
    """Bytes per second, as everywhere in the throttle."""
    upstream_bps: int


PRESETS: tuple[Preset, ...] = (
    Preset("56k modem", 500, 7 * _KIB, 4 * _KIB),
    Preset("ISDN-256", 200, 32 * _KIB, 16 * _KIB),
    Preset("ISDN-512", 140, 64 * _KIB, 32 * _KIB),
    Preset("ADSL-2M", 90, 256 * _KIB, 32 * _KIB),
    Preset("ADSL2-8M", 60, 1024 * _KIB, 128 * _KIB),
    Preset("ADSL2+16M", 45, 2048 * _KIB, 128 * _KIB),
    Preset("VDSL-32M", 35, 4096 * _KIB, 1024 * _KIB),
    Preset("Fibre-32M", 18, 4096 * _KIB, 4096 * _KIB),
    Preset("Fibre-100M", 12, 12800 * _KIB, 12800 * _KIB),
    Preset("3G", 120, 97 * _KIB, 41 * _KIB),
    Preset("4G", 60, 512 * _KIB, 256 * _KIB),
)


def preset(name: str) -> Preset:
    """Find one by name; case, blanks and punctuation do not matter."""
    found = _BY_KEY.get(_key(name))
    if found is None:
        known = ", ".join(each.name for each in PRESETS)
        raise InvalidInput(f"no throttle preset is called '{name}'", f"presets: {known}")
    return found


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


_BY_KEY = {_key(each.name): each for each in PRESETS}
