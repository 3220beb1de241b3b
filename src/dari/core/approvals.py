"""Calls that wait for a person: 30 s in silence, then the caller is told and may wait 270 s more (AgentHub, ADR-A06).

    patience "long"    one call waits through both times; `on_waiting` runs between them
    patience "short"   the call ends at once with NeedsApproval, which names the approval: nothing would tell its
                       client, or the person at it, why it stands still. The same call made again takes the answer

An approval lets one call through, or every call of this tool by this session. A caller who leaves takes its question
along. Everything runs on one event loop; listeners are plain functions that only enqueue.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal

from dari.core.approval import Approval, ApprovalAnswer, ApprovalEvent, Change
from dari.core.clock import Clock, LoopClock, Timer
from dari.core.jcs import digest
from dari.errors import Conflict, DariError, Denied, NeedsApproval, NotFound, TimedOut, Unavailable

FIRST_WAIT_S = 30.0
LONG_WAIT_S = 270.0
MAX_WAITING = 100
MAX_GRANTS = 1000
MAX_ANSWERED = 100

Patience = Literal["long", "short"]
Listener = Callable[[ApprovalEvent], None]
Fingerprint = tuple[str, str, str, str, str]


class _Open:
    """A question without an end yet, or with an answer that nobody has fetched."""

    __slots__ = ("question", "fingerprint", "answer", "waiter", "timers", "is_told")

    def __init__(self, question: Approval, fingerprint: Fingerprint) -> None:
        self.question = question
        self.fingerprint = fingerprint
        self.answer: ApprovalAnswer | None = None
        self.waiter: asyncio.Future[ApprovalAnswer] | None = None
        self.timers: list[Timer] = []
        self.is_told = False


class ApprovalQueue:
    def __init__(
        self,
        *,
        redact: Callable[[object], object],
        first_wait_s: float = FIRST_WAIT_S,
        long_wait_s: float = LONG_WAIT_S,
        questions: int = MAX_WAITING,
        clock: Clock | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.first_wait_s = first_wait_s
        self.long_wait_s = long_wait_s
        self._redact = redact
        self._limit = questions
        self._clock = clock or LoopClock()
        self._now = now
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._grants: OrderedDict[tuple[str, str, str], str] = OrderedDict()
        self._ended: OrderedDict[str, str] = OrderedDict()
        self._listeners: dict[object, Listener] = {}

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Be told of every change; call what is returned to stop."""
        key = object()
        self._listeners[key] = listener
        return lambda: self._listeners.pop(key, None) and None

    def pending(self) -> list[Approval]:
        """What waits for an answer, oldest first."""
        return [each.question for each in self._open.values() if each.answer is None]

    def is_granted(self, session: str, server: str, tool: str) -> bool:
        """Did a person approve this tool for the whole session?"""
        return (session, server, tool) in self._grants

    async def ask(
        self,
        server: str,
        tool: str,
        arguments: object,
        *,
        who: str,
        session: str = "",
        patience: Patience = "long",
        on_waiting: Callable[[Approval], None] | None = None,
    ) -> ApprovalAnswer:
        """Return when a person approved; raise `Denied`, `TimedOut` or, with short patience, `NeedsApproval`."""
        if self.is_granted(session, server, tool):
            return ApprovalAnswer(outcome="approved", by=self._grants[session, server, tool], for_session=True)
        fingerprint = (session, who, server, tool, digest(arguments))
        # Two equal calls at once are two calls: only one whose caller was sent away is taken up again.
        entry = next(
            (each for each in self._open.values() if each.fingerprint == fingerprint and each.waiter is None), None
        ) or self._asked(server, tool, arguments, who, session, fingerprint)
        if entry.answer is not None:
            self._close(entry)
            return _taken(entry.question, entry.answer)
        if patience == "short":
            self._note_waiting(entry)
            raise self._needs_approval(entry)
        return await self._wait(entry, on_waiting)

    def approve(self, question_id: str, *, by: str, for_session: bool = False) -> Approval:
        entry = self._find(question_id)
        question = entry.question
        if for_session and question.session:
            while len(self._grants) >= MAX_GRANTS:
                self._grants.popitem(last=False)
            self._grants[question.session, question.server, question.tool] = by
        self._answer(entry, ApprovalAnswer(outcome="approved", by=by, for_session=for_session))
        return question

    def deny(self, question_id: str, *, by: str, reason: str = "") -> Approval:
        entry = self._find(question_id)
        self._answer(entry, ApprovalAnswer(outcome="denied", by=by, reason=reason))
        return entry.question

    def end_session(self, session: str) -> None:
        """Forget what was approved for a session, and what it still asks."""
        for key in [key for key in self._grants if key[0] == session]:
            del self._grants[key]
        for entry in [each for each in self._open.values() if session and each.question.session == session]:
            self._answer(entry, ApprovalAnswer(outcome="withdrawn"))
            self._close(entry)

    def close(self) -> None:
        """Withdraw everything, as at shutdown."""
        for entry in list(self._open.values()):
            self._answer(entry, ApprovalAnswer(outcome="withdrawn"))
            self._close(entry)

    def _asked(
        self, server: str, tool: str, arguments: object, who: str, session: str, fingerprint: Fingerprint
    ) -> _Open:
        if len(self._open) >= self._limit:
            raise Unavailable(
                f"{len(self._open)} calls wait for a person already", "answer them first: dari remote approvals"
            )
        asked, total_s = self._now(), self.first_wait_s + self.long_wait_s
        question = Approval(
            id=secrets.token_hex(4),
            server=server,
            tool=tool,
            arguments=self._redact(arguments),
            who=who,
            session=session,
            asked_unix=asked,
            expires_unix=asked + total_s,
        )
        entry = self._open[question.id] = _Open(question, fingerprint)
        expires = self._clock.time() + total_s
        entry.timers.append(self._clock.call_at(expires, lambda: self._expire(entry)))
        self._tell("asked", question)
        return entry

    def _needs_approval(self, entry: _Open) -> NeedsApproval:
        question = entry.question
        left_s = max(0.0, question.expires_unix - self._now())
        return NeedsApproval(
            f"{question.name} needs the approval of a person (approval {question.id})",
            f"a person decides: dari remote approvals approve {question.id}; then make the same call again, "
            f"within {left_s:.0f} s",
        )

    def _note_waiting(self, entry: _Open) -> None:
        if not entry.is_told:
            entry.is_told = True
            self._tell("waiting", entry.question)

    async def _wait(self, entry: _Open, on_waiting: Callable[[Approval], None] | None) -> ApprovalAnswer:
        waiter = entry.waiter = asyncio.get_running_loop().create_future()
        first_ends = self._clock.time() + self.first_wait_s
        entry.timers.append(self._clock.call_at(first_ends, lambda: self._first_wait_over(entry, waiter, on_waiting)))
        try:
            answer = await waiter
        except asyncio.CancelledError:
            if entry.answer is None:
                entry.waiter = None
                self._answer(entry, ApprovalAnswer(outcome="withdrawn"))
            self._close(entry)
            raise
        self._close(entry)
        return _taken(entry.question, answer)

    def _first_wait_over(
        self,
        entry: _Open,
        waiter: asyncio.Future[ApprovalAnswer],
        on_waiting: Callable[[Approval], None] | None,
    ) -> None:
        if waiter.done():
            return
        self._note_waiting(entry)
        if on_waiting is not None:
            on_waiting(entry.question)

    def _expire(self, entry: _Open) -> None:
        if entry.answer is None:
            self._answer(entry, ApprovalAnswer(outcome="expired"))
        self._close(entry)

    def _answer(self, entry: _Open, answer: ApprovalAnswer) -> None:
        if entry.answer is not None:
            return
        entry.answer = answer
        if entry.waiter is not None and not entry.waiter.done():
            entry.waiter.set_result(answer)
        self._tell(answer.outcome, entry.question, answer.by, answer.reason)
        if answer.outcome not in ("approved", "denied"):
            self._close(entry)

    def _close(self, entry: _Open) -> None:
        for timer in entry.timers:
            timer.cancel()
        entry.timers.clear()
        if self._open.pop(entry.question.id, None) is not None:
            self._ended[entry.question.id] = entry.answer.outcome if entry.answer is not None else "withdrawn"
            while len(self._ended) > MAX_ANSWERED:
                self._ended.popitem(last=False)

    def _find(self, question_id: str) -> _Open:
        entry = self._open.get(question_id)
        if entry is not None and entry.answer is None:
            return entry
        ended = entry.answer.outcome if entry is not None and entry.answer is not None else self._ended.get(question_id)
        if ended is not None:
            raise Conflict(f"approval {question_id} is {ended} already", "see what waits: dari remote approvals")
        raise NotFound(f"no call waits under the id {question_id!r}", "see what waits: dari remote approvals")

    def _tell(self, change: Change, question: Approval, by: str = "", reason: str = "") -> None:
        told = ApprovalEvent(change=change, question=question, by=by, reason=reason)
        for listener in list(self._listeners.values()):
            listener(told)


def _taken(question: Approval, answer: ApprovalAnswer) -> ApprovalAnswer:
    if answer.outcome == "approved":
        return answer
    raise _refusal(question, answer)


def _refusal(question: Approval, answer: ApprovalAnswer) -> DariError:
    if answer.outcome == "denied":
        return Denied(f"{answer.by} denied {question.name}", answer.reason or "do not try it again without asking why")
    if answer.outcome == "expired":
        waited_s = question.expires_unix - question.asked_unix
        return TimedOut(
            f"nobody answered for {question.name} in {waited_s:.0f} s",
            "call again when a person is there to answer: dari remote approvals, or the console",
        )
    return Unavailable(f"the question about {question.name} was withdrawn", "call again")
