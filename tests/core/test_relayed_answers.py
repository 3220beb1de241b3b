"""What another process tells the hub's queue is recorded as the word of that process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dari import app
from dari.core.approval_service import ApprovalService
from dari.core.approvals import ApprovalQueue
from dari.core.audit.log import AuditLog
from dari.core.audit.query import query
from dari.core.scopes import MCP_GRANT, MCP_SCOPES
from dari.daemon.caller_scopes import CallerIdentity, serve_caller
from dari.daemon.paths import DaemonPaths
from dari.daemon.server import DaemonServer
from dari.daemon.stub import exposed_methods
from dari.errors import Denied, NeedsApproval
from dari.mcp.session import Session
from dari.settings import ServeSettings
from tests.support.waiting import until

ASKER = CallerIdentity("mcp", MCP_SCOPES, 4711)
OTHER = CallerIdentity("mcp", MCP_SCOPES, 4712)


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[ApprovalService]:
    audit = AuditLog(tmp_path)
    queue = ApprovalQueue(redact=lambda value: value)
    yield ApprovalService(queue, lambda: audit)
    audit.close()


async def ask(hub: ApprovalService, caller: CallerIdentity, session: str = "mcp agent") -> str:
    """The id of the approval; empty when the call was let through."""
    with serve_caller(caller):
        try:
            await hub.ask("kebab", "ingest_file", {"path": "/a"}, "mcp:agent", session=session)
        except NeedsApproval as need:
            return need.approval_id
    return ""


@pytest.mark.parametrize("is_approved", [True, False])
async def test_an_answer_that_the_asker_relays_names_the_asker(
    hub: ApprovalService, tmp_path: Path, is_approved: bool
) -> None:
    id = await ask(hub, ASKER)
    assert query(tmp_path, limit=1)[0].detail["pid"] == 4711
    with serve_caller(ASKER):
        answered = await hub.relay(id, is_approved, "ann")
    assert answered.by == "ann, says process 4711"
    decision = query(tmp_path, limit=1)[0]
    assert (decision.who, decision.detail["id"]) == ("ann, says process 4711", id)


async def test_an_answer_to_the_call_of_another_process_is_refused_and_names_the_right_command(
    hub: ApprovalService,
) -> None:
    id = await ask(hub, ASKER)
    with serve_caller(OTHER), pytest.raises(Denied, match="a call of kebab") as refused:
        await hub.relay(id, True, "ann")
    assert f"dari approvals approve {id}" in refused.value.hint and hub.queue.get(id).state == "waiting"


async def test_a_refusal_that_a_daemon_reports_names_the_daemon(hub: ApprovalService, tmp_path: Path) -> None:
    with serve_caller(ASKER):
        await hub.report_refusal("crab", "settings.listen", "cli", 1, "process 1 runs in a pane")
    assert query(tmp_path, limit=1)[0].detail["reported_by_pid"] == 4711


@pytest.mark.parametrize(("session", "is_prefix"), [("mcp agent", False), ("mcp ", True)])
async def test_a_process_ends_its_own_sessions_only(hub: ApprovalService, session: str, is_prefix: bool) -> None:
    hub.queue.approve(await ask(hub, ASKER), by="ann", for_session=True)
    assert await ask(hub, ASKER) == ""
    with serve_caller(OTHER):
        await hub.end_sessions(session, is_prefix)
    assert await ask(hub, ASKER) == ""
    with serve_caller(ASKER):
        await hub.end_sessions(session, is_prefix)
    assert await ask(hub, ASKER) != ""


async def test_a_server_beside_the_hub_tells_it_of_sessions_that_end(
    hub: ApprovalService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `dari up --no-servers` is one; a token that is revoked ends the sessions of clients that have none."""
    monkeypatch.setenv("DARI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    here, session = CallerIdentity("mcp", MCP_SCOPES, os.getpid()), Session(MCP_GRANT)
    async with DaemonServer(DaemonPaths("bridge"), exposed_methods(hub)):
        server = app.build(ServeSettings())
        for key in (session.key, MCP_GRANT.session_key("agent")):
            hub.queue.approve(await ask(hub, here, key), by="ann", for_session=True)
        server.close_session(session)
        await until(lambda: [each.session for each in hub.queue.grants()] == [MCP_GRANT.session_key("agent")])
        server.end_access(MCP_GRANT)
        await until(lambda: not hub.queue.grants())
        server.close()
        server.registry.close()
