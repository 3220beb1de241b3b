"""One request through the proxy, as it happened. The engine is the only writer; everyone else reads.

Structs rather than dataclasses: made in C, a fifth of the time, once per request. They never form a cycle.
Stored flows are arrays (`array_like`): a new field goes to the end, none is ever removed or moved.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

Headers = list[tuple[bytes, bytes]]
"""In the order and case of the wire, hop-by-hop headers included."""

Event = Literal[
    "upstream", "map_remote", "map_local", "cert_portal", "tunnel", "upstream_error", "blocked", "fault", "bad_request"
]
SAMPLE_BYTES = 16 * 1024


class Body(Struct, eq=False, gc=False, array_like=True):
    """What went by in one direction. `sample` holds the first bytes, `spool` names the whole on disk if it was kept."""

    size_bytes: int = 0
    sample: bytes = b""
    spool: str | None = None
    outcome: Literal["open", "complete", "error"] = "open"
    error: str | None = None
    trailers: Headers | None = None


class Tls(Struct, eq=False, gc=False):
    """What is known of the two TLS legs of a decrypted flow."""

    sni: str | None = None
    client_version: str | None = None
    client_alpn: str | None = None
    upstream_version: str | None = None
    upstream_alpn: str | None = None
    upstream_subject: str | None = None
    problem: str | None = None
    """Why it is not decrypted, or why the handshake failed."""


class WebSocketFrame(Struct, eq=False, gc=False, array_like=True):
    """A WebSocket message seen on the way."""

    from_client: bool
    opcode: int
    payload: bytes
    size_bytes: int
    ts_unix_ms: int


class Flow(Struct, eq=False, gc=False, array_like=True):
    """Made when the request's head is known. `state` tells how far it is; times are in ms since `started_unix_ms`."""

    id: int
    peer: str
    started_unix_ms: int
    method: str
    scheme: str
    authority: str
    """host[:port] as the request names it; brackets around IPv6."""
    target: str
    """Path and query."""
    http_version: str = "1.1"
    request_headers: Headers = field(default_factory=list)
    event: Event = "upstream"
    state: Literal["request", "response", "done"] = "request"
    status: int | None = None
    """As the client saw it, after rewriting."""
    upstream_status: int | None = None
    response_headers: Headers = field(default_factory=list)
    head_ms: float | None = None
    total_ms: float | None = None
    request_body: Body = field(default_factory=Body)
    response_body: Body = field(default_factory=Body)
    map_local: str | None = None
    """The matcher of the rule that answered; likewise below."""
    map_remote: str | None = None
    map_remote_to: str | None = None
    status_rewrite: str | None = None
    rule_ids: tuple[str, ...] = ()
    is_encrypted: bool = False
    """True for a tunnel whose content was not seen."""
    is_recorded: bool = True
    """False when the allow list leaves it out: proxied, but neither shown nor matched by rules."""
    tls: Tls | None = None
    frames: list[WebSocketFrame] | None = None
    error: str | None = None
    process: str | None = None
    pid: int | None = None
    replay_of: int | None = None

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}" if self.method != "CONNECT" else self.authority
