"""A person's word on what the policy does not decide alone, asked through the client that called."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from dari.core.context import Context
from dari.errors import Denied, NeedsApproval

T = TypeVar("T")
_SCHEMA = {
    "type": "object",
    "properties": {"run": {"type": "boolean", "title": "Run it", "description": "Send it to the terminal"}},
    "required": ["run"],
}


async def with_approval(context: Context, call: Callable[[str], Awaitable[T]]) -> T:
    """`call` with nothing approved; when it needs approval, ask the person and call again with what was agreed to.

    A client that cannot ask gets the refusal with what to do instead.
    """
    try:
        return await call("")
    except NeedsApproval as need:
        if not _can_ask(context):
            raise NeedsApproval(
                need.message,
                f"{need.hint}; this client cannot ask a person, so: use a client that can (elicitation), "
                "or have the person run it in the pane (crux attach)",
            ) from None
        message = need.message
    answer = await context.elicit(f"An agent wants to run in your terminal:\n\n{message}\n\nRun it?", _SCHEMA)
    if answer.action != "accept" or not (answer.content or {}).get("run"):
        raise Denied(f"the person did not agree: {message}", "do not try again; ask what they want instead")
    return await call(message)


def _can_ask(context: Context) -> bool:
    """A client that only opens pages cannot show a form; one that says nothing closer can."""
    asked = context.capabilities.get("elicitation")
    return asked is not None and (not asked or not isinstance(asked, dict) or "form" in asked)
