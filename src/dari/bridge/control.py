"""The bridge for programs: what the console and scripts see and decide, over the daemon's control socket.

Looking needs the scope `read`, stopping a server `control`. What only a person may decide (calls that wait, changed
tools) needs `admin`, which an agent's token does not have, and a caller outside of what agents drive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from dari.bridge.decisions import Decisions
from dari.bridge.trust.items import ItemKind
from dari.bridge.trust.pin_store import HeldItem
from dari.bridge.upstream.status import UpstreamStatus
from dari.core.approvals import Approval
from dari.core.audit.query import query
from dari.core.audit.record import AuditRecord
from dari.core.scopes import ADMIN, CONTROL, READ
from dari.daemon.stub import expose
from dari.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from dari.bridge.service import Bridge

PERSON = "console"
MAX_AUDIT_RECORDS = 1000


class DecisionCount(Struct, frozen=True):
    """How many held items a decision was about."""

    items: int


class StoppedServers(Struct, frozen=True):
    stopped: int
    """Servers of that name: one for each folder or environment that resolves its profile differently."""


class BridgeControl:
    """Its methods as a daemon serves them; `remote(BridgeControl, client)` has the same ones from afar."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    @expose("bridge.status", READ)
    async def status(self) -> list[UpstreamStatus]:
        """Every server that has been used since the start."""
        return self._bridge.statuses()

    @expose("bridge.approvals", READ)
    async def approvals(self) -> list[Approval]:
        """What waits for a person: calls, oldest first, with redacted arguments; changed servers; untrusted files."""
        return self._bridge.approval_service.pending()

    @expose("bridge.approve", ADMIN, needs_person=True)
    async def approve(self, id: str, for_session: bool = False, by: str = PERSON) -> Approval:
        """Let a waiting call through, or every call of its tool by its session."""
        return Decisions(self._bridge, by).let_through(id, for_session=for_session)

    @expose("bridge.deny", ADMIN, needs_person=True)
    async def deny(self, id: str, reason: str = "", by: str = PERSON) -> Approval:
        return Decisions(self._bridge, by).deny(id, reason)

    @expose("bridge.held", READ)
    async def held(self, server: str | None = None) -> list[HeldItem]:
        """Changed items of servers that wait for a person's agreement."""
        return self._bridge.pins.held(server)

    @expose("bridge.approve_pins", ADMIN, needs_person=True)
    async def approve_pins(
        self,
        server: str,
        kind: ItemKind | None = None,
        name: str | None = None,
        digest: str | None = None,
        by: str = PERSON,
    ) -> DecisionCount:
        """Agree to what is held of a server, or to one item; `digest` is that of what the person saw."""
        return DecisionCount(Decisions(self._bridge, by).approve(server, kind, name, digest))

    @expose("bridge.reject_pins", ADMIN, needs_person=True)
    async def reject_pins(
        self,
        server: str,
        kind: ItemKind | None = None,
        name: str | None = None,
        digest: str | None = None,
        by: str = PERSON,
    ) -> DecisionCount:
        return DecisionCount(Decisions(self._bridge, by).reject(server, kind, name, digest))

    @expose("bridge.stop_server", CONTROL, is_slow=True)
    async def stop_server(self, id: str) -> StoppedServers:
        """End the processes and connections of a server; its next use starts it again."""
        known = {status.id for status in self._bridge.statuses()}
        if id not in known:
            names = ", ".join(sorted(known)) or "none"
            raise NotFound(f"no server '{id}' has been used", f"used so far: {names}")
        return StoppedServers(await self._bridge.stop_server(id))

    @expose("bridge.audit_tail", READ)
    async def audit_tail(self, limit: int = 100) -> list[AuditRecord]:
        """The last records of the audit log, newest first."""
        if not 0 < limit <= MAX_AUDIT_RECORDS:
            raise InvalidInput(f"limit must be 1 to {MAX_AUDIT_RECORDS}, got {limit}", "ask for fewer records")
        return query(self._bridge.audit.directory, limit=limit) if self._bridge.audit is not None else []
