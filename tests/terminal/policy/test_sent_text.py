"""The text that the policy judges is the text that reaches the pane: nothing is dropped or changed between."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from dari.errors import Conflict, Denied, InvalidInput, NeedsApproval
from dari.terminal.engine.engine import make_engine
from dari.terminal.engine.keys import parse_keys
from dari.terminal.policy.ast import Dialect
from dari.terminal.policy.line_buffer import LineBuffer
from dari.terminal.policy.policy import Policy
from dari.terminal.typed_input import from_keys, from_paste, from_text
from tests.support.terminal_service import House, house_in
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("own_home")

TOO_LONG = "é" * 600_000
Way = Callable[[House], Awaitable[object]]


async def execute_with_a_c1_control(house: House) -> object:
    return await house.service.commands.execute("r\x80m victim")


async def execute_with_a_csi(house: House) -> object:
    return await house.service.commands.execute("r\x9bm victim")


async def follow_with_a_c1_control(house: House) -> object:
    return await house.service.follow.start("r\x80m victim")


async def paste_with_a_c1_control(house: House) -> object:
    return await house.service.commands.send_text("r\x80m victim", paste=True, enter=True)


async def paste_with_a_kill_character(house: House) -> object:
    return await house.service.commands.send_text("rm victim\x15", paste=True, enter=True)


async def paste_with_an_interrupt_character(house: House) -> object:
    return await house.service.commands.send_text("rm victim\x03", paste=True, enter=True)


async def paste_with_an_erase_character(house: House) -> object:
    await house.service.commands.send_text("r\x7f\x7fm victim", paste=True)
    return await house.service.commands.send_keys("Enter")


async def paste_smart_with_a_kill_character(house: House) -> object:
    return await house.service.clipboard.paste(text="rm victim\x15", form="plain", enter=True)


async def paste_marks_typed_around_a_kill_character(house: House) -> object:
    await house.service.commands.send_text("\x1b[200~rm victim #\x15\x1b[201~")
    return await house.service.commands.send_keys("Enter")


async def paste_marks_typed_in_pieces(house: House) -> object:
    await house.service.commands.send_text("\x1b[20")
    await house.service.commands.send_text("0~rm victim #\x03\x1b[201~")
    return await house.service.commands.send_keys("Enter")


async def an_interrupt_that_is_quoted(house: House) -> object:
    await house.service.commands.send_text("rm victim #\x16\x03")
    return await house.service.commands.send_keys("Enter")


async def an_interrupt_that_is_quoted_by_a_key(house: House) -> object:
    await house.service.commands.send_text("rm victim #")
    await house.service.commands.send_keys("C-v")
    await house.service.commands.send_keys("C-c")
    return await house.service.commands.send_keys("Enter")


async def kill_line_in_kitty_mode(house: House) -> object:
    await house.service.commands.execute("printf '\\e[>1u'")
    await house.service.commands.send_text("rm victim #")
    await house.service.commands.send_keys("C-u")
    return await house.service.commands.send_keys("Enter")


async def interrupt_in_kitty_mode(house: House) -> object:
    await house.service.commands.execute("printf '\\e[>1u'")
    await house.service.commands.send_text("rm victim #")
    await house.service.commands.send_keys("C-c")
    return await house.service.commands.send_keys("Enter")


async def kill_line_with_modify_other_keys(house: House) -> object:
    await house.service.commands.execute("printf '\\e[>4;2m'")
    await house.service.commands.send_text("rm victim #")
    await house.service.commands.send_keys("C-u")
    return await house.service.commands.send_keys("Enter")


async def backspace_when_every_key_is_reported(house: House) -> object:
    await house.service.commands.execute("printf '\\e[>8u'")
    await house.service.commands.send_text("rm victim")
    await house.service.commands.send_keys(" ".join(["BSpace"] * 20))
    return await house.service.commands.send_text("\n")


async def an_enter_that_no_shell_takes_for_one(house: House) -> object:
    await house.service.commands.execute("printf '\\e[>8u'")
    await house.service.commands.send_text("r")
    await house.service.commands.send_keys("Enter")
    await house.service.commands.send_text("\x7f\x7f\x7f")
    return await house.service.commands.send_text("m victim\n")


async def an_enter_of_the_keypad_that_no_shell_takes_for_one(house: House) -> object:
    await house.service.commands.execute("printf '\\e='")
    await house.service.commands.send_text("r")
    await house.service.commands.send_keys("KPEnter")
    return await house.service.commands.send_text("m victim\n")


async def a_kill_that_was_never_sent(house: House) -> object:
    await house.service.commands.send_text("rm victim")
    with pytest.raises(Conflict):
        await house.service.commands.send_text(TOO_LONG + "\x15")
    return await house.service.commands.send_keys("Enter")


async def a_paste_of_lines_that_was_never_sent(house: House) -> object:
    await house.service.commands.send_text("rm victim")
    with pytest.raises((Conflict, NeedsApproval)):
        await house.service.clipboard.paste(text=f"#{TOO_LONG}\n", form="plain", allow_lines=True)
    return await house.service.commands.send_keys("Enter")


async def a_kill_of_a_person_that_was_never_sent(house: House) -> object:
    await house.service.commands.send_text("rm victim")
    with pytest.raises(Conflict):
        await house.service.commands.write(b64encode(TOO_LONG.encode() + b"\x15").decode())
    return await house.service.commands.send_keys("Enter")


async def a_kill_that_a_person_did_not_admit(house: House) -> object:
    await house.service.commands.send_text("rm victim")
    pane = house.multiplexer.find()
    admit = pane.admit_input

    def refuse() -> None:
        raise Conflict("a person has the pane", "wait")

    pane.admit_input = refuse
    with pytest.raises(Conflict):
        await house.service.commands.send_keys("C-u")
    pane.admit_input = admit
    return await house.service.commands.send_keys("Enter")


async def a_text_that_waits_for_a_command_to_begin(house: House) -> object:
    _, _ = await asyncio.gather(
        house.service.commands.execute("true"), _soon(lambda: house.service.commands.send_text("rm victim"))
    )
    return await house.service.commands.send_keys("Enter")


async def _soon(call: Callable[[], Awaitable[object]]) -> None:
    await asyncio.sleep(0)
    await call()


async def between_a_text_and_its_enter(house: House) -> object:
    """The kernel takes the long line in several pieces, and the other sender comes between them."""
    results = await asyncio.gather(
        house.service.commands.send_text(":" + " " * 20_000, enter=True),
        house.service.commands.send_text("; rm victim"),
        return_exceptions=True,
    )
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return await house.service.commands.send_keys("Enter")


async def between_the_text_and_the_enter_of_an_input_method(house: House) -> object:
    pane = house.multiplexer.find()
    line = house.multiplexer.input_guard(pane)._line
    pane.pause()  # the echo that it waits for does not come yet
    typing = asyncio.ensure_future(
        house.service.input_method.type_with_ime("echo 한글", mode="text", enter=True, timeout_s=10)
    )
    async with asyncio.timeout(10):
        await until(lambda: line.pending != "")
    await house.service.commands.send_text("; rm victim")
    pane.resume()
    return await typing


async def a_command_behind_the_begin_of_a_paste(house: House) -> object:
    await house.service.commands.send_text("\x1b[200~rm victim #")
    await house.service.commands.execute("true")
    raise Denied("the line was not run", "")


async def a_command_behind_an_editor_key(house: House) -> object:
    pane = house.multiplexer.find()
    await pane.execute("export EDITOR=true VISUAL=true FCEDIT=true")
    await house.service.commands.send_text("rm victim\x18")
    await house.service.commands.execute("true")
    raise Denied("the line was not run", "")


async def a_command_behind_a_quoting_key_of_the_kernel(house: House) -> object:
    await house.service.panes.spawn_pane(shell="sh")
    await house.service.commands.execute("true")
    await house.service.commands.send_text("rm victim #\x16")
    await house.service.commands.execute("true")
    raise Denied("the line was not run", "")


async def erased_with_a_key_that_the_kernel_does_not_know(house: House) -> object:
    await house.service.panes.spawn_pane(shell="sh")
    await house.service.commands.execute("true")
    return await house.service.commands.send_text("rm victim #" + "\x08" * 11 + "\n")


async def given_up_in_a_shell_that_takes_its_time(house: House) -> object:
    await house.service.panes.spawn_pane(shell="fish")
    await house.service.commands.execute("true")
    return await house.service.commands.send_text("rm victim #\x03\r")


async def out_of_an_editor_with_a_letter_erased(house: House) -> object:
    await house.service.commands.execute("vi -u NONE notes.txt", timeout_s=0.0)
    assert (await house.service.commands.wait_for("notes.txt", is_regex=False, timeout_s=20, since=0)).matched
    await house.service.commands.send_keys("Escape")
    return await house.service.commands.send_text(":!rx\x7fm victim\n")


WAYS: list[Way] = [
    erased_with_a_key_that_the_kernel_does_not_know,
    given_up_in_a_shell_that_takes_its_time,
    out_of_an_editor_with_a_letter_erased,
    execute_with_a_c1_control,
    execute_with_a_csi,
    follow_with_a_c1_control,
    paste_with_a_c1_control,
    paste_with_a_kill_character,
    paste_with_an_interrupt_character,
    paste_with_an_erase_character,
    paste_smart_with_a_kill_character,
    paste_marks_typed_around_a_kill_character,
    paste_marks_typed_in_pieces,
    an_interrupt_that_is_quoted,
    an_interrupt_that_is_quoted_by_a_key,
    kill_line_in_kitty_mode,
    interrupt_in_kitty_mode,
    kill_line_with_modify_other_keys,
    backspace_when_every_key_is_reported,
    an_enter_that_no_shell_takes_for_one,
    an_enter_of_the_keypad_that_no_shell_takes_for_one,
    a_kill_that_was_never_sent,
    a_paste_of_lines_that_was_never_sent,
    a_kill_of_a_person_that_was_never_sent,
    a_kill_that_a_person_did_not_admit,
    a_text_that_waits_for_a_command_to_begin,
    between_a_text_and_its_enter,
    between_the_text_and_the_enter_of_an_input_method,
    a_command_behind_the_begin_of_a_paste,
    a_command_behind_an_editor_key,
    a_command_behind_a_quoting_key_of_the_kernel,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_a_command_that_is_sent_otherwise_than_it_looks_does_not_run(way: Way, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.touch()
    async with house_in(tmp_path) as house:
        await house.service.commands.execute(f"cd {tmp_path}")
        with pytest.raises((NeedsApproval, Denied, InvalidInput, Conflict)):
            await way(house)
        if house.multiplexer.find().is_at_prompt:
            await house.service.commands.execute("true")
    assert victim.exists()


@pytest.mark.parametrize("key", ["C-c", "C-u", "BSpace"])
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "sh"])
@pytest.mark.parametrize("change", ["intr undef", "kill undef", "erase undef", "-isig", "erase ^H kill ^K intr ^G"])
async def test_a_key_that_the_terminal_does_not_know_takes_nothing_off_the_line(
    change: str, shell: str, key: str, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.touch()
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane(shell=shell, cwd=str(tmp_path))
        await house.service.commands.execute("true")
        await house.multiplexer.find().execute(f"stty {change}")
        await house.service.commands.send_text("rm victim #")
        await house.service.commands.send_keys(" ".join([key] * (12 if key == "BSpace" else 1)))
        with suppress(NeedsApproval):  # a key that does what it says leaves nothing to ask about
            await house.service.commands.send_keys("Enter")
            await house.service.commands.execute("true")
    assert victim.exists()


@pytest.mark.parametrize("keys", ["C-c", "C-u", "BSpace BSpace BSpace BSpace"])
@pytest.mark.parametrize("shell", ["bash", "zsh", "sh"])
async def test_keys_that_clear_a_line_leave_nothing_to_ask_about(shell: str, keys: str, tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane(shell=shell)
        await house.service.commands.execute("true")
        await house.service.commands.send_text("rm x")
        await house.service.commands.send_keys(keys)
        await house.service.commands.send_keys("Enter")  # not NeedsApproval
        assert (await house.service.commands.execute("echo next")).stdout == "next"


@pytest.mark.parametrize(
    ("command", "shell"),
    [
        ("stty intr undef", "bash"),
        ("stty -isig", "bash"),
        ("stty $saved", "bash"),
        ("stty -icrnl", "sh"),
        ("trap : INT", "zsh"),
        ("bindkey -v", "zsh"),
        ("setopt vi", "zsh"),
        ("fish_vi_key_bindings", "fish"),
    ],
)
def test_a_command_that_changes_what_keys_do_is_asked_about(command: str, shell: Dialect) -> None:
    assert Policy().judge(command, "/", shell).decision == "ask"


@pytest.mark.parametrize(
    "command", ["stty -a", "stty sane", "stty size", "stty rows 40 cols 120", "bindkey -L", "bind -v"]
)
def test_a_command_that_tells_what_keys_do_is_not_asked_about(command: str) -> None:
    assert Policy().judge(command, "/", "zsh" if "bindkey" in command else "bash").decision == "allow"


async def test_a_paste_is_judged_without_the_characters_that_it_leaves_out(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("true")
        await house.service.commands.send_text("echo so\x80me\x15''thing\x07", paste=True, enter=True)
        assert (await house.service.commands.wait_for("^something$", timeout_s=30, since=0)).matched


async def test_a_text_that_was_refused_leaves_the_line_as_it_was(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("true")
        await house.service.commands.send_text("echo so''me")
        with pytest.raises(Conflict):
            await house.service.commands.send_text(TOO_LONG + "\x15")
        await house.service.commands.send_text("''thing\n")
        assert (await house.service.commands.wait_for("^something$", timeout_s=30, since=0)).matched


async def test_a_line_is_certain_again_after_the_next_command(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("printf '\\e[>1u'")
        await house.service.commands.send_text("echo one")
        await house.service.commands.send_keys("C-u")
        await house.service.commands.execute("printf '\\e[<u'")
        await house.service.commands.send_text("echo two''more")
        await house.service.commands.send_keys("C-u")
        await house.service.commands.send_text("echo thr''ee\n")
        assert (await house.service.commands.wait_for("^three$", timeout_s=30, since=0)).matched


@pytest.mark.parametrize("code", [*range(9), 11, 12, *range(14, 32), *range(0x7F, 0xA0)])
def test_every_character_that_a_paste_leaves_out_is_asked_about(code: int) -> None:
    assert Policy().judge(f"r{chr(code)}m x", "/").decision == "ask"


@pytest.mark.parametrize("prefer", ["ghostty", "bittty"])
@pytest.mark.parametrize("mode", ["", "\x1b[>1u", "\x1b[>8u", "\x1b[>4;2m", "\x1b=", "\x1b[?1h", "\x1b[?2004h"])
def test_only_bytes_that_take_something_off_the_line_are_judged_as_doing_so(mode: str, prefer: str) -> None:
    engine = make_engine(80, 24, prefer=prefer)  # type: ignore[arg-type]
    engine.feed(mode.encode())
    for name in ("C-c", "C-d", "C-h", "C-u", "BSpace", "C-BSpace", "S-BSpace", "C-S-u", "C-?"):
        typed = from_keys(parse_keys(name), engine)
        assert typed.text == "\x1b" or typed.data == typed.text.encode(), name
    for name in ("Enter", "KPEnter", "C-Enter", "S-Enter", "C-j", "C-m", "C-o", "M-a", "x"):
        typed = from_keys(parse_keys(name), engine)
        assert typed.text.lstrip("\x1b") in ("\r", "\n", "\x0f", "a", "x"), name
        assert not typed.is_exact or "\x1b" in typed.text or typed.data == typed.text.encode(), name


@pytest.mark.parametrize("text", ["ls", "a\nb\r\nc\rd", "한글\t", "a\x80\x9b\x15\x7f\x1b[201~b", "x\ud800y"])
@pytest.mark.parametrize("mode", ["", "\x1b[?2004h"])
def test_the_judged_text_of_a_text_and_of_a_paste_is_what_is_sent(text: str, mode: str) -> None:
    engine = make_engine(80, 24)
    engine.feed(mode.encode())
    pasted, typed = from_paste(text, engine), from_text(text)
    assert pasted.data.removeprefix(b"\x1b[200~").removesuffix(b"\x1b[201~").decode() == pasted.text
    assert typed.data.decode() == typed.text


@pytest.mark.parametrize(
    "pieces",
    [
        ["\x1b[200~rm x\x15\x1b[201~"],
        ["\x1b[200~rm x", "\x03", "\x1b[201~"],
        ["\x1b", "[200~", "rm x\x15"],
        ["\x1b[200", "~rm x\x7f\x7f\x7f\x7f"],
        ["rm x\x16\x03"],
        ["rm x\x16", "\x15"],
    ],
)
def test_characters_that_stand_on_the_line_take_nothing_off_it(pieces: list[str]) -> None:
    line = LineBuffer()
    for piece in pieces:
        assert line.add(piece) is None
    entry = line.add("\r")
    assert entry is not None and "rm x" in entry.text and not entry.is_certain


def test_after_a_paste_keys_are_keys_again() -> None:
    line = LineBuffer()
    line.add("\x1b[200~rm x\x1b[201~\x15ls")
    entry = line.add("\r")
    assert entry is not None and (entry.text, entry.is_certain) == ("ls", True)
