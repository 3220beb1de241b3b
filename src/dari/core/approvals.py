"""Calls that wait for a person: one queue for every part, kept by the hub.

An approval is made for one exact call: who makes it, the tool, and the hash of its arguments. It is answered by its id,
over a person's surface only (`dari.core.person`), and it lets one such call through, or, when the person says so, every
call of that tool by that session, or (`dari.core.standing_approvals`) every call that agrees with a rule. A caller can
wait for the answer, or go and make the same call again later:

    wait_s None    wait until somebody answers or the approval expires; a caller who leaves withdraws it
    wait_s 0, n    wait that long at most, then raise NeedsApproval with the id; the approval stays in the queue

After `first_wait_s` in silence the caller is notified once. Everything runs on one event loop; listeners only enqueue.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field, structs

from dari.core.jcs import digest
from dari.core.rate_limit import Clock, LoopClock, Timer
from dari.errors import Conflict, DariError, Denied, NeedsApproval, NotFound, TimedOut, Unavailable

if TYPE_CHECKING:
    from dari.core.standing_approvals import StandingRule

FIRST_WAIT_S = 30.0
LONG_WAIT_S = 270.0
MAX_WAITING = 100
MAX_GRANTS = 1000
MAX_ANSWERED = 100

State = Literal["waiting", "approved", "denied", "expired", "withdrawn"]
Change = Literal["asked", "waiting", "approved", "denied", "expired", "withdrawn"]
Listener = Callable[["ApprovalEvent"], None]


class ProposedCall(Struct, frozen=True, kw_only=True):
    """The exact call that a person is asked about."""

    server: str
    """The part or the server that would run it."""
    tool: str
    arguments: Any
    who: str
    """The principal or client that calls."""
    session: str = ""
    client: str = ""
    message: str = ""
    """The effect in words; empty: the tool and its arguments say enough."""
    identity: str = ""
    """What runs behind the name of the server: another program may have the name tomorrow, or in another project."""
    asker_pid: int = 0
    """The process that will run the call; 0 for our own. An approval is good in that process alone."""

    @property
    def grant_key(self) -> tuple[str, str, str, int, str]:
        """What an approval for the session is for."""
        return (self.session, self.server, self.tool, self.asker_pid, self.identity)

    @property
    def fingerprint(self) -> tuple[object, ...]:
        where = (self.server, self.identity, self.tool, self.asker_pid)
        return (self.session, self.who, *where, digest(self.arguments), self.message)


class Approval(Struct, frozen=True, kw_only=True):
    """A call in the queue as people see it. `arguments` are redacted: they are shown on terminals and pages."""

    id: str
    server: str
    tool: str
    arguments: Any
    who: str
    session: str
    asked_unix: float
    expires_unix: float
    """0: it does not expire."""
    message: str = ""
    client: str = ""
    state: State = "waiting"
    by: str = ""
    reason: str = ""
    answered_unix: float = 0.0
    for_session: bool = False

    @property
    def name(self) -> str:
        return f"{self.server}/{self.tool}"


class ApprovalEvent(Struct, frozen=True, kw_only=True):
    """`waiting` when the caller is asked to be patient, the others once each."""

    change: Change
    approval: Approval = field(name="question")
    by: str = ""
    reason: str = ""


class _Entry:
    """An approval that is open, or answered and not yet fetched by its caller."""

    __slots__ = ("approval", "call", "fingerprint", "waiter", "timers", "is_notified")

    def __init__(self, approval: Approval, call: ProposedCall) -> None:
        self.approval = approval
        self.call = call
        self.fingerprint = call.fingerprint
        self.waiter: asyncio.Future[None] | None = None
        self.timers: list[Timer] = []
        self.is_notified = False

    @property
    def is_open(self) -> bool:
        return self.approval.state == "waiting"


class ApprovalQueue:
    def __init__(
        self,
        *,
        redact: Callable[[object], object],
        first_wait_s: float = FIRST_WAIT_S,
        long_wait_s: float = LONG_WAIT_S,
        max_waiting: int = MAX_WAITING,
        standing: Callable[[ProposedCall], StandingRule | None] = lambda call: None,
        clock: Clock | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`standing` finds the rule that lets a call through without an answer."""
        self.first_wait_s = first_wait_s
        self.long_wait_s = long_wait_s
        self._redact = redact
        self._max_waiting = max_waiting
        self._standing = standing
        self._clock = clock or LoopClock()
        self._now = now
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._grants: OrderedDict[tuple[str, str, str, int, str], Approval] = OrderedDict()
        """By session, server, tool, the process that asked (a session's name is what that says it is), and what runs
        behind the server's name."""
        self._answered: OrderedDict[str, Approval] = OrderedDict()
        self._listeners: dict[object, Listener] = {}

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` for every change; call what is returned to stop."""
        key = object()
        self._listeners[key] = listener
        return lambda: self._listeners.pop(key, None) and None

    def pending(self) -> list[Approval]:
        """What waits for an answer, oldest first."""
        return [each.approval for each in self._entries.values() if each.is_open]

    def answered(self) -> list[Approval]:
        """What was answered, expired or withdrawn lately, newest first."""
        return list(reversed(self._answered.values()))

    def get(self, approval_id: str) -> Approval:
        """The approval of this id, open or answered lately."""
        entry = self._entries.get(approval_id)
        found = entry.approval if entry is not None else self._answered.get(approval_id)
        if found is None:
            raise NotFound(f"no approval has the id {approval_id[:40]!r}", "see what waits: dari approvals list")
        return found

    def is_granted(self, session: str, server: str, tool: str, asker_pid: int = 0) -> bool:
        """Whether a person approved this tool for the whole session, of whatever runs behind the server's name."""
        return any(key[:4] == (session, server, tool, asker_pid) for key in self._grants)

    async def ask(
        self,
        call: ProposedCall,
        *,
        wait_s: float | None = None,
        lifetime_s: float | None = None,
        on_waiting: Callable[[Approval], None] | None = None,
    ) -> Approval:
        """Return when a person approved this call; raise `Denied`, `TimedOut` or `NeedsApproval`. An answer is used up
        by the call that takes it."""
        granted = self._grants.get(call.grant_key) if call.session else None
        if granted is not None:
            return granted
        entry = self._left_behind(call)
        if (entry is None or entry.is_open) and (rule := self._standing(call)) is not None:
            if entry is not None:
                self._withdraw(entry)
            return self._approval(call, rule.id, 0.0, state="approved", by=f"{rule.by} ({rule.id})")
        entry = entry or self._add(call, lifetime_s)
        if entry.is_open and (wait_s is None or wait_s > 0):
            await self._wait(entry, wait_s, on_waiting)
        if entry.is_open:
            self._notify_waiting(entry)
            raise self._needs_approval(entry.approval)
        self._close(entry)
        if entry.approval.state == "approved":
            return entry.approval
        raise _refusal(entry.approval)

    def approve(self, approval_id: str, *, by: str, for_session: bool = False) -> Approval:
        """A person agrees. Who calls this has checked that it is one."""
        entry = self._find(approval_id)
        answered = self._answer(entry, "approved", by, for_session=for_session)
        if for_session and answered.session:
            while len(self._grants) >= MAX_GRANTS:
                self._grants.popitem(last=False)
            self._grants[entry.call.grant_key] = answered
        return answered

    def deny(self, approval_id: str, *, by: str, reason: str = "") -> Approval:
        return self._answer(self._find(approval_id), "denied", by, reason)

    def proposed(self, approval_id: str) -> ProposedCall:
        """The call that waits under this id, with its arguments as they are."""
        return self._find(approval_id).call

    def grants(self) -> list[Approval]:
        """What was approved for the rest of a session, newest first."""
        return list(reversed(self._grants.values()))

    def revoke(self, approval_id: str) -> Approval:
        """Take back what was approved for a session: its next call asks again."""
        for key, granted in self._grants.items():
            if granted.id == approval_id:
                del self._grants[key]
                return granted
        raise NotFound(f"no session has the approval {approval_id[:40]!r}", "see them: dari approvals rules")

    async def wait(self, approval_id: str, wait_s: float) -> Approval:
        """The approval as soon as it is answered, or as it is after that time. Uses nothing up."""
        entry = self._entries.get(approval_id)
        if entry is not None and entry.is_open and wait_s > 0:
            answered = asyncio.Event()

            def hear(event: ApprovalEvent) -> None:
                if event.approval.id == approval_id and event.approval.state != "waiting":
                    answered.set()

            stop = self.subscribe(hear)
            try:
                async with asyncio.timeout(wait_s):
                    await answered.wait()
            except TimeoutError:
                pass
            finally:
                stop()
        return self.get(approval_id)

    def end_sessions(self, has_ended: Callable[[str], bool], asker_pid: int = 0) -> None:
        """Forget what was approved for these sessions of a process (0: ours), and withdraw what they still ask."""

        def ends(session: str, pid: int) -> bool:
            return bool(session) and max(pid, 0) == asker_pid and has_ended(session)

        for key in [key for key in self._grants if ends(key[0], key[3])]:
            del self._grants[key]
        for entry in [each for each in self._entries.values() if ends(each.call.session, each.call.asker_pid)]:
            self._withdraw(entry)

    def close(self) -> None:
        """Withdraw everything, as at shutdown."""
        for entry in list(self._entries.values()):
            self._withdraw(entry)

    def _left_behind(self, call: ProposedCall) -> _Entry | None:
        """The approval of the same call whose caller left. Two equal calls at once are two calls."""
        fingerprint = call.fingerprint
        self._expire_overdue()
        entries = self._entries.values()
        return next((each for each in entries if each.fingerprint == fingerprint and each.waiter is None), None)

    def _add(self, call: ProposedCall, lifetime_s: float | None) -> _Entry:
        if len(self._entries) >= self._max_waiting:
            raise Unavailable(
                f"at most {self._max_waiting} calls may wait for a person, {len(self._entries)} do",
                "answer them first: dari approvals list",
            )
        asked, total_s = self._now(), lifetime_s or self.first_wait_s + self.long_wait_s
        approval = self._approval(call, secrets.token_hex(4), asked + total_s)
        entry = self._entries[approval.id] = _Entry(approval, call)
        expires = self._clock.time() + total_s
        entry.timers.append(self._clock.call_at(expires, lambda: self._expire(entry)))
        self._publish("asked", approval)
        return entry

    def _approval(
        self, call: ProposedCall, id: str, expires_unix: float, *, state: State = "waiting", by: str = ""
    ) -> Approval:
        now = self._now()
        return Approval(
            id=id,
            server=call.server,
            tool=call.tool,
            arguments=self._redact(call.arguments),
            who=call.who,
            session=call.session,
            client=call.client,
            message=call.message,
            asked_unix=now,
            expires_unix=expires_unix,
            state=state,
            by=by,
            answered_unix=0.0 if state == "waiting" else now,
        )

    async def _wait(self, entry: _Entry, wait_s: float | None, on_waiting: Callable[[Approval], None] | None) -> None:
        waiter = entry.waiter = asyncio.get_running_loop().create_future()

        def first_wait_over() -> None:
            if not waiter.done():
                self._notify_waiting(entry)
                if on_waiting is not None:
                    on_waiting(entry.approval)

        now = self._clock.time()
        timers = [self._clock.call_at(now + self.first_wait_s, first_wait_over)]
        if wait_s is not None:
            timers.append(self._clock.call_at(now + wait_s, lambda: _finish(waiter)))
        entry.timers += timers
        try:
            await waiter
        except asyncio.CancelledError:
            if wait_s is None or not entry.is_open:
                self._withdraw(entry)  # an answer that came in the same moment has nobody to use it
            raise
        finally:
            entry.waiter = None
            for timer in timers:
                timer.cancel()

    def _needs_approval(self, approval: Approval) -> NeedsApproval:
        left_s = max(0.0, approval.expires_unix - self._now())
        what = approval.message or f"{approval.name} needs the approval of a person"
        return NeedsApproval(
            f"{what} (approval {approval.id})",
            f"a person decides, in the console or in a terminal of their own: dari approvals approve {approval.id}; "
            f"then make the same call again, within {left_s:.0f} s",
        )

    def _notify_waiting(self, entry: _Entry) -> None:
        if not entry.is_notified:
            entry.is_notified = True
            self._publish("waiting", entry.approval)

    def _expire_overdue(self) -> None:
        """Timers stand still while the machine sleeps; people and agents read the time of day."""
        now = self._now()
        for entry in [each for each in self._entries.values() if each.approval.expires_unix <= now]:
            self._expire(entry)

    def _expire(self, entry: _Entry) -> None:
        if entry.is_open:
            self._answer(entry, "expired")
        self._close(entry)

    def _withdraw(self, entry: _Entry) -> None:
        if entry.is_open:
            self._answer(entry, "withdrawn")
        self._close(entry)

    def _answer(
        self, entry: _Entry, state: State, by: str = "", reason: str = "", *, for_session: bool = False
    ) -> Approval:
        entry.approval = structs.replace(
            entry.approval, state=state, by=by, reason=reason, answered_unix=self._now(), for_session=for_session
        )
        self._answered[entry.approval.id] = entry.approval
        while len(self._answered) > MAX_ANSWERED:
            self._answered.popitem(last=False)
        if entry.waiter is not None:
            _finish(entry.waiter)
        self._publish(state, entry.approval)
        return entry.approval

    def _close(self, entry: _Entry) -> None:
        for timer in entry.timers:
            timer.cancel()
        entry.timers.clear()
        self._entries.pop(entry.approval.id, None)

    def _find(self, approval_id: str) -> _Entry:
        self._expire_overdue()
        entry = self._entries.get(approval_id)
        if entry is not None and entry.is_open:
            return entry
        if entry is not None or approval_id in self._answered:
            state = self.get(approval_id).state
            raise Conflict(f"approval {approval_id} is {state} already", "see what waits: dari approvals list")
        raise NotFound(f"no call waits under the id {approval_id[:40]!r}", "see what waits: dari approvals list")

    def _publish(self, change: Change, approval: Approval) -> None:
        event = ApprovalEvent(change=change, approval=approval, by=approval.by, reason=approval.reason)
        for listener in list(self._listeners.values()):
            listener(event)


def _finish(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _refusal(approval: Approval) -> DariError:
    what = approval.message or approval.name
    if approval.state == "denied":
        hint = approval.reason or "do not try it again without asking why"
        reason = f" ({approval.reason})" if approval.reason else ""
        return Denied(f"{approval.by or 'a person'} denied {what}{reason}", hint)
    if approval.state == "expired":
        waited_s = approval.expires_unix - approval.asked_unix
        return TimedOut(
            f"nobody answered for {what} in {waited_s:.0f} s",
            "call again when a person is there to answer: dari approvals list",
        )
    return Unavailable(f"the approval of {what} was withdrawn", "call again")
