"""`approvals`: calls that wait for a person, answered from another terminal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dari.bridge.service import Bridge
from dari.bridge.upstream.caller import Caller
from dari.cli.remote.main import run
from dari.core.approvals import Approval
from dari.core.scopes import ALL_SCOPES
from dari.daemon.caller_scopes import serve_own_process
from dari.errors import Denied
from tests.support.remote_user import Person, Watcher


class Waiting:
    def __init__(self, bridge: Bridge, call: asyncio.Task[str]) -> None:
        self.bridge = bridge
        self.call = call

    @property
    def question(self) -> Approval:
        (question,) = self.bridge.approvals.pending()
        return question


@asynccontextmanager
async def waiting(person: Person, session: str = "s1") -> AsyncIterator[Waiting]:
    """A call of `greet` that waits for a person."""
    person.write(person.lab(tools={"confirm": ["gre*"]}))
    async with person.bridge() as bridge:
        upstream = bridge.view(person.around()).upstream("lab")
        asked = asyncio.Event()
        bridge.approvals.subscribe(lambda told: asked.set())
        arguments = b'{"to": "\\u001b[2Jyou", "password": "hunter22"}'

        async def greet() -> str:
            result = await upstream.call_tool("greet", arguments, Caller("mcp:claude", session=session))
            return str(json.loads(bytes(result))["content"][0]["text"])

        call = asyncio.create_task(greet())
        await asked.wait()
        yield Waiting(bridge, call)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)


async def test_what_waits_is_listed_without_secrets_and_without_escapes(person: Person) -> None:
    async with waiting(person) as one:
        answer = await person.run("approvals", bridge=one.bridge)
        assert answer.code == 0
        assert f"{one.question.id}  lab/greet  asked by mcp:claude" in answer.out
        assert "hunter22" not in answer.out and "\x1b" not in answer.out
        (told,) = (await person.run("approvals", "--json", bridge=one.bridge)).json
        assert (told["id"], told["server"], told["tool"]) == (one.question.id, "lab", "greet")


async def test_an_approval_lets_the_call_through_and_is_recorded(person: Person) -> None:
    async with waiting(person) as one:
        question = one.question
        answer = await person.run("approvals", "--approve", question.id[:5], bridge=one.bridge)
        assert answer.code == 0 and "approved lab/greet" in answer.err
        assert await one.call == "hello"
        assert one.bridge.approvals.pending() == []
    (decision,) = person.decisions()
    assert (decision["event"], decision["tool"], decision["id"]) == ("call approved", "greet", question.id)
    assert decision["caller"] == "mcp:claude" and decision["who"]


async def test_for_session_covers_the_next_call_of_the_tool(person: Person) -> None:
    async with waiting(person) as one:
        answer = await person.run("approvals", "--approve", one.question.id, "--for-session", bridge=one.bridge)
        assert answer.code == 0 and "for the session" in answer.err
        await one.call
        assert one.bridge.approvals.is_granted("s1", "lab", "greet")


async def test_a_denial_reaches_the_caller_with_its_reason(person: Person) -> None:
    async with waiting(person) as one:
        words = ("approvals", "--deny", one.question.id, "--reason", "not in production")
        assert (await person.run(*words, bridge=one.bridge)).code == 0
        with pytest.raises(Denied) as denied:
            await one.call
        assert denied.value.hint == "not in production"
    assert [(made["event"], made["reason"]) for made in person.decisions()] == [("call denied", "not in production")]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--approve", "zzz"), "no call waits under the id 'zzz'"),
        (("--for-session",), "--for-session needs --approve"),
        (("--reason", "x"), "--reason needs --deny"),
        (("--approve", "a", "--deny", "b"), "not allowed with"),
    ],
)
async def test_wrong_words_decide_nothing(words: tuple[str, ...], complaint: str, person: Person) -> None:
    async with waiting(person) as one:
        answer = await person.run("approvals", *words, bridge=one.bridge)
        assert answer.code == 1 and complaint in answer.err
        assert len(one.bridge.approvals.pending()) == 1


async def test_a_caller_without_a_session_cannot_be_approved_for_one(person: Person) -> None:
    async with waiting(person, session="") as one:
        answer = await person.run("approvals", "--approve", one.question.id, "--for-session", bridge=one.bridge)
        assert answer.code == 1 and "has no session" in answer.err
        assert len(one.bridge.approvals.pending()) == 1


async def test_nothing_waiting_is_no_failure(person: Person) -> None:
    answer = await person.run("approvals")
    assert (answer.code, answer.out) == (0, "") and "nothing waits" in answer.err
    assert (await person.run("approvals", "--json")).json == []


@asynccontextmanager
async def watching(person: Person, one: Waiting, screen: Watcher, *words: str) -> AsyncIterator[None]:
    command = run("dari remote", ["approvals", "--watch", *words], screen, one.bridge, person.around())
    with serve_own_process(ALL_SCOPES):
        task = asyncio.create_task(command)
    try:
        yield
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.parametrize(("said", "is_granted"), [("y", False), ("s", True)])
async def test_watch_asks_a_person_at_a_terminal_about_each_call(said: str, is_granted: bool, person: Person) -> None:
    async with waiting(person) as one:
        screen = Watcher((said,))
        async with watching(person, one, screen):
            assert await one.call == "hello"
            await screen.sees("approved by ")
        assert len(screen.asked) == 1
        assert one.bridge.approvals.is_granted("s1", "lab", "greet") is is_granted


async def test_watch_without_a_terminal_tells_each_change_as_a_line_of_json(person: Person) -> None:
    async with waiting(person) as one:
        screen = Watcher()
        async with watching(person, one, screen, "--json"):
            await screen.sees("asked")
            one.bridge.approvals.approve(one.question.id, by="ann")
            await screen.sees("approved")
        told = [json.loads(line) for line in screen.printed.splitlines()]
        assert [(each["change"], each["by"]) for each in told] == [("asked", ""), ("approved", "ann")]


async def test_the_words_that_hints_name_approve_and_deny(person: Person) -> None:
    async with waiting(person) as one:
        assert (await person.run("approvals", "approve", bridge=one.bridge)).code == 1
        assert (await person.run("approvals", "list", "1a2b", bridge=one.bridge)).code == 1
        assert (await person.run("approvals", "approve", one.question.id, bridge=one.bridge)).code == 0
        assert await one.call
    async with waiting(person) as two:
        assert (await person.run("approvals", "deny", two.question.id, bridge=two.bridge)).code == 0
        with pytest.raises(Denied):
            await two.call
