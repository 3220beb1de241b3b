"""A person's word on what the policy does not decide alone: asked through the client, or through `crux approvals`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from dari.core.context import Context
from dari.errors import Denied, NeedsApproval, TimedOut, Unavailable
from dari.terminal.api.approvals import ApprovalsApi

ELICIT_S = 600.0
T = TypeVar("T")
_SCHEMA = {
    "type": "object",
    "properties": {"run": {"type": "boolean", "title": "Run it", "description": "Send it to the terminal"}},
    "required": ["run"],
}
_REFUSED = "do not try again; ask what they want instead"


async def with_approval(approvals: ApprovalsApi, context: Context, call: Callable[[str], Awaitable[T]]) -> T:
    """`call` with nothing approved; when it needs approval, ask the person and call again with what was agreed to.

    A client that cannot ask has its question put to `crux approvals`: the call waits a little for an answer, then ends
    with NeedsApproval, and the same call made again takes the answer. No argument of a tool stands for an approval.
    """
    try:
        return await call("")
    except NeedsApproval as need:
        message, hint = need.message, need.hint
    if not _can_ask(context) or not await _elicit(approvals, context, message):
        await _wait(approvals, context, message, hint)
    return await call(message)


async def _elicit(approvals: ApprovalsApi, context: Context, message: str) -> bool:
    """Return when the person agreed; False when the client said that it can ask and does not."""
    try:
        async with asyncio.timeout(ELICIT_S):
            answer = await context.elicit(f"An agent wants to run in your terminal:\n\n{message}\n\nRun it?", _SCHEMA)
    except Unavailable:
        return False
    except TimeoutError:
        raise TimedOut(f"nobody answered: {message}", "ask the person whether they want it, then try again") from None
    is_approved = answer.action == "accept" and (answer.content or {}).get("run") is True
    await approvals.note(message, is_approved, context.client_name)
    if not is_approved:
        raise Denied(f"the person did not agree: {message}", _REFUSED)
    return True


async def _wait(approvals: ApprovalsApi, context: Context, message: str, hint: str) -> None:
    found = await approvals.ask(message, context.client_name)
    if found.state == "denied":
        reason = f" ({found.reason})" if found.reason else ""
        raise Denied(f"the person did not agree{reason}: {message}", _REFUSED)
    if found.state == "waiting":
        raise NeedsApproval(
            f"{message} (question {found.id})",
            f"a person runs `crux approvals approve {found.id}` in a terminal of their own within 10 minutes, then "
            f"make the same call again; {hint}",
        )


def _can_ask(context: Context) -> bool:
    """A client that only opens pages cannot show a form; one that says nothing closer can."""
    asked = context.capabilities.get("elicitation")
    return asked is not None and (not asked or not isinstance(asked, dict) or "form" in asked)
