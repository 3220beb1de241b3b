"""What a person decides: carried out, and written to the audit log under their name.

Each of these is refused to callers that an agent may drive (`dari.daemon.person`), and the refusal is recorded. What
cannot be recorded is not done: each raises before anything is decided when the log takes no records.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dari.bridge.trust.items import ItemKind
from dari.bridge.trust.pin_store import HeldItem
from dari.core.approvals import Approval
from dari.daemon.caller_scopes import current_caller, require_person
from dari.errors import Denied

if TYPE_CHECKING:
    from dari.bridge.config.service import ConfigService
    from dari.bridge.service import Bridge


FLUSH_S = 1.0


class Decisions:
    """`by` is the person: a login name, or the page they sit at."""

    def __init__(self, bridge: Bridge, by: str) -> None:
        self._bridge = bridge
        self._by = by

    def let_through(self, approval_id: str, *, for_session: bool = False) -> Approval:
        """Approve one waiting call, or every call of its tool by its session."""
        return self._bridge.approval_service.decide(approval_id, approves=True, by=self._by, for_session=for_session)

    def deny(self, approval_id: str, reason: str = "") -> Approval:
        return self._bridge.approval_service.decide(approval_id, approves=False, by=self._by, reason=reason)

    def approve(
        self, server: str, kind: ItemKind | None = None, name: str | None = None, digest: str | None = None
    ) -> int:
        """Pin what is held of a server, as `Pins.approve` does; returns how many items."""
        return self._about_held(server, kind, name, digest, approves=True)

    def reject(
        self, server: str, kind: ItemKind | None = None, name: str | None = None, digest: str | None = None
    ) -> int:
        """Keep it hidden, and ask no more about this content."""
        return self._about_held(server, kind, name, digest, approves=False)

    def decide_on(self, seen: Sequence[HeldItem], *, approves: bool) -> int:
        """About exactly the contents that were seen; `Conflict` when a server has changed one of them since."""
        act = self.approve if approves else self.reject
        # One content under several capability profiles is one decision.
        items = {(one.server, one.kind, one.name, one.digest) for one in seen}
        return sum(act(server, kind, name, digest) for server, kind, name, digest in sorted(items))

    def forget(self, server: str) -> int:
        """Drop all pins of a server; returns how many there were."""
        self._check("forgetting pins", server=server)
        count = len(self._bridge.pins.pinned(server))
        self._bridge.pins.forget(server, by=self._by)
        self._note("forgotten", server, pins=count)
        return count

    def trust(self, book: ConfigService, path: Path, sha256: str) -> None:
        """Let a project's file with this content run what it names."""
        self._check("trusting a project's file", file=str(path))
        pin = book.trust(path, sha256)
        self._note("trusted", file=str(path), sha256=pin.sha256)

    def refuse_trust(self, book: ConfigService, path: Path, sha256: str, reason: str = "") -> None:
        """Leave a project's file untrusted, and ask no more about this content."""
        self._check("deciding on a project's file", file=str(path))
        book.store.refuse(path, sha256)
        self._note("trust refused", file=str(path), sha256=sha256, **({"reason": reason} if reason else {}))

    def distrust(self, book: ConfigService, path: Path) -> bool:
        """False when it was not trusted."""
        self._check("distrusting a project's file", file=str(path))
        was_trusted = book.distrust(path)
        if was_trusted:
            self._note("distrusted", file=str(path))
        return was_trusted

    def _about_held(
        self, server: str, kind: ItemKind | None, name: str | None, digest: str | None, *, approves: bool
    ) -> int:
        self._check("deciding on what a server changed", server=server)
        pins = self._bridge.pins
        before = {(one.profile, one.kind, one.name): one for one in pins.held(server)}
        act = pins.approve if approves else pins.reject
        count = act(server, kind, name, by=self._by, digest=digest)
        after = {(one.profile, one.kind, one.name): one for one in pins.held(server)}
        for key, one in before.items():
            if after.get(key) != one:
                detail = {"item": one.kind, "old": one.before, "new": one.digest}
                self._note("approved" if approves else "rejected", server, one.name, **detail)
        return count

    def _check(self, what: str, **detail: object) -> None:
        """Raise unless this comes from a person's terminal and can be recorded."""
        audit = self._bridge.audit
        if audit is not None:
            audit.check()
        try:
            require_person(what)
        except Denied as error:
            caller = current_caller()
            if audit is not None:
                pid = None if caller is None else caller.pid
                audit.refuse(self._by, pid=pid, reason=error.message, what=what, **detail)
                audit.flush(FLUSH_S)
            raise

    def _note(self, event: str, server: str = "", tool: str = "", **detail: object) -> None:
        """Written out at once: decisions are few, and who has decided may look them up in the next moment."""
        if self._bridge.audit is not None:
            self._bridge.audit.note("decision", server=server, tool=tool, who=self._by, event=event, **detail)
            self._bridge.audit.flush(FLUSH_S)
