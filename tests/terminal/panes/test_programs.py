"""Programs that take the screen or ask questions, driven with keys and by waiting for what they show."""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path

import pytest

from dari.errors import Conflict, InvalidInput, TimedOut
from dari.terminal.engine.keys import parse_keys
from tests.support.panes import pane_in
from tests.support.waiting import until


def needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not on this machine")


async def test_vim_is_driven_from_the_shell_and_back(tmp_path: Path) -> None:
    needs("vim")
    async with pane_in(tmp_path) as pane:
        result = await pane.execute("vim --clean note.txt", 0.1)
        assert (result.status, result.exit_code) == ("running", None)
        await pane.wait_for("note.txt", since=0)
        assert pane.engine.modes.alternate
        since = pane.position
        await pane.send_keys(parse_keys("i"))
        await pane.wait_for("-- INSERT --", since=since)
        await pane.send_keys(parse_keys("hello 한글", "Escape", ":wq", "Enter"))
        done = await pane.wait_command(result.command_id, 30)
        assert (done.status, done.exit_code) == ("done", 0)
        assert not pane.engine.modes.alternate
        assert (tmp_path / "note.txt").read_text() == "hello 한글\n"
        assert (await pane.execute("cat note.txt")).output == "hello 한글"


async def test_less_shows_page_after_page(tmp_path: Path) -> None:
    needs("less")
    (tmp_path / "long.txt").write_text("".join(f"row {n}\n" for n in range(200)))
    async with pane_in(tmp_path, rows=20, env={"LESS": ""}) as pane:
        running = await pane.execute("less long.txt", 0.1)
        await pane.wait_for("row 18", since=0)
        since = pane.position
        await pane.send_keys(parse_keys("Space"))
        await pane.wait_for("row 37", since=since)
        since = pane.position
        await pane.send_keys(parse_keys("G"))
        await pane.wait_for("(END)", since=since)
        assert "row 199" in pane.engine.text(0, 20)
        await pane.send_keys(parse_keys("q"))
        assert (await pane.wait_command(running.command_id, 30)).exit_code == 0


async def test_an_end_of_input_that_comes_while_a_repl_still_works_ends_it(tmp_path: Path) -> None:
    """Between two lines the kernel collects lines, and a ^D would reach the line editor as a NUL."""
    async with pane_in(tmp_path) as pane:
        running = await pane.execute(f"PYTHON_BASIC_REPL=1 {sys.executable} -q", 0.1)
        await pane.wait_for(">>> ", since=0)
        await pane.send_text("import time; print('be' + 'gun', flush=True); time.sleep(0.2)\n")
        await pane.wait_for("begun", since=0)
        await pane.send_keys(parse_keys("C-d"))
        done = await pane.wait_command(running.command_id, 30)
        assert (done.status, done.exit_code) == ("done", 0)


async def test_an_end_of_input_reaches_a_shell_that_reads_a_line_at_once(tmp_path: Path) -> None:
    async with pane_in(tmp_path) as pane:
        await pane.execute("true")
        running = await pane.execute("echo be''gun; read line; echo ended $?", 0.1)
        await pane.wait_for("begun", since=0)
        await pane.send_keys(parse_keys("C-d"))
        assert (await pane.wait_command(running.command_id, 30)).output == "begun\nended 1"


async def test_htop_is_drawn_and_left(tmp_path: Path) -> None:
    needs("htop")
    async with pane_in(tmp_path) as pane:
        running = await pane.execute("htop", 0.1)
        await pane.wait_for(r"F10\s*Quit", is_regex=True, since=0)
        process = pane.foreground()
        assert process is not None
        assert process.name == "htop"
        since = pane.position
        await pane.send_keys(parse_keys("F1"))
        await pane.wait_for("any key to return", since=since)
        await pane.send_keys(parse_keys("x"))
        await pane.send_keys(parse_keys("F10"))
        assert (await pane.wait_command(running.command_id, 30)).exit_code == 0


async def test_a_repl_answers_and_its_echo_is_not_taken_for_an_answer(tmp_path: Path) -> None:
    async with pane_in(tmp_path, command=[sys.executable, "-q"], env={"PYTHON_BASIC_REPL": "1"}) as pane:
        await pane.wait_for(">>> ", since=0)
        since = pane.position
        await pane.send_keys(parse_keys("print('a'+'nswer')", "Enter"))
        found = await pane.wait_for("answer", since=since)
        assert found.line == "answer"
        # Text that comes before the next prompt is shown by the kernel and by the editor, which may be told apart late.
        await pane.wait_for(">>> ", since=since)
        since = pane.position
        await pane.send_text("import time; time.sleep(0.2); print('marker')\n")
        found = await pane.wait_for("marker", since=since)
        assert found.line == "marker"
        await pane.wait_for(">>> ", since=found.position)
        with pytest.raises(Conflict):
            await pane.execute("echo no")
        await pane.send_keys(parse_keys("C-d"))
        assert await asyncio.wait_for(pane.exited(), 30) == 0
        assert "answer" in pane.engine.text(0, 40)


async def test_what_a_program_says_back_word_for_word_is_output(tmp_path: Path) -> None:
    async with pane_in(tmp_path, command=["cat"]) as pane:
        for word in ("hello", "hello again"):
            since = pane.position
            await pane.send_text(f"{word}\n")
            found = await pane.wait_for(word, since=since)
            assert found.line == word
        assert pane.engine.text(0, 5).rstrip() == "hello\nhello\nhello again\nhello again"


async def test_a_password_is_asked_for_and_never_shown(tmp_path: Path) -> None:
    async with pane_in(tmp_path) as pane:
        running = await pane.execute("read -r -s -p 'Password: ' secret; echo; echo \"got ${#secret}\"", 0.05)
        await pane.wait_for("Password: ", since=0)
        assert running.status == "running"
        since = pane.position
        await pane.send_text("correct horse\n")
        found = await pane.wait_for(r"got \d+", is_regex=True, since=since)
        assert found.match == "got 13"
        result = await pane.wait_command(running.command_id, 30)
        assert result.output == "Password: \ngot 13"
        assert "correct horse" not in pane.engine.text(-pane.engine.history, 40)


async def test_a_prompt_that_hides_what_is_typed_is_known(tmp_path: Path) -> None:
    program = "import getpass; print(len(getpass.getpass('Secret? ')))"
    async with pane_in(tmp_path, command=[sys.executable, "-c", program]) as pane:
        await pane.wait_for("Secret? ", since=0)
        assert pane.is_asking_secret
        await pane.send_text("1234567\n")
        assert await asyncio.wait_for(pane.exited(), 30) == 0
        assert pane.engine.text(0, 3).rstrip() == "Secret?\n7"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "dash"])
async def test_a_command_is_interrupted_however_soon_that_is(shell: str, tmp_path: Path) -> None:
    async with pane_in(tmp_path, shell=shell) as pane:
        await pane.execute("true")
        for step in range(12):
            running = await pane.execute("sleep 600", timeout_s=step * 0.0005)
            ended = await pane.interrupt(running.command_id, timeout_s=30)
            assert ended is not None and (ended.status, ended.exit_code) == ("done", 130)


BEGIN_HOOKS = {
    "bash": "trap '[[ $BASH_COMMAND == \"sleep 600\" ]] && { touch waits; sleep 60; }' DEBUG",
    "zsh": "wait_long() { [[ $1 == 'sleep 600' ]] && { touch waits; sleep 60 } }; preexec_functions+=(wait_long)",
    "fish": "function wait_long -e fish_preexec; test $argv[1] = 'sleep 600'; and touch waits; and sleep 60; end",
}


@pytest.mark.parametrize("shell", BEGIN_HOOKS)
async def test_a_command_that_a_hook_of_the_shell_delays_is_interrupted(shell: str, tmp_path: Path) -> None:
    async with pane_in(tmp_path, shell=shell) as pane:
        await pane.execute(BEGIN_HOOKS[shell])
        assert (await pane.execute("true")).exit_code == 0
        running = await pane.execute("sleep 600", timeout_s=0)
        await until((tmp_path / "waits").exists)
        ended = await pane.interrupt(running.command_id, timeout_s=30)
        assert ended is not None and (ended.status, ended.exit_code) == ("done", 130)
        assert (await pane.execute("echo next")).output == "next"


async def test_an_interrupt_leaves_a_prompt_alone_that_takes_long_to_draw(tmp_path: Path) -> None:
    async with pane_in(tmp_path) as pane:
        await pane.execute("PROMPT_COMMAND+=$'\\n''sleep 0.8'")
        running = await pane.execute("sleep 600", timeout_s=0)
        ended = await pane.interrupt(running.command_id, timeout_s=10)
        assert ended is not None and (ended.status, ended.exit_code) == ("done", 130)


async def test_zsh_reports_an_interrupt_that_comes_while_it_tells_that_a_command_begins(tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    wait = f"while [[ $1 == *';C;'* && ! -e {go_on} ]] {{ sleep 0.01 }}"
    async with pane_in(tmp_path, shell="zsh") as pane:
        await pane.execute(f'printf() {{ builtin printf "$@"; {wait} }}')  # our hooks print with it, too
        running = await pane.execute("sleep 600", timeout_s=0)
        interrupting = asyncio.create_task(pane.interrupt(running.command_id, timeout_s=30))
        await pane.wait_for("^C", since=0)
        go_on.touch()
        ended = await interrupting
        assert ended is not None and (ended.status, ended.exit_code) == ("done", 130)


async def test_a_command_that_takes_long_goes_on_and_is_interrupted(tmp_path: Path) -> None:
    async with pane_in(tmp_path) as pane:
        running = await pane.execute("echo begun; sleep 600", 0.2)
        assert (running.status, running.exit_code, running.output) == ("running", None, "begun")
        with pytest.raises(Conflict, match="sleep 600"):
            await pane.execute("echo no", 0.2)
        again = await pane.wait_command(running.command_id, 0.01)
        assert again.status == "running"
        ended = await pane.interrupt(running.command_id)
        assert ended is not None
        assert (ended.status, ended.exit_code) == ("done", 130)
        assert (await pane.execute("echo next")).output == "next"


async def test_commands_given_at_once_run_one_after_the_other(tmp_path: Path) -> None:
    async with pane_in(tmp_path) as pane:
        results = await asyncio.gather(*(pane.execute(f"echo {number}", 30) for number in range(10)))
        assert [result.output for result in results] == [str(number) for number in range(10)]


async def test_a_caller_that_goes_away_leaves_the_pane_usable(tmp_path: Path) -> None:
    async with pane_in(tmp_path) as pane:
        await pane.execute("true")
        calling = asyncio.create_task(pane.execute("sleep 0.3; echo late", 30))
        waiting = asyncio.create_task(pane.wait_for("never", timeout_s=10))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for task in (calling, waiting):
            task.cancel()
        await asyncio.gather(calling, waiting, return_exceptions=True)
        record = pane.commands.records[-1]
        assert (await pane.wait_command(record.id, 30)).output == "late"
        assert (await pane.execute("echo fine")).output == "fine"


async def test_waiting_sees_only_what_comes_after(tmp_path: Path) -> None:
    async with pane_in(tmp_path) as pane:
        await pane.execute("echo earlier")
        with pytest.raises(TimedOut, match="'earlier'"):
            await pane.wait_for("earlier", timeout_s=0.1)
        found = await pane.wait_for("earlier", since=0)
        assert found.line == "earlier"


async def test_waiting_never_sees_the_command_line(tmp_path: Path) -> None:
    async with pane_in(tmp_path) as pane:
        await pane.execute("true")
        long = "x" * 200
        running = asyncio.create_task(pane.execute(f": {long}; sleep 0.2; echo do''ne"))
        found = await pane.wait_for("done", timeout_s=30)
        assert found.line == "done"
        await running
        typing = pane.position
        await pane.send_text("echo typed-by-hand # " + long)
        with pytest.raises(TimedOut):
            await pane.wait_for("typed-by-hand", since=typing, timeout_s=0.2)


async def test_waiting_hears_a_job_in_the_background(tmp_path: Path) -> None:
    async with pane_in(tmp_path) as pane:
        await pane.execute("(sleep 0.2; echo from behind) &")
        assert (await pane.wait_for("from behind", timeout_s=30)).is_found


async def test_a_pattern_that_would_never_end_is_stopped(tmp_path: Path) -> None:
    async with pane_in(tmp_path) as pane:
        await pane.execute("true")
        waiting = asyncio.create_task(pane.wait_for(r"(a|aa)+$", is_regex=True, timeout_s=30))
        await asyncio.sleep(0)
        await pane.execute("echo " + "a" * 60 + "b")
        with pytest.raises(InvalidInput):
            await waiting


@pytest.mark.parametrize(("pattern", "is_regex"), [("", False), ("x" * 1025, False), ("(", True)])
async def test_what_cannot_be_waited_for_is_refused(pattern: str, is_regex: bool, tmp_path: Path) -> None:
    async with pane_in(tmp_path) as pane:
        with pytest.raises(InvalidInput):
            await pane.wait_for(pattern, is_regex=is_regex)


async def test_waiting_ends_when_the_program_does(tmp_path: Path) -> None:
    async with pane_in(tmp_path, command=["sleep", "0.1"]) as pane:
        with pytest.raises(Conflict):
            await pane.wait_for("never", timeout_s=15)


async def test_a_full_screen_program_is_told_its_new_size(tmp_path: Path) -> None:
    async with pane_in(tmp_path) as pane:
        pane.resize(91, 33)
        assert (await pane.execute("stty size")).output == "33 91"
        assert (pane.engine.cols, pane.engine.rows) == (91, 33)


async def test_what_somebody_began_to_type_is_not_part_of_the_command(tmp_path: Path) -> None:
    for shell in ("bash", "zsh", "fish", "dash"):
        if shutil.which(shell) is None:
            continue
        async with pane_in(tmp_path, shell) as pane:
            await pane.execute("true")
            await pane.send_text("rm -rf unfinished ")
            assert (await pane.execute("echo clean")).output == "clean", shell
