"""The person at the shell: progress, questions, approvals, Ctrl-C."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_result import CommandResult
from tests.support.remote_command import Screen, Shop, shop
from tests.support.wire import demo_process


def answer_of(done: CommandResult) -> Any:
    """What the server got, as the tool returned it."""
    return json.loads(done.json["content"][0]["text"])


async def test_progress_is_a_bar_on_a_terminal_and_leaves_no_trace(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "steps", "--steps", "4", tty=True)
        assert "shop/steps ████████████████████████ 100%  step 4" in done.err
        assert done.err.endswith("\r\x1b[K")
        assert done.out.splitlines()[1] == "done"


async def test_progress_says_nothing_in_a_pipe(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        assert (await run("call-tool", "steps")).err == ""


async def test_a_form_is_asked_field_by_field(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        typed = ["Ada", "old", "36", "2", "a, c", "y"]
        screen = Screen(tty=True, answers=typed)
        done = await run.on(screen, "call-tool", "form", "--json")
        content = {"name": "Ada", "age": 36, "colour": "green", "letters": ["a", "c"], "agreed": True}
        assert answer_of(done) == {"action": "accept", "content": content}
        assert "Server 'shop' asks: Who are you?" in done.err and "must be integer, got 'old'" in done.err
        assert screen.asked[0] == "  Your name (name) – as on the door [string; required; empty declines]: "
        assert len(screen.asked) == 6


async def test_fields_left_empty_are_left_out_or_get_their_default(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "form", "--json", tty=True, answers=["Ada", "", "", "", ""])
        assert answer_of(done) == {"action": "accept", "content": {"name": "Ada", "agreed": False}}


@pytest.mark.parametrize("answers", [[], ["Ada", "x", "y", "z"]])
async def test_an_empty_or_hopeless_answer_declines(tmp_path: Path, answers: list[str]) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "form", "--json", tty=True, answers=answers)
        assert answer_of(done) == {"action": "decline"}


async def test_without_a_terminal_a_question_is_declined_and_told(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "form", "--json")
        assert answer_of(done) == {"action": "decline"}
        assert "asked: Who are you?" in done.err


@pytest.mark.parametrize("typed, action", [("y", "accept"), ("", "decline")])
async def test_a_page_to_visit_is_shown_and_confirmed(tmp_path: Path, typed: str, action: str) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "visit", "--json", tty=True, answers=[typed])
        assert answer_of(done) == {"action": action}
        assert "https://example.com/in" in done.err


async def test_a_shell_has_no_model_and_says_so(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        done = await run("call-tool", "think", "--json")
        assert answer_of(done)["refused"]["code"] == -1
        assert "asked for a language model" in done.err


async def test_the_folder_of_the_shell_is_the_root_where_the_profile_lets_it_be(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        run.write(run.entry("shop", default=True), run.entry("open", roots="client"))
        assert answer_of(await run("call-tool", "roots", "--json")) == {"roots": []}
        there = answer_of(await run("call-tool", "open/roots", "--json"))
        assert there == {"roots": [{"uri": run.cwd.as_uri()}]}


async def test_questions_of_the_stateless_era_are_asked_too(tmp_path: Path) -> None:
    async with demo_process(tmp_path) as demo, shop(tmp_path) as run:
        run.write(run.http("web", demo.port, demo.token, default=True))
        done = await run("call-tool", "demo_introduce", "--raw", tty=True, answers=["one", "two"])
        assert done.json["content"][0]["text"] == "one and two"
        assert "Server 'web' asks: first?" in done.err and "Server 'web' asks: second?" in done.err
        assert (await run("call-tool", "demo_greet", "--raw")).json["content"][0]["text"] == "nobody (decline)"
        assert (await run("call-tool", "demo_think")).code == 3
        done = await run("call-tool", "demo_count", "--log", tty=True)
        assert done.code == 0 and "100%  step 3" in done.err and "web [info] demo: " in done.err


def confirming(run: Shop) -> None:
    run.write(run.entry("shop", default=True, tools={"confirm": ["drop"]}))


@pytest.mark.parametrize("typed, code", [("y", 0), ("n", 2), ("", 2)])
async def test_a_call_to_be_confirmed_is_asked_right_there(tmp_path: Path, typed: str, code: int) -> None:
    async with shop(tmp_path) as run:
        confirming(run)
        done = await run("call-tool", "drop", "--token", "abcdefgh12345678", tty=True, answers=[typed])
        assert done.code == code
        assert "shop/drop needs your approval" in done.err
        assert "abcdefgh12345678" not in done.err
        assert any(line.startswith("call drop") for line in run.noted()) == (code == 0)


async def test_without_a_terminal_the_wait_and_the_way_to_approve_are_told(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        confirming(run)
        screen = Screen()
        call = asyncio.create_task(run.on(screen, "call-tool", "drop", "--raw"))
        await screen.wait_for("approvals\n")
        (waiting,) = run.bridge.approvals.pending()
        assert f"shop/drop waits for a person (approval {waiting.id})" in screen.told
        assert waiting.who == "cli"
        run.bridge.approvals.approve(waiting.id, by="somebody else")
        done = await call
        assert done.code == 0 and done.json["content"][0]["text"] == "dropped"


async def test_a_person_is_asked_about_their_own_call_only(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        confirming(run)
        other = Screen()
        waits = asyncio.create_task(run.on(other, "call-tool", "drop", "--token", "theirs"))
        await other.wait_for("approvals\n")
        mine = Screen(tty=True, answers=["y"])
        assert (await run.on(mine, "call-tool", "drop", "--raw")).code == 0
        assert len(mine.asked) == 1 and other.told.count("waits for a person") == 1
        (pending,) = run.bridge.approvals.pending()
        run.bridge.approvals.deny(pending.id, by="nobody")
        assert (await waits).code == 2


@pytest.mark.parametrize("words", [("form",), ("drop",)])
async def test_the_time_limit_does_not_count_what_a_person_takes(tmp_path: Path, words: tuple[str, ...]) -> None:
    class Thoughtful(Screen):
        async def ask(self, prompt: str, *, secret: bool = False) -> str:
            thought = asyncio.Event()
            asyncio.get_running_loop().call_later(0.7, thought.set)
            await thought.wait()
            return "y"

    async with shop(tmp_path) as run:
        confirming(run)
        await run("call-tool", "say", "--text", "the server is up now")
        done = await run.on(Thoughtful(tty=True), "call-tool", *words, "--timeout", "600", "--raw")
        assert done.code == 0


async def test_an_answer_from_elsewhere_ends_the_question_at_the_terminal(tmp_path: Path) -> None:
    class Slow(Screen):
        async def ask(self, prompt: str, *, secret: bool = False) -> str:
            self.err(prompt)
            await asyncio.Event().wait()
            return ""

    async with shop(tmp_path) as run:
        confirming(run)
        screen = Slow(tty=True)
        call = asyncio.create_task(run.on(screen, "call-tool", "drop", "--raw"))
        await screen.wait_for("Run it? [y/N]")
        run.bridge.approvals.approve(run.bridge.approvals.pending()[0].id, by="the console")
        assert (await call).code == 0


async def test_ctrl_c_cancels_the_call_on_the_server(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        screen = Screen(tty=True)
        call = asyncio.create_task(run.on(screen, "call-tool", "hang"))
        await screen.wait_for("hanging")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert screen.told.endswith("\r\x1b[K")
        assert (await run("call-tool", "cancelled", "--raw")).json["content"][0]["text"] == "yes"


async def test_a_client_of_its_own_ends_with_the_command(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        run.write(run.entry("shop", default=True, isolation="per-client"))
        await run("list-tools")
        for _ in range(2):
            assert (await run("call-tool", "say", "--text", "x")).code == 0
        assert len([line for line in run.noted() if line.startswith("start")]) >= 2
        (status,) = run.bridge.statuses()
        assert status.sessions <= 1


async def test_arguments_to_be_confirmed_are_shown_as_they_are(tmp_path: Path) -> None:
    async with shop(tmp_path) as run:
        confirming(run)
        words = ("call-tool", "drop", "--params", '{"note": "; dari remote trust"}')
        done = await run(*words, tty=True, answers=["n"])
        assert "; dari remote trust" in done.err
