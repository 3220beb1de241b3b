"""What waits for a person's word: asked for clients that cannot show a question, answered at the command line."""

from __future__ import annotations

from msgspec import Struct

from dari.daemon.stub import expose
from dari.errors import InvalidInput
from dari.terminal.approvals import Approvals, Question, State

MAX_WAIT_S = 3600.0


class Approval(Struct, frozen=True, kw_only=True):
    id: str
    message: str
    client: str = ""
    asked_unix: float = 0.0
    state: State = "waiting"
    by: str = ""
    reason: str = ""
    answered_unix: float = 0.0


class ApprovalList(Struct, frozen=True):
    waiting: list[Approval]
    answered: list[Approval]


class ApprovalsApi:
    def __init__(self, approvals: Approvals, wait_s: float) -> None:
        self._approvals = approvals
        self._wait_s = wait_s

    @expose("crux:approval/ask", "control", ends_with_caller=True)
    async def ask(self, message: str, client: str = "", wait_s: float | None = None) -> Approval:
        """Put a question to whoever looks; it stays for ten minutes, and the same one asked again has its answer."""
        limit_s = self._wait_s if wait_s is None else wait_s
        if not 0 <= limit_s <= MAX_WAIT_S:
            raise InvalidInput(f"{limit_s:g} s is no time to wait", f"give 0…{MAX_WAIT_S:g} s, and ask again")
        return _told(await self._approvals.ask(message, client, limit_s))

    @expose("crux:approval/list", "read")
    async def list_approvals(self) -> ApprovalList:
        """What waits, oldest first; what was answered, newest first."""
        return ApprovalList(
            [_told(each) for each in self._approvals.waiting()], [_told(each) for each in self._approvals.ended()]
        )

    @expose("crux:approval/answer", "admin")
    async def answer(self, question_id: str, is_approved: bool, by: str = "", reason: str = "") -> Approval:
        """A person's word. Tokens of agents do not have this scope."""
        return _told(self._approvals.answer(question_id, is_approved, by or "crux approvals", reason))

    @expose("crux:approval/note", "control")
    async def note(self, message: str, is_approved: bool, client: str = "") -> bool:
        """Record what a person said to a client that showed the question itself."""
        self._approvals.note(message, client, is_approved, f"the person at {client or 'a client'}")
        return True


def _told(question: Question) -> Approval:
    return Approval(
        id=question.id,
        message=question.message,
        client=question.client,
        asked_unix=question.asked_unix,
        state=question.state,
        by=question.by,
        reason=question.reason,
        answered_unix=question.answered_unix,
    )
