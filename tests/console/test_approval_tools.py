"""What a person does with approvals at the page: tools and the topic, over a real queue, pins and log."""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from dari.bridge.service import Bridge
from dari.console.backends import ConsoleBackends
from dari.console.effects import effect_line, effect_parts
from dari.console.live import TopicOptions
from dari.console.tools.approvals import ApprovalTools
from dari.console.topics.approvals import follow_approvals
from dari.core.approvals import Approval
from dari.core.audit.query import query
from dari.core.scopes import ALL_SCOPES, MCP_SCOPES
from dari.core.standing_approvals import ArgumentMatch, RuleDraft
from dari.daemon.caller_scopes import CallerIdentity, serve_caller
from dari.errors import Conflict, Denied, InvalidInput, NeedsApproval, NotFound

PAGE = CallerIdentity("app", ALL_SCOPES, None, is_vouched_for=True)
"""As the console serves the calls of a page."""


class Desk:
    """A bridge, the tools of a page over it, and an agent that asks."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self.backends = cast(ConsoleBackends, _Backends(bridge))
        self.tools = ApprovalTools(self.backends)

    async def ask(self, command: str = "rm -rf dist", **more: Any) -> Approval:
        given: dict[str, Any] = {"server": "crux", "tool": "command/execute", "who": "mcp:claude", **more}
        given.setdefault("arguments", {"command": command, "pane_id": "%1"})
        given.setdefault("message", f"`{command}` needs a person's approval: rm is dangerous")
        return await self.bridge.approval_service.ask(**given)

    async def waits(self, command: str = "rm -rf dist", **more: Any) -> str:
        with pytest.raises(NeedsApproval) as caught:
            await self.ask(command, **more)
        return caught.value.approval_id


class _Backends:
    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge

    @property
    def approvals(self) -> Any:
        return self.bridge.approval_service


@asynccontextmanager
async def open_desk(folder: Path) -> AsyncIterator[Desk]:
    async with Bridge(folder / "state") as bridge:
        yield Desk(bridge)


@pytest.fixture(autouse=True)
def at_the_page() -> Iterator[None]:
    with serve_caller(PAGE):
        yield


async def test_a_call_waits_with_its_exact_effect_and_is_approved_once(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        id = await desk.waits()
        view = await desk.tools.list_approvals()
        (waiting,) = view.waiting
        assert (waiting.id, waiting.effect, waiting.kind) == (id, "rm -rf dist", "call")
        assert waiting.asked_unix <= view.now_unix < waiting.expires_unix
        shown = await desk.tools.show(id)
        assert [(part.kind, part.text) for part in shown.effect[:2]] == [
            ("command", "rm -rf dist"),
            ("why", "`rm -rf dist` needs a person's approval: rm is dangerous"),
        ]
        assert shown.can_always and not shown.can_session  # the terminal's daemon names no session
        answered = await desk.tools.answer(id, "once")
        assert answered.state == "approved" and answered.by.endswith("(console)")
        assert (await desk.ask()).state == "approved"
        assert await desk.waits()


async def test_a_denial_carries_its_note_to_the_agent(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        id = await desk.waits()
        await desk.tools.answer(id, "deny", note="  use git clean <b>\u202e\n")
        with pytest.raises(Denied, match="use git clean <b>"):
            await desk.ask()
        (answered,) = (await desk.tools.list_approvals()).answered
        assert (answered.state, answered.reason) == ("denied", "use git clean <b>\u202e")
        with pytest.raises(Conflict):
            await desk.tools.answer(id, "once")


async def test_always_shows_its_rule_first_and_is_taken_back(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        id = await desk.waits("make test-unit")
        rule = RuleDraft(arguments={"pane_id": ArgumentMatch(kind="any")})
        preview = await desk.tools.preview_rule(id, rule)
        assert "make test-unit" in preview.summary and (await desk.tools.rules()).standing.rules == []
        await desk.tools.answer(id, "always", rule=rule)
        await desk.ask("make test-unit")
        other_pane = {"command": "make test-unit", "pane_id": "%7"}
        assert (await desk.ask("make test-unit", arguments=other_pane)).state == "approved"
        (use,) = (await desk.tools.rules()).standing.rules
        assert use.uses == 1 and use.rule.by.endswith("(console)")
        await desk.tools.forget(use.rule.id)
        assert await desk.waits("make test-unit")
        with pytest.raises(NotFound):
            await desk.tools.forget(use.rule.id)


async def test_a_session_is_approved_and_taken_back(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        call: dict[str, Any] = {"server": "fs", "tool": "delete", "session": "s1", "message": ""}
        id = await desk.waits(arguments={"path": "/a"}, **call)
        assert (await desk.tools.show(id)).can_session
        await desk.tools.answer(id, "session")
        await desk.ask(arguments={"path": "/a"}, **call)
        await desk.ask(arguments={"path": "/b"}, **call)
        (granted,) = (await desk.tools.rules()).sessions
        await desk.tools.forget(granted.id)
        assert await desk.waits(arguments={"path": "/b"}, **call)


async def test_wrong_answers_are_refused(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        id = await desk.waits()
        with pytest.raises(InvalidInput, match="note"):
            await desk.tools.answer(id, "once", note="x")
        with pytest.raises(InvalidInput, match="rule"):
            await desk.tools.answer(id, "session", rule=RuleDraft())
        with pytest.raises(InvalidInput, match="session"):
            await desk.tools.answer(id, "session")
        with pytest.raises(NotFound):
            await desk.tools.answer("00000000", "once")
        assert [each.id for each in (await desk.tools.list_approvals()).waiting] == [id]


@pytest.mark.parametrize(
    "caller",
    [
        CallerIdentity("mcp", MCP_SCOPES, os.getpid()),
        CallerIdentity("mcp", MCP_SCOPES, None, is_vouched_for=True),
        CallerIdentity("app", ALL_SCOPES, None),
        None,
    ],
    ids=["an agent's token", "an agent that is vouched for", "a page nobody vouches for", "nobody"],
)
async def test_nobody_else_answers_makes_rules_or_takes_them_back(
    tmp_path: Path, caller: CallerIdentity | None
) -> None:
    async with open_desk(tmp_path) as desk:
        kept = await desk.waits("make test")
        await desk.tools.answer(kept, "always")
        (use,) = (await desk.tools.rules()).standing.rules
        id = await desk.waits()

        async def attack() -> None:
            for decision in ("once", "session", "always", "deny"):
                with pytest.raises(Denied):
                    await desk.tools.answer(id, decision)  # type: ignore[arg-type]
            with pytest.raises(Denied):
                await desk.tools.forget(use.rule.id)

        async def attack_as_caller() -> None:
            if caller is None:
                await attack()
                return
            with serve_caller(caller):
                await attack()

        await asyncio.create_task(attack_as_caller(), context=contextvars.Context())
        assert [each.id for each in (await desk.tools.list_approvals()).waiting] == [id]
        assert len((await desk.tools.rules()).standing.rules) == 1
        assert desk.bridge.audit is not None
        refused = query(desk.bridge.audit.directory, kind="decision", outcome="denied")
        assert len(refused) == 5


async def test_two_pages_see_what_one_of_them_answers(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk, asyncio.timeout(20):
        first = follow_approvals(desk.backends, "", TopicOptions())
        second = follow_approvals(desk.backends, "", TopicOptions())
        async with aclosing(first), aclosing(second):  # type: ignore[type-var]
            assert (await anext(first)).waiting == (await anext(second)).waiting == []
            id = await desk.waits()
            for page in (first, second):
                view = await anext(page)
                assert [each.id for each in view.waiting] == [id] and view.now_unix > 0
            await desk.tools.answer(id, "deny", note="no")
            for page in (first, second):
                view = await anext(page)
                assert view.waiting == [] and view.answered[0].reason == "no"


async def test_a_call_that_expires_leaves_the_queue(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk, asyncio.timeout(20):
        page = follow_approvals(desk.backends, "", TopicOptions())
        async with aclosing(page):  # type: ignore[type-var]
            await anext(page)
            await desk.waits(lifetime_s=3.0)
            assert len((await anext(page)).waiting) == 1
            view = await anext(page)
            assert view.waiting == [] and view.answered[0].state == "expired"


def approval(arguments: Any, **more: Any) -> Approval:
    given: dict[str, Any] = {"server": "s", "tool": "t", "who": "w", "session": "", **more}
    return Approval(id="1", arguments=arguments, asked_unix=0, expires_unix=1, **given)


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ({"command": "ls -la"}, "command", "ls -la"),
        ({"command": "git", "args": ["commit", "-m", "a b"]}, "command", "git commit -m 'a b'"),
        ({"argv": ["rm", "-rf", "x y"]}, "command", "rm -rf 'x y'"),
        ({"commands": ["one", "two"]}, "command", "one\ntwo"),
        ({"sql": "drop table users"}, "command", "drop table users"),
        ({"url": "http://x/", "method": "post", "body": {"a": 1}}, "request", 'POST http://x/\n\n{\n  "a": 1\n}'),
        ({"url": "http://x/", "headers": {"A": "b"}}, "request", "GET http://x/\nA: b"),
        ({"path": "/a", "old_string": "one\ntwo", "new_string": "one\n2"}, "diff", "@@ -1,2 +1,2 @@\n one\n-two\n+2"),
        ({"path": "/a", "edits": [{"oldText": "x", "newText": "y"}]}, "diff", "@@ -1 +1 @@\n-x\n+y"),
        ({"file_path": "/a", "content": "hello"}, "file", "hello"),
        ({"changes": [{"item": "tool x", "diff": ["- a", "+ b"]}]}, "diff", "- a\n+ b"),
    ],
)
def test_the_effect_is_what_a_person_reads_first(arguments: Any, kind: str, text: str) -> None:
    first = effect_parts(approval(arguments))[0]
    assert (first.kind, first.text) == (kind, text)


def test_hostile_arguments_are_shown_as_they_are_and_cut() -> None:
    hostile: Any = {
        "command": ["not", {"a": "text"}],
        "url": {"x": 1},
        "edits": ["no", {"oldText": 1}],
        "changes": "x",
        "args": [1, 2],
        "path": "\u202e/etc\n<img src=x onerror=alert(1)>",
        "deep": [[[[[[[["x"] * 5] * 5]]]]]],
        "content": "x" * 1_000_000,
    }
    parts = effect_parts(approval(hostile, message="</script>"))
    assert [part.kind for part in parts] == ["file", "why", "json"]
    assert parts[0].is_cut and len(parts[0].text) == 200_000 and parts[2].is_cut
    assert len(effect_line(approval({"command": "x " * 100_000}))) <= 301
    for arguments in (None, [], "text", 7, {}):
        assert effect_line(approval(arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        {"args": ["ls"], "script": "rm -rf ~"},
        {"argv": ["ls"], "code": "rm -rf ~"},
        {"argv": ["ls"], "args": ["rm", "-rf", "~"]},
        {"args": ["ls"], "command": ["rm -rf ~"]},
        {"url": "https://example.com/", "endpoint": "rm -rf ~"},
        {"old_string": "a", "new_string": "b", "oldText": "", "newText": "rm -rf ~"},
    ],
)
def test_a_harmless_argument_hides_none_that_says_what_is_run_or_written(arguments: dict[str, Any]) -> None:
    shown = [part.text for part in effect_parts(approval(arguments)) if part.kind != "json"]
    assert any("rm" in text and "~" in text for text in shown)


@pytest.mark.parametrize(
    ("arguments", "is_open"),
    [
        ({"command": "ls"}, False),
        ({"command": "ls", "pane_id": "%1", "cwd": ""}, False),
        ({"url": "https://example.com/", "method": "POST", "headers": {"a": "b"}, "body": "x"}, False),
        ({"path": "/a", "edits": [{"oldText": "x", "newText": "y"}]}, False),
        ({"file_path": "/a", "content": "hello"}, False),
        ({"to": "someone"}, True),
        ({"text": "hello", "to": "someone"}, True),
        ({"command": "ls", "cwd": "/etc"}, True),
        ({"command": {"run": "rm"}, "text": "hello"}, True),
        ({"path": "/a", "destination": "/etc/passwd"}, True),
        ({"path": "/a", "edits": [{"oldText": "x", "newText": "y"}, {"line": 7}]}, True),
        ({"path": "/home/me/project/" + "x/../" * 20 + "etc/passwd", "content": "hello"}, True),
        ({"url": "https://example.com/", "body": "x", "data": "y"}, True),
    ],
)
def test_the_arguments_are_folded_only_where_the_parts_above_show_each(
    arguments: dict[str, Any], is_open: bool
) -> None:
    last = effect_parts(approval(arguments, message="why"))[-1]
    assert (last.kind, last.is_open) == ("json", is_open)


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        ({"path": "notes.txt", "target": "/etc/passwd"}, "/etc/passwd"),
        ({"command": "ls" + " " * 5000 + "; rm -rf ~"}, "…"),
        ({"command": "ls\nrm -rf ~"}, "ls ↵ rm -rf ~"),
        ({"command": "ls\u2028rm -rf ~"}, "↵"),
        ({"url": "https://example.com/", "command": "rm -rf ~"}, "rm -rf ~"),
        ({"command": "a" * 299 + " ; rm"}, "…"),
    ],
)
def test_the_line_of_a_list_hides_no_command_behind_spaces_lines_or_a_harmless_argument(
    arguments: dict[str, Any], seen: str
) -> None:
    assert seen in effect_line(approval(arguments))
