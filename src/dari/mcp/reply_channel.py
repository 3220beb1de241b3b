"""The seam between the protocol and a transport: one inbound request's way back to its sender."""

from __future__ import annotations

from collections.abc import Mapping

from dari.core.scopes import Grant
from dari.mcp.session import RunningRequest, Session


class ReplyChannel:
    """A transport subclasses this. A pipe uses one channel for all its requests, HTTP one per POST."""

    __slots__ = ()

    transport = "memory"
    """What the log calls this way in: stdio, http, unix."""
    session: Session | None
    grant: Grant
    headers: Mapping[bytes, bytes] | None = None
    """HTTP headers (lower-case names) that the stateless era compares with the body; None elsewhere."""
    owns_ids = True
    """True when two requests in flight with one id would be ambiguous, as on a pipe."""
    can_ask = True
    """Whether a server-to-client request can travel back before the reply."""

    def reply(self, message: bytes, code: int = 0) -> None:
        """Send the response to the request; `code` is its JSON-RPC error code, 0 for a result."""
        raise NotImplementedError

    def emit(self, message: bytes) -> None:
        """Send a notification or a request that belongs to the request being served."""
        raise NotImplementedError

    async def drain(self) -> None:
        """Wait until what was emitted has left."""

    def started(self, call: RunningRequest) -> None:
        """The request is being worked on; cancel the call when its sender goes away."""

    def abandon(self, message: bytes) -> None:
        """The request was cancelled. A pipe says nothing, as MCP asks; HTTP has to end its response."""

    def say_nothing(self) -> None:
        """What was received gets no reply. A pipe has nothing to do; HTTP has to end its response."""

    def suspend(self, retry_ms: int) -> None:
        """Close the response stream for now; the client comes back for the rest (SSE polling)."""
