"""Rules that a person makes: which calls they let through, and who may make them."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dari.core.approval_service import ApprovalService
from dari.core.approvals import ApprovalQueue, ProposedCall
from dari.core.audit.log import AuditLog
from dari.core.audit.query import query
from dari.core.audit.redact import redact_value
from dari.core.scopes import ALL_SCOPES, MCP_SCOPES
from dari.core.standing_approvals import ArgumentMatch, RuleDraft, StandingApprovals, is_like
from dari.daemon.caller_scopes import CallerIdentity, serve_caller, serve_own_process
from dari.errors import Conflict, Denied, InvalidInput, NeedsApproval, NotFound, Unavailable

ANY, LIKE = ArgumentMatch(kind="any"), lambda text: ArgumentMatch(kind="like", text=text)

VERY_SAME = RuleDraft()


class Hub:
    """A queue with its rules and its log, as the hub has them."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state" / "standing-approvals.json"
        self.audit = AuditLog(folder / "audit", batch_s=0.001)
        self.now = 1000.0
        self.rules = StandingApprovals(self.path, lambda: self.audit, lambda: self.now)
        self.queue = ApprovalQueue(redact=redact_value, standing=self.rules.find)
        self.service = ApprovalService(self.queue, lambda: self.audit, (), self.rules)

    def ask(self, arguments: Any = None, **more: Any) -> Any:
        given: dict[str, Any] = {"server": "fs", "tool": "delete", "who": "mcp:claude", "session": "s1", **more}
        call = ProposedCall(arguments={"path": "/home/ann/a.txt"} if arguments is None else arguments, **given)
        return self.queue.ask(call, wait_s=0)

    async def waits(self, arguments: Any = None, **more: Any) -> str:
        with pytest.raises(NeedsApproval) as caught:
            await self.ask(arguments, **more)
        return caught.value.approval_id

    async def always(self, draft: RuleDraft = VERY_SAME, arguments: Any = None, **more: Any) -> None:
        """A person approves a call for good; the call takes its answer."""
        self.service.decide(await self.waits(arguments, **more), approves=True, by="ann", rule=draft)
        await self.ask(arguments, **more)

    def recorded(self) -> list[dict[str, Any]]:
        self.audit.flush()
        return [one.detail for one in reversed(query(self.audit.directory, kind="decision"))]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    made = Hub(tmp_path)
    with serve_own_process(ALL_SCOPES):
        yield made
    made.queue.close()
    made.audit.close()


async def test_a_rule_lets_the_very_same_call_through_again(hub: Hub) -> None:
    await hub.always()
    approval = await hub.ask(session="another")
    assert approval.state == "approved" and approval.by.startswith("ann (rule-")
    assert await hub.waits({"path": "/home/ann/b.txt"})
    assert await hub.waits({"path": "/home/ann/a.txt", "recursive": True})
    assert await hub.waits({})
    assert await hub.waits(who="mcp:cursor")
    assert await hub.waits(tool="move")
    assert await hub.waits(server="other")


async def test_a_rule_covers_what_its_patterns_say(hub: Hub) -> None:
    draft = RuleDraft(arguments={"path": LIKE("/home/ann/*"), "recursive": ANY}, who=ANY)
    await hub.always(draft, {"path": "/home/ann/a.txt", "recursive": False})
    for path in ("/home/ann/b.txt", "/home/ann/work/한글.txt"):
        assert (await hub.ask({"path": path, "recursive": True}, who="mcp:cursor")).state == "approved"
    for path in ("/home/bob/x", "/home/ann/../bob/x", "/home/ann/a b", "/home/ann/$(id)", "/home/ann/a\n/etc", 7, None):
        assert await hub.waits({"path": path, "recursive": True})


@pytest.mark.parametrize(
    ("pattern", "value", "is_alike"),
    [
        ("git *", "git status", True),
        ("git *", "git status; rm -rf /", False),
        ("git *", "git push origin", False),
        ("git * *", "git push origin", True),
        ("git log *", "git log --output=/etc/passwd", False),
        ("make test-*", "make test-unit", True),
        ("make test-*", "make test-$(id)", False),
        ("rm build/*", "rm build/`id`", False),
        ("rm build/*", "rm build/x\nid", False),
        ("rm build/*", "rm build/../../x", False),
        ("rm build/*", "rm build/\u202ex", False),
        ("/home/ann/*", "/home/ann/.ssh/authorized_keys", False),
        ("/home/ann/*", "/home/ann/work/.git/hooks/pre-commit", False),
        ("/home/ann/*", "/home/ann/notes.txt", True),
        ("cat *", "cat .env", False),
        ("*.example.com", "api.example.com", True),
        ("a*b*c", "a1b2c", True),
        ("a*b*c", "a1b2cd", False),
        ("*", "word", True),
        ("*", "-rf", False),
        ("no star", "no star", True),
        ("no star", "no star!", False),
        ("a*", "a" * 30_000, False),
        ("*" * 500 + "b", "a" * 19_000, False),
    ],
)
def test_a_star_stands_for_plain_characters_of_one_word(pattern: str, value: str, is_alike: bool) -> None:
    assert is_like(pattern, value) is is_alike


async def test_a_name_with_a_star_in_it_is_no_pattern(hub: Hub) -> None:
    await hub.always(who="mcp:*")
    assert await hub.waits(who="mcp:claude")


async def test_the_effect_in_words_always_counts(hub: Hub) -> None:
    """Keys in a pane say little: the same Enter runs another line."""
    typed = {"server": "crux", "tool": "pane/send-keys", "session": ""}
    id = await hub.waits({"keys": "Enter"}, message="`rm -rf dist` needs a person's approval: rm", **typed)
    with pytest.raises(InvalidInput, match="effect"):
        hub.service.decide(id, approves=True, by="ann", rule=RuleDraft(effect=ANY))
    hub.service.decide(id, approves=True, by="ann", rule=RuleDraft(arguments={"keys": ANY}))
    await hub.ask({"keys": "Enter"}, message="`rm -rf dist` needs a person's approval: rm", **typed)
    await hub.ask({"keys": "C-m"}, message="`rm -rf dist` needs a person's approval: rm", **typed)
    assert await hub.waits({"keys": "Enter"}, message="`rm -rf ~` needs a person's approval: rm", **typed)


async def test_words_that_quote_an_argument_follow_its_pattern(hub: Hub) -> None:
    def typed(command: str) -> dict[str, Any]:
        said = f"`{command}` needs a person's approval: make runs code"
        return {
            "arguments": {"command": command, "pane_id": "%1"},
            "message": said,
            "server": "crux",
            "tool": "execute",
        }

    draft = RuleDraft(arguments={"command": LIKE("make test-*"), "pane_id": ANY})
    await hub.always(draft, **typed("make test-unit"))
    assert (await hub.ask(**typed("make test-all"))).state == "approved"
    for command in ("make test-all; rm -rf ~", "make deploy", "make test-a b"):
        assert await hub.waits(**typed(command))
    lying = {**typed("make test-all"), "message": "`rm -rf ~` needs a person's approval: make runs code"}
    assert await hub.waits(**lying)


async def test_a_rule_must_cover_the_call_it_is_made_from(hub: Hub) -> None:
    id = await hub.waits()
    for draft, said in (
        (RuleDraft(arguments={"path": LIKE("/etc/*")}), "is not like"),
        (RuleDraft(arguments={"file": ANY}), "no argument 'file'"),
        (RuleDraft(arguments={"path": LIKE("")}), "1 to 1000"),
        (RuleDraft(lasts_s=-1), "lasts_s"),
    ):
        with pytest.raises(InvalidInput, match=said):
            hub.service.decide(id, approves=True, by="ann", rule=draft)
    assert not hub.path.exists() and hub.queue.get(id).state == "waiting"


async def test_a_preview_writes_nothing(hub: Hub) -> None:
    rule = await hub.service.preview_rule(await hub.waits(), RuleDraft(who=ANY))
    assert (rule.server, rule.tool, rule.who.kind) == ("fs", "delete", "any")
    assert rule.arguments["path"].text == "/home/ann/a.txt"
    assert not hub.path.exists() and (await hub.service.list_rules()).rules == []


async def test_calls_that_wait_already_go_through_with_the_rule(hub: Hub) -> None:
    first = await hub.waits()
    second = await hub.waits(session="s2")
    other = await hub.waits({"path": "/x"})
    hub.service.decide(first, approves=True, by="ann", rule=RuleDraft())
    assert hub.queue.get(second).state == "approved"
    assert [each.id for each in hub.queue.pending()] == [other]


async def test_a_denial_of_the_same_call_still_reaches_its_caller(hub: Hub) -> None:
    denied = await hub.waits()
    hub.service.decide(denied, approves=False, by="ann", reason="not this one")
    other = await hub.waits(session="s2")
    hub.service.decide(other, approves=True, by="ann", rule=RuleDraft())
    with pytest.raises(Denied, match="not this one"):
        await hub.ask()
    assert (await hub.ask()).state == "approved"


async def test_rules_are_listed_used_recorded_and_taken_back(hub: Hub) -> None:
    await hub.always()
    await hub.ask()
    (use,) = (await hub.service.list_rules()).rules
    assert use.uses == 1 and "/home/ann/a.txt" in use.summary
    await hub.service.forget_rule(use.rule.id, "ann")
    assert await hub.waits()
    with pytest.raises(NotFound):
        await hub.service.forget_rule(use.rule.id)
    events = [one["event"] for one in hub.recorded()]
    assert events == ["rule made", "call approved", "call approved by rule", "rule taken back"]


async def test_rules_outlive_the_hub_and_hold_no_secret(hub: Hub) -> None:
    secret = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"
    await hub.always(arguments={"path": "/a", "api_key": secret})
    text = hub.path.read_text()
    assert secret not in text and stat.S_IMODE(hub.path.stat().st_mode) == 0o600
    again = StandingApprovals(hub.path)
    call = ProposedCall(
        server="fs", tool="delete", who="mcp:claude", arguments={"path": "/a", "api_key": secret}, session="x"
    )
    assert again.find(call) is not None


async def test_a_rule_with_an_end_ends(hub: Hub) -> None:
    await hub.always(RuleDraft(lasts_s=60))
    assert (await hub.ask()).state == "approved"
    hub.now += 61
    assert await hub.waits()
    assert (await hub.service.list_rules()).rules == []


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"rules": [{"id": 7}]}', b"\xff"])
def test_a_file_that_cannot_be_read_holds_no_rule(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "rules.json"
    path.write_bytes(content)
    rules = StandingApprovals(path)
    assert rules.listed().rules == [] and "does not hold rules" in rules.listed().problem


async def test_a_file_that_others_may_write_or_a_link_holds_no_rule(hub: Hub, tmp_path: Path) -> None:
    await hub.always()
    assert len(StandingApprovals(hub.path).listed().rules) == 1
    hub.path.chmod(0o666)
    assert "nobody else may write" in StandingApprovals(hub.path).listed().problem
    hub.path.chmod(0o600)
    link = tmp_path / "link.json"
    os.symlink(hub.path, link)
    assert StandingApprovals(link).listed().rules == []


async def test_what_cannot_be_recorded_is_not_let_through(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    await hub.always()

    def full() -> None:
        raise Unavailable("the audit log cannot be written", "free disk space")

    monkeypatch.setattr(hub.audit, "check", full)
    with pytest.raises(Unavailable):
        await hub.ask()


async def test_an_agent_makes_and_removes_no_rule(hub: Hub) -> None:
    await hub.always()
    (use,) = (await hub.service.list_rules()).rules
    id = await hub.waits({"path": "/etc/passwd"})
    for caller in (
        CallerIdentity("mcp", MCP_SCOPES, os.getpid()),  # an agent's token
        CallerIdentity("app", ALL_SCOPES, None),  # a page of which nobody knows the browser
        CallerIdentity("app", ALL_SCOPES, 2**22 + 1),  # a browser that has ended
    ):

        async def attack(caller: CallerIdentity = caller) -> None:
            with serve_caller(caller):
                with pytest.raises(Denied):
                    hub.service.decide(id, approves=True, by="x", rule=RuleDraft())
                with pytest.raises(Denied):
                    hub.service.take_back(use.rule.id, by="x")

        # A context of its own: here the test itself is a person.
        import contextvars

        await asyncio.create_task(attack(), context=contextvars.Context())
    assert hub.queue.get(id).state == "waiting"
    assert [one.rule.id for one in (await hub.service.list_rules()).rules] == [use.rule.id]
    assert [one["event"] for one in hub.recorded()].count("refused") == 6


async def test_a_decision_about_a_file_or_a_server_is_no_rule(hub: Hub) -> None:
    class Held:
        prefix = "pin-"

        def pending(self) -> list[Any]:
            return []

        describe = decide = None

    service = ApprovalService(hub.queue, lambda: hub.audit, (Held(),), hub.rules)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="calls only"):
        service.decide("pin-12345678", approves=True, by="ann", rule=RuleDraft())
    with pytest.raises(InvalidInput, match="calls only"):
        await service.preview_rule("pin-12345678", RuleDraft())


async def test_no_rule_is_written_over_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "state" / "standing-approvals.json"
    path.parent.mkdir()
    path.write_text("by hand")
    hub = Hub(tmp_path)
    try:
        with serve_own_process(ALL_SCOPES), pytest.raises(Conflict, match="cannot be changed"):
            hub.service.decide(await hub.waits(), approves=True, by="ann", rule=RuleDraft())
        assert path.read_text() == "by hand"
    finally:
        hub.queue.close()
        hub.audit.close()


async def test_what_is_approved_for_a_session_is_listed_and_taken_back(hub: Hub) -> None:
    id = await hub.waits()
    hub.service.decide(id, approves=True, by="ann", for_session=True)
    await hub.ask()
    assert (await hub.ask({"path": "/other"})).for_session
    assert [each.id for each in await hub.service.list_grants()] == [id]
    hub.service.revoke_grant(id, by="ann")
    assert await hub.waits({"path": "/other"})


async def test_a_caller_without_a_session_is_not_approved_for_one(hub: Hub) -> None:
    id = await hub.waits(session="")
    with pytest.raises(InvalidInput, match="no session"):
        hub.service.decide(id, approves=True, by="ann", for_session=True)


def test_the_file_is_readable_by_people(hub: Hub) -> None:
    rule = hub.rules.draft(
        ProposedCall(server="fs", tool="delete", who="mcp:claude", arguments={"path": "/a"}), RuleDraft(), "ann"
    )
    hub.rules.add(rule)
    (written,) = json.loads(hub.path.read_text())["rules"]
    assert written["server"] == "fs" and written["arguments"]["path"]["text"] == "/a" and written["by"] == "ann"
