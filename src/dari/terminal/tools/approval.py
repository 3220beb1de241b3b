"""A person's word on what the policy does not decide alone: through the client's form, or through `crux approvals`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from dari.core.context import Context
from dari.core.tool import INNER_LIMITS_ONLY, tool
from dari.daemon.caller_scopes import pass_on_call_of
from dari.errors import Denied, NeedsApproval, TimedOut, Unavailable
from dari.terminal.api.approvals import ApprovalsApi, call_for

ELICIT_S = 600.0
runs_commands = tool(
    scope="control",
    idempotent=False,
    destructive=True,
    open_world=True,
    timeout_s=INNER_LIMITS_ONLY,
    output="as_is",
)
"""Marks a tool whose call may run anything in a shell, and returns what that printed."""
T = TypeVar("T")
_SCHEMA = {
    "type": "object",
    "properties": {"run": {"type": "boolean", "title": "Run it", "description": "Send it to the terminal"}},
    "required": ["run"],
}
_REFUSED = "do not try again; ask what they want instead"


async def with_approval(approvals: ApprovalsApi, context: Context, call: Callable[[], Awaitable[T]]) -> T:
    """`call`, made again once a person has approved it.

    A client that the person has named for it (`elicitation_clients` in crux.toml) shows a form with the approval's id
    and the effect. Others wait for `crux approvals` as long as `approval_wait_ms` says, then get NeedsApproval; the
    same call made again takes the answer. No argument of a tool stands for an approval.
    """
    with call_for(context.client_name), pass_on_call_of(context.who):
        try:
            return await call()
        except NeedsApproval as need:
            if not need.approval_id:
                raise
            refused = need
        if _can_ask(context) and _is_trusted(context, approvals):
            await _ask_by_form(approvals, context, refused)
        else:
            await _wait(approvals, refused)
        return await call()


async def _ask_by_form(approvals: ApprovalsApi, context: Context, need: NeedsApproval) -> None:
    """Return when the person agreed; raise when they did not, or when the client does not ask after all."""
    message = f"An agent wants to run in your terminal:\n\n{need.message}\n\nRun it?"
    try:
        async with asyncio.timeout(ELICIT_S):
            answer = await context.elicit(message, _SCHEMA)
    except Unavailable:
        raise need from None
    except TimeoutError:
        raise TimedOut(
            f"nobody answered: {need.message}", "ask the person whether they want it, then try again"
        ) from None
    is_approved = answer.action == "accept" and (answer.content or {}).get("run") is True
    await approvals.relay_form(need.approval_id, is_approved, context.client_name)
    if not is_approved:
        raise Denied(f"the person did not agree: {need.message}", _REFUSED)


async def _wait(approvals: ApprovalsApi, need: NeedsApproval) -> None:
    found = await approvals.wait(need.approval_id)
    if found.state == "denied":
        reason = f" ({found.reason})" if found.reason else ""
        raise Denied(f"the person did not agree{reason}: {need.message}", _REFUSED)
    if found.state == "waiting":
        raise need


def _is_trusted(context: Context, approvals: ApprovalsApi) -> bool:
    """Whether the person has named the client, and it does not run where an agent could have started it."""
    return context.grant.may_relay_person and context.client_name in getattr(approvals, "form_clients", ())


def _can_ask(context: Context) -> bool:
    """A client that only opens pages cannot show a form; one that says nothing closer can."""
    asked = context.capabilities.get("elicitation")
    return asked is not None and (not asked or not isinstance(asked, dict) or "form" in asked)
