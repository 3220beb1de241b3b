"""A call that waits for a person, as people see it, and what can become of it."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

Outcome = Literal["approved", "denied", "expired", "withdrawn"]
Change = Literal["asked", "waiting", "approved", "denied", "expired", "withdrawn"]


class Approval(Struct, frozen=True, kw_only=True):
    """`arguments` are redacted: they are shown on terminals and pages."""

    id: str
    server: str
    tool: str
    arguments: Any
    who: str
    """The principal or client that calls."""
    session: str
    asked_unix: float
    expires_unix: float

    @property
    def name(self) -> str:
        return f"{self.server}/{self.tool}"


class ApprovalEvent(Struct, frozen=True, kw_only=True):
    """What listeners get: `waiting` when the caller is told to be patient, the others once at the end."""

    change: Change
    question: Approval
    by: str = ""
    reason: str = ""


class ApprovalAnswer(Struct, frozen=True, kw_only=True):
    outcome: Outcome
    by: str = ""
    reason: str = ""
    for_session: bool = False
