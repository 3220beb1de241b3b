"""Who is calling and what they may do."""

from __future__ import annotations

from msgspec import Struct

from dari.errors import Denied

READ = "read"
RULES_WRITE = "rules.write"
CONTROL = "control"
ADMIN = "admin"

MCP_SCOPES = frozenset({READ, RULES_WRITE, CONTROL})
ALL_SCOPES = MCP_SCOPES | {ADMIN}


class Grant(Struct, frozen=True):
    """A principal with its scopes. Scopes are independent: none implies another."""

    principal: str
    scopes: frozenset[str]
    may_relay_person: bool = True
    """Whether a client's form can bring a person's answer: not where the client runs in a pane or in a server of ours,
    nor over HTTP, where its process is not known."""
    client: str = ""
    """The name of the token that vouches for the caller; empty with the token that all clients share, or with none."""
    listener: str = ""
    """What tells clients without a session that come by one listener from those of another with the same token."""

    @property
    def holder(self) -> str:
        """The principal, and the client that its token vouches for: `mcp`, or `mcp@claude-code`. No principal has an
        `@`, so nothing that a client says of itself can look like it."""
        return f"{self.principal}@{self.client}" if self.client else self.principal

    def session_key(self, client_name: str) -> str:
        """The key of a client without a session, as in the stateless era over HTTP: all that its requests share."""
        return f"{self.holder}#{self.listener} {client_name}" if self.listener else f"{self.holder} {client_name}"

    def has_session_key(self, key: str) -> bool:
        """Whether `session_key` made this key. A holder has no blank, nor has the key of a session."""
        return key.startswith(self.session_key(""))


MCP_GRANT = Grant("mcp", MCP_SCOPES)


class InsufficientScope(Denied):
    """The table of design 000 §5.7 fixes this wording; which scope is missing stands in the hint."""

    name = "insufficient_scope"

    def __init__(self, scope: str, grant: Grant) -> None:
        held = ", ".join(sorted(grant.scopes)) or "none"
        super().__init__(
            "insufficient scope", f"this call needs scope '{scope}'; principal '{grant.holder}' holds: {held}"
        )


def require_scope(scope: str, grant: Grant) -> None:
    """Refuse the call unless the caller holds the scope."""
    if scope not in grant.scopes:
        raise InsufficientScope(scope, grant)
