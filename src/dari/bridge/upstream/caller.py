"""The caller of an upstream: identity, what it can be asked, and where progress and logs go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from msgspec import Raw, Struct

from dari.core.approvals import Approval
from dari.core.context import Level, LoggingMessage
from dari.mcp.client.pending import OnProgress

Patience = Literal["long", "short"]
"""How long a call waits for a person: until it is answered, or not at all, to be made again later."""
Ask = Callable[[str, Raw], Awaitable[Any]]


class Caller(Struct, frozen=True, eq=False):
    who: str
    """Principal or program, as the audit log and the questions to a person show it."""
    session: str = ""
    """What `per-client` isolation and approvals for a session go by."""
    patience: Patience = "long"
    for_model: bool = False
    """Results are cleaned of characters that a person would not see."""
    ask: Ask | None = None
    """Answers `elicitation/create`, `sampling/createMessage` and, where the profile says so, `roots/list`; None: nobody
    is there to be asked."""
    takes_questions: bool = False
    """A result of the stateless era that asks back (`input_required`) is handed on as it is, not answered by `ask`."""
    answered: bytes = b""
    """What such a caller brings with its next request: `"inputResponses":{…},"requestState":"…"`, members of an object.
    A server of the handshake era never sees it."""
    capabilities: Mapping[str, Any] | None = None
    """What it declared that can be asked of it: a server of the stateless era is told. None: everything."""
    on_progress: OnProgress | None = None
    on_waiting: Callable[[Approval], None] | None = None
    """The call waits for a person, and has done so for a while."""
    on_log: Callable[[LoggingMessage], None] | None = None
    """What the server logs while the call runs."""
    log_level: Level | None = None


SYSTEM_CALLER = Caller("dari")
"""Ourselves, when a list is fetched or a server is warmed up."""
