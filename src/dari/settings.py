"""What a run was asked to do. Parsed once, at the edge; a running part never reads the environment."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import Struct

Transport = Literal["stdio", "http", "both"]
Protocol = Literal["negotiate", "strict"]
Mode = Literal["full", "search"]


class ServeSettings(Struct, frozen=True, kw_only=True):
    """How one MCP server is offered."""

    transport: Transport = "stdio"
    http_bind: str = "127.0.0.1"
    http_port: int | None = None
    """None: 3847, or the next free one up to 3857. A number is used or refused, never moved."""
    token_path: Path | None = None
    """None: no token is asked for. Only tests and conformance runs do that."""
    client_tokens_path: Path | None = None
    """The tokens of single clients, which count beside that one; None: there are none."""
    socket_path: Path | None = None
    protocol: Protocol = "negotiate"
    allowed_origins: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    allowed_uids: tuple[int, ...] | None = ()
    """Users of this machine that may connect over TCP besides the one we run as; None: every user."""
    rate_limit: float | None = None
    """Requests a second and client; None: unlimited."""
    session_ttl_s: float = 30 * 60.0
    mode: Mode | None = None
    """How tools are listed; None: as the files say that name the servers."""
    profile: str = ""
    """Only the servers of this set."""
    server: str = ""
    """Only this server, under its own names."""
    has_servers: bool = True
    """Whether other people's servers are offered too."""
    has_console: bool = False
    """Whether the web console is served beside `/mcp`."""
    stop_grace_s: float = 5.0
    """How long a stop waits for calls that still run."""
