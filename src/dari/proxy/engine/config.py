"""Settings of a running engine: immutable, swapped as a whole by `Engine.apply`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True, frozen=True)
class EngineConfig:
    host: str = "127.0.0.1"
    port: int = 8888
    """0 takes a free port; `Engine.address` tells which."""
    transparent_host: str = "127.0.0.1"
    transparent_port: int | None = None
    sample_bytes: int = 16 * 1024
    """How much of each body stays in the flow; 0 when inspection is off."""
    max_connections: int = 4096
    connect_timeout_s: float = 10.0
    response_timeout_s: float = 30.0
    """From the end of the request to the response's head."""
    request_timeout_s: float = 60.0
    """For a request's head once it began, and for each silence inside its body."""
    idle_timeout_s: float = 300.0
    """A client connection between two requests."""
    pool_idle_s: float = 60.0
    linger_s: float = 2.0
    """How long the rest of an upload is read and dropped after an early response."""
    continue_s: float = 1.0
    """After this silence of the origin `100 Continue` is answered here."""
    sniff_s: float = 0.5
    """A client silent for this long after CONNECT waits for the server to speak first."""
    tick_s: float = 0.5
    """How often deadlines are looked at."""
    edit_bytes: int = 8 * 1024 * 1024
    """Bodies above this are passed on without the edit a rule asked for, or refused where they may not be."""
    insecure_hosts: frozenset[str] = frozenset()
    """Origins whose certificate is not verified; `*` names all."""
    client_certificates: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Host → (certificate file, key file), both PEM."""
    ca_file: str | None = None
    """Roots for origins, besides the system's."""
    upstream_proxy: str | None = None
    """`http://`, `https://` or `socks5://[user:password@]host:port`; origins are reached through it."""
    upstream_bypass: tuple[str, ...] = ()
    """Hosts that are reached without it, written as in `NO_PROXY`."""
    finds_process: bool = False
    """Write the client's pid and name into its flows (Linux, clients on this machine)."""
    passes_through_pinned: bool = False
    """Tunnel a host, instead of decrypting it, after a client has refused our certificate for it."""
