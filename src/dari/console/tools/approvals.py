"""`dari_approvals_*`: what waits for a person, its exact effect, and the answer."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from dari.console.effects import EffectPart, effect_line, effect_parts
from dari.core.approvals import Approval, State
from dari.core.scopes import ADMIN
from dari.core.standing_approvals import (
    PREFIX,
    RuleDraft,
    StandingApprovalList,
    StandingRule,
    describe_rule,
    named_arguments,
)
from dari.core.tool import tool
from dari.daemon.person import user_name
from dari.errors import InvalidInput

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends

MAX_ANSWERED = 50
MAX_EFFECTS = 500
MAX_NOTE_CHARS = 2000
Id = Annotated[str, Meta(description="As dari_approvals_list shows it", max_length=60)]


class ApprovalSummary(Struct, frozen=True, kw_only=True):
    """An entry of the queue, without its arguments."""

    id: str
    kind: Literal["call", "change", "file"]
    server: str
    tool: str
    who: str
    client: str
    session: str
    effect: str
    """One line of what it does."""
    message: str
    asked_unix: float
    expires_unix: float
    state: State
    by: str
    reason: str
    answered_unix: float
    for_session: bool


class ApprovalQueueView(Struct, frozen=True, kw_only=True):
    """`now_unix` is the hub's clock: times to wait are reckoned from it."""

    waiting: list[ApprovalSummary]
    answered: list[ApprovalSummary]
    now_unix: float


class ApprovalDetail(Struct, frozen=True, kw_only=True):
    approval: ApprovalSummary
    effect: list[EffectPart]
    arguments: dict[str, str]
    """The type of each argument, by its name: what a rule can be made about."""
    can_session: bool
    can_always: bool
    now_unix: float


class RulePreview(Struct, frozen=True, kw_only=True):
    rule: StandingRule
    summary: str


class StandingView(Struct, frozen=True, kw_only=True):
    standing: StandingApprovalList
    sessions: list[ApprovalSummary]
    """What was approved for the rest of a session."""


class Removed(Struct, frozen=True):
    id: str
    summary: str


class ApprovalTools:
    """Tools named `dari_approvals_<name>`."""

    prefix = "dari_approvals"

    def __init__(self, backends: ConsoleBackends) -> None:
        self._backends = backends

    @tool(scope=ADMIN, read_only=True, name="list", output="as_is")
    async def list_approvals(self) -> ApprovalQueueView:
        """List what waits for a person, oldest first, and what was answered, newest first."""
        return queue_view(self._backends)

    @tool(scope=ADMIN, read_only=True, output="as_is")
    async def show(self, id: Id) -> ApprovalDetail:
        """Show one entry with its exact effect: command line, difference, request, arguments without secrets."""
        approval = await self._backends.approvals.show(id)
        summary = summarize(approval)
        is_open_call = summary.kind == "call" and approval.state == "waiting"
        return ApprovalDetail(
            approval=summary,
            effect=effect_parts(approval),
            arguments={name: _type_of(value) for name, value in named_arguments(approval.arguments).items()},
            can_session=is_open_call and bool(approval.session),
            can_always=is_open_call,
            now_unix=time.time(),
        )

    @tool(scope=ADMIN, idempotent=False, output="as_is")
    async def answer(
        self,
        id: Id,
        decision: Annotated[
            Literal["once", "session", "always", "deny"],
            Meta(description="Approve this call, its tool for the session, calls like it for good; or deny it"),
        ],
        note: Annotated[str, Meta(description="deny: the reason, which the agent reads", max_length=2000)] = "",
        rule: Annotated[RuleDraft | None, Meta(description="always: what later calls may differ in")] = None,
    ) -> ApprovalSummary:
        """Answer an entry as a person; returns it with its new state."""
        if note and decision != "deny":
            raise InvalidInput("note must be left out: only a denial has one", "deny, or answer without a note")
        if rule is not None and decision != "always":
            raise InvalidInput(f"rule must be left out with {decision!r}", "use the decision 'always'")
        return summarize(
            self._backends.approvals.decide(
                id,
                approves=decision != "deny",
                by=person_name(),
                reason=note.strip(),
                for_session=decision == "session",
                rule=(rule or RuleDraft()) if decision == "always" else None,
            )
        )

    @tool(scope=ADMIN, read_only=True, output="as_is")
    async def preview_rule(
        self, id: Id, rule: Annotated[RuleDraft, Meta(description="What later calls may differ in")]
    ) -> RulePreview:
        """Show the rule that the answer "always" would write; nothing is written."""
        made = await self._backends.approvals.preview_rule(id, rule, person_name())
        return RulePreview(rule=made, summary=describe_rule(made))

    @tool(scope=ADMIN, read_only=True, output="as_is")
    async def rules(self) -> StandingView:
        """List the standing approvals with their uses, and what was approved for a session."""
        service = self._backends.approvals
        granted = [summarize(each) for each in await service.list_grants()]
        return StandingView(standing=await service.list_rules(), sessions=granted)

    @tool(scope=ADMIN, destructive=True, output="as_is")
    async def forget(
        self, id: Annotated[str, Meta(description="Of a rule, or of an approval for a session", max_length=60)]
    ) -> Removed:
        """Take back a standing approval or one for a session: the next call asks again."""
        service = self._backends.approvals
        if id.startswith(PREFIX):
            return Removed(id, describe_rule(service.take_back(id, by=person_name())))
        granted = service.revoke_grant(id, by=person_name())
        return Removed(id, granted.name)


def queue_view(backends: ConsoleBackends) -> ApprovalQueueView:
    service = backends.approvals
    return ApprovalQueueView(
        waiting=[summarize(each) for each in service.pending()],
        answered=[summarize(each) for each in service.queue.answered()[:MAX_ANSWERED]],
        now_unix=time.time(),
    )


def summarize(approval: Approval) -> ApprovalSummary:
    return ApprovalSummary(
        id=approval.id,
        kind="change" if approval.id.startswith("pin-") else "file" if approval.id.startswith("trust-") else "call",
        server=approval.server,
        tool=approval.tool,
        who=approval.who,
        client=approval.client,
        session=approval.session,
        effect=_effect_of(approval),
        message=approval.message[:MAX_NOTE_CHARS],
        asked_unix=approval.asked_unix,
        expires_unix=approval.expires_unix,
        state=approval.state,
        by=approval.by,
        reason=approval.reason,
        answered_unix=approval.answered_unix,
        for_session=approval.for_session,
    )


_effects: OrderedDict[str, str] = OrderedDict()


def _effect_of(approval: Approval) -> str:
    """Made once for each id: arguments may have megabytes, and the queue is sent again with every change."""
    known = _effects.get(approval.id)
    if known is None:
        known = _effects[approval.id] = effect_line(approval)
        while len(_effects) > MAX_EFFECTS:
            _effects.popitem(last=False)
    return known


def person_name() -> str:
    """Who answers at the page: the user whose hub it is."""
    return f"{user_name()} (console)"


def _type_of(value: Any) -> str:
    return "text" if isinstance(value, str) else "other"
