"""What is typed is shown again; waiting sees the answer and never the echo."""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path

import pytest

from dari.errors import TimedOut
from dari.terminal.engine.keys import parse_keys
from dari.terminal.panes.echo_filter import EchoFilter, Teller
from dari.terminal.panes.output_text import to_stream
from tests.support.panes import pane_in
from tests.support.waiting import until


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "dash"])
async def test_an_answer_that_ends_with_what_was_typed_is_found_every_time(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    command = "sh -c 'read line; echo got $line'" if shell == "fish" else "read line; echo got $line"
    async with pane_in(tmp_path, shell) as pane:
        await pane.execute("true")
        for number in range(10):
            since = 0 if number == 0 else pane.position
            running = asyncio.create_task(pane.execute(command, 10))
            await asyncio.sleep(0)
            await pane.send_text(f"word{number}\n")
            found = await pane.wait_for(f"got word{number}", since=since, timeout_s=10)
            assert found.line == f"got word{number}"
            assert (await running).output.endswith(f"got word{number}")


@pytest.mark.parametrize("name", ["Bob", "b"])
async def test_a_program_that_asks_for_a_name_and_greets(name: str, tmp_path: Path) -> None:
    program = "print('hello', input('name? '), flush=True); input('again? ')"
    async with pane_in(tmp_path, command=[sys.executable, "-c", program]) as pane:
        await pane.wait_for("name? ", since=0)
        await pane.send_text(f"{name}\n")
        assert (await pane.wait_for(f"hello {name}", since=0)).line == f"hello {name}"
        found = await pane.wait_for(f"{name}", since=0)
        assert found.line == f"hello {name}"
        since = (await pane.wait_for("again? ", since=0)).position
        await pane.send_text(name)
        with pytest.raises(TimedOut):
            await pane.wait_for(name, since=since, timeout_s=0.2)


async def test_the_words_of_a_question_are_no_echo_of_its_answer(tmp_path: Path) -> None:
    async with pane_in(tmp_path, command=["sh", "-c", "printf 'which word\\n'; read w; echo; read w"]) as pane:
        await pane.wait_for("which", since=0)
        await pane.send_text("word\n")
        assert (await pane.wait_for("word", since=0)).line == "which word"
        since = pane.position
        with pytest.raises(TimedOut):
            await pane.wait_for("word", since=since, timeout_s=0.2)


async def test_an_echo_alone_is_never_found(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    async with pane_in(tmp_path, command=["sh", "-c", "echo ready; cat > taken"]) as pane:
        await pane.wait_for("ready", since=0)
        for text in ("one\n", "two ", "words\n", "한글\n", "\ttab\n"):
            await pane.send_text(text)
        await pane.send_keys(parse_keys("k", "e", "y", "s", "Enter"))
        await until(lambda: taken.exists() and taken.read_text().endswith("keys\n"))
        with pytest.raises(TimedOut):
            await pane.wait_for("one|two|words|한글|tab|k|e?ys", is_regex=True, since=10, timeout_s=0.2)
        assert "two words" in pane.engine.text(0, 10)


async def test_what_is_typed_before_a_prompt_is_shown_twice_and_counts_neither_time(tmp_path: Path) -> None:
    async with pane_in(tmp_path, command=[sys.executable, "-q"], env={"PYTHON_BASIC_REPL": "1"}) as pane:
        await pane.wait_for(">>> ", since=0)
        await pane.send_text("import time; print('be' + 'gun'); time.sleep(2)\n")
        since = (await pane.wait_for("begun", since=0)).position
        await pane.send_text("x = 'mar' 'ker'\n")
        await pane.send_text("print(x, 'x = ')\n")
        found = await pane.wait_for("marker", since=since)
        assert found.line == "marker x = "
        assert (await pane.wait_for("x = ", since=since)).line == "marker x = "
    async with pane_in(tmp_path) as pane:
        await pane.execute("true")
        await pane.execute("echo be''gun; sleep 2", 0.01)
        since = (await pane.wait_for("begun", since=0)).position
        await pane.send_text("echo typed-ahead | tr a-z A-Z\n")
        found = await pane.wait_for("(?i)typed-ahead", is_regex=True, since=since)
        assert found.line == "TYPED-AHEAD"


async def test_keys_typed_into_a_line_editor_one_by_one_are_echo(tmp_path: Path) -> None:
    async with pane_in(
        tmp_path, command=["bash", "-c", "read -e -p 'say> ' x; echo you said $x; read -e -p 'end> '"]
    ) as pane:
        await pane.wait_for("say> ", since=0)
        since = pane.position
        for key in parse_keys("h", "e", "y"):
            await pane.send_keys([key])
        await until(lambda: "say> hey" in pane.engine.text(0, 2))
        with pytest.raises(TimedOut):
            await pane.wait_for("h|e|y", is_regex=True, since=since, timeout_s=0.2)
        await pane.send_keys(parse_keys("Enter"))
        assert (await pane.wait_for("hey", since=since)).line == "you said hey"


async def test_a_password_that_is_printed_afterwards_is_output(tmp_path: Path) -> None:
    program = "import getpass; print('got', getpass.getpass('Secret? '), flush=True); input()"
    async with pane_in(tmp_path, command=[sys.executable, "-c", program]) as pane:
        await pane.wait_for("Secret? ", since=0)
        await pane.send_text("horse\n")
        assert (await pane.wait_for("horse", since=0)).line == "got horse"
    async with pane_in(
        tmp_path, command=["bash", "-c", "read -s -n 5 -p 'Key? ' x; echo; echo got $x; read y"]
    ) as pane:
        await pane.wait_for("Key? ", since=0)
        await pane.send_text("horse")
        assert (await pane.wait_for("horse", since=0)).line == "got horse"


@pytest.mark.parametrize("cut", range(1, 17))
@pytest.mark.parametrize(
    ("teller", "shown"), [("kernel", b"> word\r\ngot word\r\n"), ("editor", b"> wo\x1b[1mrd\r\ngot word\r\n")]
)
def test_an_echo_may_be_cut_anywhere(teller: Teller, shown: bytes, cut: int) -> None:
    echoes = EchoFilter()
    echoes.typed(0, b"word\r", teller)
    pieces = echoes.sift(0, shown[:cut], False) + echoes.sift(cut, shown[cut:], False) + echoes.release()
    assert b"".join(piece for _, piece in pieces) == b"> \r\ngot word\r\n"
    assert all(shown[at : at + len(piece)] == piece for at, piece in pieces)
    assert echoes.without(0, shown) == [(0, b"> "), (shown.index(b"\r"), b"\r\ngot word\r\n")]


def test_what_begins_like_an_echo_and_goes_on_otherwise_is_output() -> None:
    echoes = EchoFilter()
    echoes.typed(0, b"word\r", "kernel")
    assert echoes.sift(0, b"a wor", False) == [(0, b"a ")]
    assert echoes.is_holding
    assert echoes.sift(5, b"m\r\n", False) == [(2, b"worm\r\n")]
    assert echoes.sift(8, b"wo", False) == []
    assert echoes.release() == [(8, b"wo")]


def test_a_row_that_an_editor_draws_anew_for_each_key_is_echo() -> None:
    """As irb does it: the prompt changes with an open quote, the colours with the words."""
    echoes = EchoFilter()
    drawn = b"\x1b[0m\x1b[1Girb(main):001:0' \x1b[31m\x1b[1m'\x1b[0m\x1b[31m%b\x1b[0m\x1b[K\x1b[1G\x1b[%dG"
    at, shown = 0, b""
    for count, key in enumerate((b"'", b"a", b"b"), 19):
        echoes.typed(at, key, "editor")
        row = drawn % (b"'ab"[1 : count - 18], count)
        shown += b"".join(piece for _, piece in echoes.sift(at, row, True))
        at += len(row)
    echoes.typed(at, b"\r", "editor")
    entered = b"\x1b[1Girb(main):001:0> \x1b[31m'ab\x1b[0m\x1b[K\r\n=> \"'ab\"\r\n"
    shown += b"".join(piece for _, piece in echoes.sift(at, entered, True))
    text = to_stream(shown)
    assert "ab" not in text.partition("=>")[0]
    assert text.rstrip().endswith('=> "\'ab"')


def test_a_key_that_a_menu_takes_is_no_part_of_its_answer() -> None:
    echoes = EchoFilter()
    echoes.typed(0, b"y", "editor")
    assert echoes.sift(0, b"all ready", True) == [(0, b"all ready")]
    assert echoes.sift(9, b"\r\nbye", True) == [(9, b"\r\nbye")]


def test_a_line_that_an_editor_shows_again_is_echo_though_it_has_stopped_reading_keys_by_then() -> None:
    """A REPL that reads a line that was typed ahead gives the terminal its usual modes back before we look at them."""
    echoes = EchoFilter()
    echoes.passed(b">>> ")
    echoes.typed(4, b"sleep(2)\r", "editor")
    assert echoes.sift(4, b"sleep(2)\r\n", True) == [(12, b"\r\n")]
    echoes.typed(14, b"x = 1\r", "kernel")
    assert echoes.sift(14, b"x = 1\r\n", False) == [(19, b"\r\n")]
    assert echoes.sift(21, b">>> x = 1\r\n", False) == [(21, b">>> "), (30, b"\r\n")]


def test_an_answer_behind_what_no_editor_used_as_its_prompt_is_output() -> None:
    echoes = EchoFilter()
    echoes.passed(b">>> ")
    echoes.typed(4, b"input()\r", "editor")
    echoes.sift(4, b"input()\r\n", True)
    echoes.typed(13, b"word\r", "kernel")
    echoes.sift(13, b"word\r\n", False)
    assert echoes.sift(19, b"you said: word\r\n", False) == [(19, b"you said: word\r\n")]
