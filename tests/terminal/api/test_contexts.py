"""Variables, aliases and functions in running shells: set, bounded, quoted, and put back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dari.errors import Conflict, Denied, Failed, InvalidInput, NeedsApproval, NotFound
from dari.terminal.api.contexts import InjectedContext
from dari.terminal.policy.config import Security
from tests.support.terminal_service import House, approve, house_in
from tests.support.terminal_tools import client_in
from tests.support.waiting import until

SHELLS = ["bash", "zsh", "fish", "sh"]
NASTY = """a'b"c $(touch pwned) `touch pwned` ; touch pwned; \\ %s !! \n 'touch pwned' $HOME"""


async def inject(house: House, **given: Any) -> InjectedContext:
    """With a person who agrees to what the policy asks about."""
    try:
        return await house.service.contexts.inject(**given)
    except NeedsApproval as need:
        await approve(house, need)
        return await house.service.contexts.inject(**given)


async def ask(house: House, command: str) -> str:
    return (await house.service.commands.execute(command)).stdout


async def test_the_designs_example_works_as_written(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        await client.call("crux_create_pane")
        done = await client.call(
            "crux_inject_context",
            pane_id="1",
            env={"RUST_BACKTRACE": "1", "LOG_LEVEL": "debug"},
            expires_after_commands=5,
        )
        assert (done["pane_id"], done["commands_left"]) == ("1", 5)
        show = "sh -c 'echo \"$RUST_BACKTRACE-$LOG_LEVEL\"'"
        seen = [(await client.call("crux_execute_command", command=show))["stdout"] for _ in range(7)]
        assert seen == ["1-debug"] * 5 + ["-"] * 2
        assert (await client.call("crux_list_contexts"))["contexts"] == []


@pytest.mark.parametrize("shell", SHELLS)
async def test_variables_reach_programs_and_what_was_there_comes_back(shell: str, tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane(shell=shell)
        await ask(house, "set -gx OLD before" if shell == "fish" else "export OLD=before")
        done = await house.service.contexts.inject(env={"OLD": "now", "NEW": NASTY})
        assert await ask(house, "sh -c 'printf %s \"$OLD\"'") == "now"
        (tmp_path / "expected").write_text(NASTY)
        assert await ask(house, "sh -c 'printf %s \"$NEW\"' | cmp - expected && echo same") == "same"
        await house.service.contexts.remove(done.context_id)
        assert await ask(house, "sh -c 'printf %s \"$OLD-${NEW-unset}\"'") == "before-unset"
        assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("shell", SHELLS)
async def test_aliases_and_functions_work_and_go_again(shell: str, tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane(shell=shell)
        body = "echo got $argv[1]; echo 'second line'" if shell == "fish" else "echo got $1; echo 'second line'"
        done = await inject(house, aliases={"greet": "echo 'hello there'"}, functions={"twice": body})
        assert done.names == ["greet", "twice()"]
        assert await ask(house, "greet you") == "hello there you"
        assert await ask(house, "twice one") == "got one\nsecond line"
        await house.service.contexts.remove(done.context_id)
        for name in ("greet", "twice"):
            assert (await house.service.commands.execute(name)).exit_code == 127


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_body_cannot_end_its_function_and_run_at_once(shell: str, tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane(shell=shell)
        for body in ("echo a; }; touch pwned; {", "echo a; end; touch pwned; function b", "'; touch pwned; '"):
            done = await inject(house, functions={"f": body}, aliases={"g": body})
            await ask(house, "true")
            assert not (tmp_path / "pwned").exists()
            await house.service.contexts.remove(done.context_id)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_nothing_is_seen_on_the_screen_or_in_the_history(shell: str, tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane(shell=shell)
        await ask(house, "true one")
        screen = house.multiplexer.find().engine
        before = screen.text(0, screen.rows)
        done = await house.service.contexts.inject(env={"TOKEN_HERE": "s3cret"})
        await until(lambda: screen.text(0, screen.rows) == before)  # bash draws its prompt again
        assert "s3cret" not in await ask(house, "history" if shell != "zsh" else "fc -l 1")
        assert "TOKEN_HERE" not in await ask(house, "history" if shell != "zsh" else "fc -l 1")
        await house.service.contexts.remove(done.context_id)
        last = house.multiplexer.find().commands.records[-1]
        assert last.command in ("history", "fc -l 1")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_an_alias_and_a_function_of_the_users_own_come_back(shell: str, tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane(shell=shell)
        person = house.multiplexer.find()
        await person.execute("alias word='echo mine'")
        await person.execute("function act; echo old; end" if shell == "fish" else "act() { echo old; }")
        done = await inject(house, aliases={"word": "echo theirs"}, functions={"act": "echo new"})
        assert [await ask(house, "word"), await ask(house, "act")] == ["theirs", "new"]
        await house.service.contexts.remove(done.context_id)
        assert [await ask(house, "word"), await ask(house, "act")] == ["mine", "old"]


@pytest.mark.parametrize("shell", SHELLS)
async def test_contexts_removed_in_another_order_leave_the_shell_as_it_was(shell: str, tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane(shell=shell)
        await ask(house, "set -gx V start" if shell == "fish" else "export V=start")
        contexts = house.service.contexts
        one = await contexts.inject(env={"V": "one", "W": "one"})
        two = await contexts.inject(env={"V": "two", "W": "two"})
        show = "sh -c 'echo ${V-unset} ${W-unset}'"
        await contexts.remove(one.context_id)
        assert await ask(house, show) == "two two"
        await contexts.remove(two.context_id)
        assert await ask(house, show) == "start unset"


async def test_the_exit_code_of_the_last_command_is_left_alone(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("(exit 7)")
        await house.service.contexts.inject(env={"A": "1"})
        assert await ask(house, "echo $?") == "7"


async def test_what_an_alias_would_run_is_judged_now(tmp_path: Path) -> None:
    async with house_in(tmp_path, Security(denied_patterns=("mkfs", "mkfs.*"))) as house:
        await house.service.panes.spawn_pane()
        contexts = house.service.contexts
        with pytest.raises(NeedsApproval) as need:
            await contexts.inject(aliases={"ls": "rm -r old"}, functions={"go": "sudo make install"})
        assert "rm -r old" in need.value.message
        assert "sudo make install" in need.value.message
        with pytest.raises(Denied):
            await contexts.inject(functions={"go": "mkfs /dev/sda1"})
        for name in ("LD_PRELOAD", "PATH", "GIT_SSH_COMMAND", "PS1"):
            with pytest.raises(NeedsApproval):
                await contexts.inject(env={name: "x"})
        assert (await contexts.list_contexts()).contexts == []


async def test_names_that_are_none_are_refused(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane()
        contexts = house.service.contexts
        for env in ({}, {"A B": "1"}, {"1A": "x"}, {"A;touch pwned": "1"}, {"__crux_nonce": "1"}, {"A": "x\0y"}):
            with pytest.raises(InvalidInput):
                await contexts.inject(env=env)
        for aliases in ({"a b": "x"}, {"-x": "y"}, {"a": "line\nline"}, {"a$(b)": "x"}):
            with pytest.raises(InvalidInput):
                await contexts.inject(aliases=aliases)
        with pytest.raises(InvalidInput):
            await contexts.inject(env={"A": "1"}, expires_after_commands=0)


async def test_a_busy_shell_and_a_program_that_is_none_are_told(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        contexts = house.service.contexts
        await house.service.commands.execute("sleep 60", timeout_s=0.2)
        with pytest.raises(Conflict):
            await contexts.inject(env={"A": "1"})
        info = await house.service.panes.spawn_pane(argv=["cat"])
        with pytest.raises(Conflict):
            await contexts.inject(info.id, env={"A": "1"})
        with pytest.raises(NotFound) as unknown:
            await contexts.inject("77", env={"A": "1"})
        assert "crux_list_panes" in unknown.value.hint
        with pytest.raises(NotFound):
            await contexts.remove("nothing")


async def test_a_read_only_variable_is_refused_and_nothing_is_set(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("readonly FIXED=1")
        with pytest.raises(Failed):
            await house.service.contexts.inject(env={"OTHER": "1", "FIXED": "2"})
        assert await ask(house, "echo $FIXED-${OTHER-unset}") == "1-unset"


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_variable_that_programs_did_not_see_is_hidden_from_them_again(shell: str, tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane(shell=shell)
        await ask(house, "set -g INNER own" if shell == "fish" else "INNER=own")
        done = await house.service.contexts.inject(env={"INNER": "shown"})
        assert await ask(house, "sh -c 'echo $INNER'") == "shown"
        await house.service.contexts.remove(done.context_id)
        assert await ask(house, "sh -c 'echo ${INNER-unset}'") == "unset"
        assert await ask(house, "echo $INNER") == "own"


async def test_a_context_is_gone_with_its_shell(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("true")
        await house.service.contexts.inject(env={"A": "1"}, expires_after_commands=9)
        await house.multiplexer.respawn("1", force=True)
        assert (await house.service.contexts.list_contexts()).contexts == []
        assert await ask(house, "echo ${A-unset}") == "unset"
