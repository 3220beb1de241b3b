"""Result types: state of a server, and what it says about itself."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from dari.bridge.config.profile import Isolation


class UpstreamStatus(Struct, frozen=True, kw_only=True):
    id: str
    kind: str
    address: str
    state: str
    isolation: Isolation
    era: str = ""
    version: str = ""
    """The protocol revision that was agreed."""
    server_name: str = ""
    server_version: str = ""
    pid: int | None = None
    restarts: int = 0
    failures: int = 0
    last_error: str = ""
    retry_in_s: float | None = None
    doing: str = ""
    """What a long start is busy with, such as a download."""
    tools: int | None = None
    """None: it was never listed."""
    held: int = 0
    """Items that wait for `dari remote approve`."""
    circuit: str = "closed"
    sessions: int = 0
    calls: int = 0
    """Running now."""
    url: str = ""
    """Where calls go now: the fallback, when the first address does not answer."""
    noise: int = 0
    """Lines on stdout that were not messages."""


class UpstreamInfo(Struct, frozen=True, kw_only=True):
    """What a server says about itself."""

    name: str = ""
    server_version: str = ""
    title: str = ""
    version: str = ""
    era: str = ""
    capabilities: dict[str, Any] = {}
    instructions: str = ""
    """Empty while they are held."""
