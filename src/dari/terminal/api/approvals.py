"""What a person has to agree to before it runs in a pane: asked of the hub's queue, for one exact call.

A method marked with `approvable` runs until the policy raises NeedsApproval. Then the hub is asked for an approval of
this very call: its caller, method, arguments and effect. Where a person has given it, the method runs once more, with
the effect that was agreed to; else its caller gets NeedsApproval with the id. No parameter stands for an approval.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Collection
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

import msgspec
from msgspec import Struct

from dari.core.approval_service import MAX_WAIT_S, ApprovalService, RefusalReporter
from dari.core.approvals import Approval
from dari.daemon.caller_scopes import Assigned, current_caller
from dari.daemon.person import AGENT_HOSTS
from dari.daemon.stub import expose, exposed_name
from dari.errors import Denied, NeedsApproval

LIFETIME_S = 600.0
SERVER = "crux"
P = ParamSpec("P")
T = TypeVar("T")

_MESSAGE: ContextVar[str] = ContextVar("crux_approved_message", default="")
_CLIENT: ContextVar[str] = ContextVar("crux_client", default="")


class HeldCall(NeedsApproval):
    """In the hub's queue, with its id: text of the policy may look like one, since it quotes what a caller sends."""


class ApprovalEntry(Struct, frozen=True, kw_only=True):
    """An approval as `crux approvals` shows it."""

    id: str
    message: str
    client: str = ""
    asked_unix: float = 0.0
    state: str = "waiting"
    by: str = ""
    reason: str = ""
    answered_unix: float = 0.0


class ApprovalEntries(Struct, frozen=True):
    waiting: list[ApprovalEntry]
    answered: list[ApprovalEntry]


def approved_message() -> str:
    """The effect that a person has agreed to for the call that runs now; empty when there is none."""
    return _MESSAGE.get()


def call_for(client: str) -> Assigned[str]:
    """What runs inside is a call of this MCP client."""
    return Assigned(_CLIENT, client)


def approvable(function: Callable[P, Awaitable[T]], *, unhashed: tuple[str, ...] = ()) -> Callable[P, Awaitable[T]]:
    """Mark an exposed method of an api that has a multiplexer in `_all`: its NeedsApproval goes to the hub's queue.

    Arguments named in `unhashed` differ between two attempts of one call and do not change what it does.
    """
    signature = inspect.signature(function)

    @wraps(function)
    async def run(*positional: P.args, **named: P.kwargs) -> T:
        try:
            return await function(*positional, **named)
        except HeldCall:
            raise
        except NeedsApproval as need:
            message, hint = need.message, need.hint
        api = cast(Any, positional[0])
        given = dict(signature.bind(*positional, **named).arguments)
        del given["self"]
        arguments = msgspec.to_builtins({name: value for name, value in given.items() if name not in unhashed})
        await api._all.approvals.obtain(exposed_name(run), arguments, message, hint)
        token = _MESSAGE.set(message)
        try:
            return await function(*positional, **named)
        finally:
            _MESSAGE.reset(token)

    return run


class ApprovalsApi:
    """`hub` is the queue: in this process, or behind the hub's socket."""

    def __init__(self, hub: ApprovalService, wait_s: float = 0.0, *, form_clients: Collection[str] = ()) -> None:
        self._hub = hub
        self._wait_s = wait_s
        self.form_clients = frozenset(form_clients)
        """Clients whose forms may approve a call."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when something begins or ends to wait."""
        self._watching: dict[str, asyncio.Task[None]] = {}
        self.report_refusal = RefusalReporter(hub, SERVER)
        """Has the hub record that something which only a person may do was refused here."""

    @property
    def count(self) -> int:
        """How many calls of panes wait for a person."""
        return len(self._watching)

    async def obtain(self, method: str, arguments: dict[str, Any], message: str, hint: str) -> None:
        """Use up the approval of this call; raises NeedsApproval with its id, Denied, or Unavailable without a hub."""
        caller, client = current_caller(), _CLIENT.get()
        principal = "mcp" if caller is None else caller.principal
        acts_for = "" if caller is None else caller.acts_for
        who = acts_for or (f"{principal}:{client}" if client else principal)
        try:
            await self._hub.ask(
                server=SERVER,
                tool=method.removeprefix("crux:"),
                arguments=arguments,
                who=who,
                client=client or ("crux" if principal == "cli" else who),
                message=message,
                lifetime_s=LIFETIME_S,
            )
        except NeedsApproval as need:
            await asyncio.to_thread(AGENT_HOSTS.look)
            id = need.approval_id
            self._watch(id)
            raise HeldCall(
                need.message,
                f"a person runs `crux approvals approve {id}` in a terminal of their own within 10 minutes, then make "
                f"the same call again; {hint}",
            ) from None

    @expose("crux:approval/wait", "control", ends_with_caller=True)
    async def wait(self, id: str, wait_s: float | None = None) -> ApprovalEntry:
        """The approval as soon as it is answered, or as it is after that time (default: `approval_wait_ms`)."""
        return to_entry(await self._hub.wait(id, self._wait_s if wait_s is None else wait_s))

    @expose("crux:approval/list", "read")
    async def list_approvals(self) -> ApprovalEntries:
        """What waits, oldest first; what was answered, newest first."""
        found = await self._hub.list_approvals()
        calls = [each for each in found.waiting if each.expires_unix]
        return ApprovalEntries([to_entry(each) for each in calls], [to_entry(each) for each in found.answered])

    @expose("crux:approval/answer", "admin", needs_person=True)
    async def answer(self, question_id: str, is_approved: bool, by: str = "", reason: str = "") -> ApprovalEntry:
        """A person's word on a call of a pane, from a terminal outside of what agents drive."""
        return to_entry(await self._hub.relay(question_id, is_approved, by or "crux approvals", reason))

    async def relay_form(self, id: str, is_approved: bool, client: str) -> None:
        """The answer of a person to a form that their client showed. Only for calls inside this process."""
        if current_caller() is not None:
            raise Denied("a form's answer is relayed by the process that showed it", "use crux approvals")
        await self._hub.relay(id, is_approved, f"the person at {client or 'a client'}")

    def close(self) -> None:
        for task in self._watching.values():
            task.cancel()

    def _watch(self, id: str) -> None:
        if id and id not in self._watching:
            self._watching[id] = asyncio.create_task(self._until_answered(id))
            self.on_change()

    async def _until_answered(self, id: str) -> None:
        try:
            while (await self._hub.wait(id, min(LIFETIME_S, MAX_WAIT_S))).state == "waiting":
                pass
        except Exception:
            pass  # the hub is gone, and with it the approval
        finally:
            self._watching.pop(id, None)
            self.on_change()


def to_entry(approval: Approval) -> ApprovalEntry:
    """An approval of any part in the words of `crux approvals`."""
    state = "denied" if approval.state in ("expired", "withdrawn") else approval.state
    return ApprovalEntry(
        id=approval.id,
        message=approval.message or f"{approval.name} {msgspec.json.encode(approval.arguments).decode()}",
        client=approval.client or approval.who,
        asked_unix=approval.asked_unix,
        state=state,
        by=approval.by,
        reason=approval.reason or (approval.state if state != approval.state else ""),
        answered_unix=approval.answered_unix,
    )
