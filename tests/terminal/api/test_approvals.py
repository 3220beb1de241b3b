"""Approvals of calls in panes name the agent whose call it is, also when the hub passes it on."""

from __future__ import annotations

import pytest

from dari.core.approval_service import ApprovalService
from dari.core.approvals import ApprovalQueue
from dari.daemon.caller_scopes import CallerIdentity, serve_caller
from dari.errors import NeedsApproval
from dari.terminal.api.approvals import ApprovalsApi, call_for


@pytest.mark.parametrize(
    ("acts_for", "client", "who", "shown"),
    [
        ("mcp@work-laptop:Cursor", "", "mcp@work-laptop:Cursor", "mcp@work-laptop:Cursor"),
        ("", "Cursor", "mcp:Cursor", "Cursor"),
        ("", "", "mcp", "mcp"),
    ],
)
async def test_the_person_is_shown_who_asks(acts_for: str, client: str, who: str, shown: str) -> None:
    queue = ApprovalQueue(redact=lambda value: value)
    approvals = ApprovalsApi(ApprovalService(queue))
    caller = CallerIdentity("mcp", frozenset({"control"}), 1, acts_for=acts_for)
    with serve_caller(caller), call_for(client), pytest.raises(NeedsApproval):
        await approvals.obtain("crux:pane/send", {}, "run: sudo true", "wait")
    (waiting,) = queue.pending()
    assert (waiting.who, waiting.client) == (who, shown)
    approvals.close()
    queue.close()
