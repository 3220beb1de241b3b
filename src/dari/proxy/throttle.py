"""A slow link, imitated: latency before each answer and one token bucket per direction for all connections."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from time import monotonic
from typing import Literal, NamedTuple

from msgspec import Struct

from dari.core.rate_limit import TokenBucket
from dari.errors import InvalidInput
from dari.proxy.flow import Flow
from dari.proxy.rules.site import AuthorityPattern, Site

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


Direction = Literal["downstream", "upstream"]

BURST_S = 0.05
"""What an idle link may send at once, in seconds of its rate."""
PIECE_S = 0.1
MIN_PIECE_BYTES = 256
MAX_PIECE_BYTES = 64 * 1024
MAX_LATENCY_MS = 600_000
MAX_BPS = 2**50


class ThrottleSettings(Struct, frozen=True):
    """Replaced whole, as `engine.set_throttle` does. Rates are bytes per second; 0: unlimited."""

    enabled: bool = False
    latency_ms: int = 0
    downstream_bps: int = 0
    upstream_bps: int = 0
    only_selected_hosts: bool = False
    selected_hosts: tuple[str, ...] = ()
    jitter_ms: int = 0

    @classmethod
    def of_preset(cls, name: str, *, selected_hosts: tuple[str, ...] = (), jitter_ms: int = 0) -> ThrottleSettings:
        link = preset(name)
        return cls(
            enabled=True,
            latency_ms=link.latency_ms,
            downstream_bps=link.downstream_bps,
            upstream_bps=link.upstream_bps,
            only_selected_hosts=bool(selected_hosts),
            selected_hosts=selected_hosts,
            jitter_ms=jitter_ms,
        )

    def check(self) -> None:
        for name in ("latency_ms", "jitter_ms", "downstream_bps", "upstream_bps"):
            value = getattr(self, name)
            if value < 0:
                raise InvalidInput(f"{name} must be 0 or more, got {value}", "give 0 for no limit")
            if name.endswith("_bps") and value > MAX_BPS:
                raise InvalidInput(f"{name} must be 0–{MAX_BPS} bytes per second, got {value}", "give 0 for no limit")
            if name.endswith("_ms") and value > MAX_LATENCY_MS:
                raise InvalidInput(f"{name} must be 0–{MAX_LATENCY_MS}, got {value}", "give 0 for no delay")


class Throttle:
    """Ask `applies` once per request or tunnel, `delay_s` before its head, `take` before each piece of a body."""

    def __init__(self, settings: ThrottleSettings | None = None, *, random: Random | None = None) -> None:
        self._random = random or Random()
        self.replace(settings or ThrottleSettings())

    def replace(self, settings: ThrottleSettings) -> None:
        """New settings for the next piece of every connection; old debts are forgotten."""
        settings.check()
        self.settings = settings
        rates = {"downstream": settings.downstream_bps, "upstream": settings.upstream_bps}
        self._buckets = {name: TokenBucket(rate, rate * BURST_S) for name, rate in rates.items() if rate}
        limits = (settings.latency_ms, settings.jitter_ms, settings.downstream_bps, settings.upstream_bps)
        self._is_active = settings.enabled and any(limits)
        patterns = (AuthorityPattern.parse(host) for host in settings.selected_hosts)
        self._selected = tuple(pattern for pattern in patterns if pattern is not None)

    def applies(self, authority: str, scheme: str = "https") -> bool:
        """Enabled, with some limit, and the host selected if only selected ones count (an empty list: never)."""
        if not self._is_active or not self.settings.only_selected_hosts:
            return self._is_active
        site = Site.of(scheme, authority)
        return any(pattern.matches(site) for pattern in self._selected)

    def delay_s(self, authority: str, scheme: str = "https") -> float:
        """Latency before the answer's head, or once per tunnel: as set, give or take up to the jitter."""
        if not self.applies(authority, scheme):
            return 0.0
        jitter_ms = self._random.uniform(-self.settings.jitter_ms, self.settings.jitter_ms)
        return max(0.0, self.settings.latency_ms + jitter_ms) / 1000

    def take(self, direction: Direction, n_bytes: int, now_s: float) -> float:
        """Seconds to wait before these bytes of a throttled connection may go; they count at once."""
        bucket = self._buckets.get(direction) if self._is_active else None
        return 0.0 if bucket is None else bucket.overdraw(now_s, n_bytes)

    def give_back(self, direction: Direction, n_bytes: int) -> None:
        """Bytes that were taken and never sent, because their connection went away."""
        if (bucket := self._buckets.get(direction)) is not None:
            bucket.give_back(n_bytes)

    def piece_bytes(self, direction: Direction) -> int:
        """How much to take at a time: about a tenth of a second, so that a slow link trickles and does not stutter."""
        rate = self.settings.downstream_bps if direction == "downstream" else self.settings.upstream_bps
        return min(max(int(rate * PIECE_S), MIN_PIECE_BYTES), MAX_PIECE_BYTES) if rate else MAX_PIECE_BYTES


class FlowThrottle:
    """A throttle on a clock, asked about flows: the form in which the engine uses it."""

    def __init__(self, throttle: Throttle, clock: Callable[[], float] = monotonic) -> None:
        self.throttle = throttle
        self._clock = clock

    def applies(self, flow: Flow) -> bool:
        return self.throttle.applies(flow.authority, flow.scheme)

    def delay_s(self, flow: Flow) -> float:
        return self.throttle.delay_s(flow.authority, flow.scheme)

    def take(self, direction: Direction, n_bytes: int) -> float:
        return self.throttle.take(direction, n_bytes, self._clock())

    def piece_bytes(self, direction: Direction) -> int:
        return self.throttle.piece_bytes(direction)
