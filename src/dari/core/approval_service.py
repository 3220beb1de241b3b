"""The approval queue for other processes: the hub serves these methods on its control socket.

A daemon that has to run a dangerous call asks for its approval here and, once a person has answered, asks again with
the very same call. People answer with `approvals.approve` and `approvals.deny`, which are refused to whatever an agent
may drive. `approvals.relay` carries the answer of a person whom the asking daemon has in front of it (a form of a
client that the person has named for that, a question on the person's terminal): it is taken from the process that
asked, and an approval is good in that process alone, so nobody gains anything by relaying answers to their own. The
record names that process: whom it names is what it says.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from dari.core.approvals import Approval, ApprovalQueue, ProposedCall
from dari.core.scopes import ADMIN, CONTROL, READ
from dari.core.standing_approvals import RuleDraft, StandingApprovalList, StandingApprovals, StandingRule, describe_rule
from dari.daemon.caller_scopes import current_caller, is_person, require_person
from dari.daemon.person import AGENT_HOSTS
from dari.daemon.stub import expose
from dari.errors import Conflict, DariError, Denied, InvalidInput, NeedsApproval, NotFound
from dari.rpc.codec import encode as encode_any

if TYPE_CHECKING:
    from dari.core.audit.log import AuditLog
    from dari.daemon.session import Refusal

MAX_WAIT_S = 3600.0
FLUSH_S = 1.0
_log = logging.getLogger("dari.approvals")


class ApprovalList(Struct, frozen=True):
    """What waits, oldest first; what was answered, newest first."""

    waiting: list[Approval]
    answered: list[Approval]


class DecisionSource(Protocol):
    """Decisions that wait in a store of their own, shown and answered as entries of the one queue."""

    prefix: str
    """Of its ids."""

    def pending(self) -> list[Approval]: ...

    def describe(self, id: str) -> Approval:
        """The entry with what a person reads before they decide."""

    def decide(self, id: str, *, approves: bool, by: str, reason: str) -> Approval:
        """Carry the decision of a person out, and record it."""


class ApprovalService:
    """`audit` returns the log, or None where nothing is recorded."""

    def __init__(
        self,
        queue: ApprovalQueue,
        audit: Callable[[], AuditLog | None] = lambda: None,
        sources: Sequence[DecisionSource] = (),
        standing: StandingApprovals | None = None,
    ) -> None:
        """`standing` are the rules that the queue asks; None: there are none, and none can be made."""
        self.queue = queue
        self._audit = audit
        self._sources = sources
        self._standing = standing

    def pending(self) -> list[Approval]:
        """Everything that waits for a person: calls, oldest first, then what does not expire."""
        return [*self.queue.pending(), *(each for source in self._sources for each in source.pending())]

    @expose("approvals.list", READ)
    async def list_approvals(self) -> ApprovalList:
        return ApprovalList(self.pending(), self.queue.answered())

    @expose("approvals.show", READ)
    async def show(self, id: str) -> Approval:
        """One entry. What a server changed is shown to a person alone: it is held so that no model reads it."""
        source = self._source_of(id)
        if source is None:
            return self.queue.get(id)
        if is_person():
            return source.describe(id)
        found = next((each for each in source.pending() if each.id == id), None)
        if found is None:
            raise NotFound(f"nothing waits under the id {id[:40]!r}", "see what waits: dari approvals list")
        return found

    @expose("approvals.ask", CONTROL)
    async def ask(
        self,
        server: str,
        tool: str,
        arguments: Any,
        who: str,
        session: str = "",
        client: str = "",
        message: str = "",
        lifetime_s: float | None = None,
    ) -> Approval:
        """Return when a person has approved this call, and use the approval up; else raise NeedsApproval with its id,
        or Denied. Does not wait."""
        call = ProposedCall(
            server=server,
            tool=tool,
            arguments=arguments,
            who=who,
            session=session,
            client=client,
            message=message,
            asker_pid=_asker_pid(),
        )
        try:
            return await self.queue.ask(call, wait_s=0, lifetime_s=lifetime_s)
        except NeedsApproval as need:
            if (audit := self._audit()) is not None:
                given = encode_any(arguments)
                pid = call.asker_pid
                audit.hold(server, tool, who=who, session=session, arguments=given, error=need.message, pid=pid)
                await asyncio.to_thread(audit.flush, FLUSH_S)
            await asyncio.to_thread(AGENT_HOSTS.look)  # an agent may end its server before it tries to approve this
            raise

    @expose("approvals.refused", CONTROL)
    async def report_refusal(self, daemon: str, method: str, principal: str, pid: int, reason: str) -> bool:
        """Record that another daemon refused what only a person may do."""
        if (audit := self._audit()) is not None:
            audit.refuse(principal, pid=pid, reason=reason, method=method, daemon=daemon, reported_by_pid=_asker_pid())
            await asyncio.to_thread(audit.flush, FLUSH_S)
        return True

    @expose("approvals.end_sessions", CONTROL)
    async def end_sessions(self, session: str, is_prefix: bool = False) -> bool:
        """Sessions of the calling process have ended: the one of this name, or all whose names begin so."""
        self.queue.end_sessions(
            lambda key: key == session or (is_prefix and key.startswith(session)), max(_asker_pid(), 0)
        )
        return True

    @expose("approvals.wait", CONTROL, ends_with_caller=True)
    async def wait(self, id: str, wait_s: float) -> Approval:
        """The approval as soon as it is answered, or as it is after that time. Uses nothing up."""
        if not 0 <= wait_s <= MAX_WAIT_S:
            raise InvalidInput(f"wait_s must be between 0 and {MAX_WAIT_S:g}, got {wait_s:g}", "wait again after that")
        return await self.queue.wait(id, wait_s)

    @expose("approvals.approve", ADMIN, needs_person=True)
    async def approve(
        self, id: str, for_session: bool = False, by: str = "", rule: RuleDraft | None = None
    ) -> Approval:
        """Let one call through, or every call of its tool by its session, or every call that agrees with a rule."""
        return self.decide(id, approves=True, by=by or "a person", for_session=for_session, rule=rule)

    @expose("approvals.deny", ADMIN, needs_person=True)
    async def deny(self, id: str, reason: str = "", by: str = "") -> Approval:
        return self.decide(id, approves=False, by=by or "a person", reason=reason)

    @expose("approvals.rules", ADMIN)
    async def list_rules(self) -> StandingApprovalList:
        """The standing approvals, newest first, with how often each was used."""
        return StandingApprovalList(rules=[], file="") if self._standing is None else self._standing.listed()

    @expose("approvals.grants", ADMIN)
    async def list_grants(self) -> list[Approval]:
        """What was approved for the rest of a session."""
        return self.queue.grants()

    @expose("approvals.preview_rule", ADMIN)
    async def preview_rule(self, id: str, rule: RuleDraft, by: str = "") -> StandingRule:
        """The rule that `approve` would write; nothing is written."""
        return self._rules.draft(self._proposed(id), rule, by or "a person")

    @expose("approvals.forget_rule", ADMIN, needs_person=True)
    async def forget_rule(self, id: str, by: str = "") -> StandingRule:
        return self.take_back(id, by=by or "a person")

    @expose("approvals.relay", CONTROL)
    async def relay(self, id: str, is_approved: bool, by: str, reason: str = "") -> Approval:
        """The answer of a person that the asking process has in front of it."""
        call = self.queue.proposed(id)
        asker = call.asker_pid
        if asker != _asker_pid():
            why = f"approval {id} is for a call of {call.server}, and process {_asker_pid()} did not ask for it"
            self.record_refusal("relaying an answer", why, id=id)
            raise Denied(why, f"a person answers in a terminal of their own: dari approvals approve {id}, or deny")
        return self._answer(id, is_approved, f"{by}, says process {asker}" if asker else by, reason)

    def decide(
        self,
        id: str,
        *,
        approves: bool,
        by: str,
        reason: str = "",
        for_session: bool = False,
        rule: RuleDraft | None = None,
    ) -> Approval:
        """A person's answer. Refused to whatever an agent may drive, and the refusal is recorded. `rule` approves
        later calls of the kind as well."""
        what = "approving a call" if approves else "denying a call"
        self._require_person(what, id)
        try:
            source = self._source_of(id)
            if source is None and rule is not None:
                return self._approve_always(id, by, rule)
            if source is None and for_session and not self.queue.get(id).session:
                raise InvalidInput(
                    "for_session must be false: this caller has no session", "approve it once, or make a rule"
                )
            if source is None:
                return self._answer(id, approves, by, reason, for_session)
            if for_session or rule is not None:
                raise InvalidInput(
                    f"{'for_session' if for_session else 'rule'} must be left out: it is for calls only",
                    "approve it without; it counts until the content changes",
                )
            return source.decide(id, approves=approves, by=by, reason=reason)
        except (Conflict, NotFound) as error:  # answered, used up or never asked for: somebody tries an id again
            self.record_refusal(what, error.message, id=id)
            raise

    def take_back(self, id: str, *, by: str) -> StandingRule:
        """Remove a rule, for a person."""
        self._require_person("taking back a standing approval", id)
        audit = self._audit()
        if audit is not None:
            audit.check()
        rule = self._rules.remove(id)
        self._record_rule("rule taken back", rule, by)
        return rule

    def revoke_grant(self, id: str, *, by: str) -> Approval:
        """Take back what was approved for a session, for a person."""
        self._require_person("taking back an approval for a session", id)
        granted = self.queue.revoke(id)
        if (audit := self._audit()) is not None:
            names = {"server": granted.server, "tool": granted.tool, "session": granted.session}
            event = "session approval taken back"
            audit.note_decision(who=by, **names, event=event, id=id, caller=granted.who)
            audit.flush(FLUSH_S)
        return granted

    @property
    def _rules(self) -> StandingApprovals:
        if self._standing is None:
            raise Conflict("this process keeps no standing approvals", "ask the hub: dari approvals rules")
        return self._standing

    def _proposed(self, id: str) -> ProposedCall:
        if self._source_of(id) is not None:
            raise InvalidInput(f"{id} is not a call, and a rule is for calls only", "approve it: that counts for good")
        return self.queue.proposed(id)

    def _approve_always(self, id: str, by: str, draft: RuleDraft) -> Approval:
        audit = self._audit()
        if audit is not None:
            audit.check()
        rule = self._rules.draft(self.queue.proposed(id), draft, by)
        self._rules.add(rule)
        self._record_rule("rule made", rule, by, id=id)
        answered = self._answer(id, True, by, rule=rule.id)
        for other in self.queue.pending():
            if rule.covers(self.queue.proposed(other.id)):
                self._answer(other.id, True, by, rule=rule.id)
        return answered

    def _record_rule(self, event: str, rule: StandingRule, by: str, **detail: Any) -> None:
        if (audit := self._audit()) is not None:
            words = {"rule": rule.id, "says": describe_rule(rule), **detail}
            audit.note("decision", server=rule.server, tool=rule.tool, who=by, event=event, **words)
            audit.flush(FLUSH_S)

    def _require_person(self, what: str, id: str) -> None:
        try:
            require_person(what)
        except Denied as error:
            self.record_refusal(what, error.message, id=id)
            raise

    def _source_of(self, id: str) -> DecisionSource | None:
        return next((each for each in self._sources if id.startswith(each.prefix)), None)

    def record_refusal(self, what: str, reason: str, **detail: Any) -> None:
        audit = self._audit()
        if audit is None:
            return
        caller = current_caller()
        pid = os.getpid() if caller is None else caller.pid
        audit.refuse("" if caller is None else caller.principal, pid=pid, reason=reason, what=what, **detail)
        audit.flush(FLUSH_S)

    def _answer(
        self, id: str, approves: bool, by: str, reason: str = "", for_session: bool = False, rule: str = ""
    ) -> Approval:
        audit = self._audit()
        if audit is not None:
            audit.check()  # what cannot be recorded is not done
        if approves:
            answered = self.queue.approve(id, by=by, for_session=for_session)
        else:
            answered = self.queue.deny(id, by=by, reason=reason)
        if audit is not None:
            detail: dict[str, Any] = {"id": id, "caller": answered.who}
            detail |= {"effect": answered.message} if answered.message else {}
            detail |= {"for_session": for_session} if approves else {"reason": reason}
            detail |= {"rule": rule} if rule else {}
            detail["event"] = "call approved" if approves else "call denied"
            names = {"server": answered.server, "tool": answered.tool, "session": answered.session}
            audit.note_decision(who=by, **names, **detail)
            audit.flush(FLUSH_S)
        return answered


def _asker_pid() -> int:
    caller = current_caller()
    return 0 if caller is None else caller.pid or -1


class EndedSessions:
    """Tells the hub which sessions of this process have ended: what was approved for them counts no more. Without a
    hub nothing was."""

    def __init__(self, hub: ApprovalService) -> None:
        self._hub = hub
        self._reports: set[asyncio.Task[None]] = set()

    def report(self, session: str, *, is_prefix: bool = False) -> None:
        task = asyncio.get_running_loop().create_task(self._report(session, is_prefix))
        self._reports.add(task)
        task.add_done_callback(self._reports.discard)

    async def _report(self, session: str, is_prefix: bool) -> None:
        with suppress(DariError, OSError):
            await self._hub.end_sessions(session, is_prefix)


class RefusalReporter:
    """`on_refused` of a daemon that is not the hub: has the hub record what only a person may do and was refused. Where
    no hub can be trusted (one that was started in a pane, say) the record waits in a spool for one."""

    def __init__(self, hub: ApprovalService, daemon: str) -> None:
        self._hub = hub
        self._daemon = daemon
        self._reports: set[asyncio.Task[None]] = set()

    def __call__(self, refusal: Refusal) -> None:
        task = asyncio.get_running_loop().create_task(self._report(refusal))
        self._reports.add(task)
        task.add_done_callback(self._reports.discard)

    async def _report(self, refusal: Refusal) -> None:
        pid = refusal.pid or 0
        try:
            await self._hub.report_refusal(self._daemon, refusal.method, refusal.principal, pid, refusal.reason)
        except (DariError, OSError) as error:
            _log.warning("daemon=%s event=refusal_spooled error=%s", self._daemon, error)
            await asyncio.to_thread(self._spool, refusal)

    def _spool(self, refusal: Refusal) -> None:
        from dari.core.audit.record import PendingRecord
        from dari.core.audit.spool import process_spool

        detail: dict[str, Any] = {"event": "refused", "method": refusal.method, "daemon": self._daemon}
        detail |= {"pid": refusal.pid or 0, "reason": refusal.reason}
        spool = process_spool()
        spool.add(
            PendingRecord(at=time.time(), kind="decision", outcome="denied", who=refusal.principal, detail=detail)
        )
        spool.close()
