"""Korean, Japanese and Chinese typed into real programs: only what is committed arrives."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dari.errors import NeedsApproval, NotFound
from tests.support.terminal_service import approve, house_in
from tests.support.terminal_tools import client_in
from tests.support.waiting import until

RECORDER = """
import os, sys, termios, tty
tty.setraw(0)
os.write(1, b"ready\\r\\n")
with open("reads", "wb") as file:
    while True:
        data = os.read(0, 4096)
        file.write(data.hex().encode() + b"\\n"); file.flush()
        os.write(1, data)
        if b"q" in data: break
"""


async def test_keys_become_syllables_and_arrive_in_a_file(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        await client.call("crux_execute_command", command="true")
        await client.call("crux_send_text", text="echo ")
        done = await client.call("crux_type_with_ime", text="dkssud gktpdy", enter=True)
        assert (done["committed"], done["is_echoed"], done["key_count"]) == ("안녕 하세요", True, 13)
        found = await client.call("crux_wait_for_output", pattern="^안녕 하세요$", mark=0)
        assert found["matched"]


async def test_the_preedit_never_reaches_the_program(tmp_path: Path) -> None:
    (tmp_path / "recorder.py").write_text(RECORDER)
    async with house_in(tmp_path) as house:
        await house.service.commands.execute(f"{sys.executable} recorder.py", timeout_s=0.1)
        await house.service.commands.wait_for("ready", since=0, timeout_s=30)
        done = await house.service.input_method.type_with_ime("gksrmf", preedit=True)
        assert (done.committed, done.writes, done.is_echoed) == ("한글", 2, True)
        assert done.preedits[:3] == ["ㅎ", "하", "한"]
        await house.service.commands.send_keys("q")
        await until(lambda: (tmp_path / "reads").read_text().endswith("71\n"))
        arrived = bytes.fromhex((tmp_path / "reads").read_text().replace("\n", "")).decode()
        assert arrived == "한글q"
        # Each syllable is whole in what was read: a write is never half a character, and no jamo was sent.
        assert all(bytes.fromhex(line).decode() for line in (tmp_path / "reads").read_text().split())


async def test_backspace_takes_back_a_letter_of_the_syllable(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("cat > typed", timeout_s=0.3)
        done = await house.service.input_method.type_with_ime("gks<Backspace>f", mode="keys")
        assert done.committed == "할"
        await house.service.commands.send_keys("Enter C-d")
        await until(lambda: (tmp_path / "typed").read_text() == "할\n")


@pytest.mark.parametrize(
    ("text", "language", "arrives"),
    [
        ("konnichiha", "japanese", "こんにちは"),
        ("값이 ㅋㅋ ABC", "korean", "값이 ㅋㅋ ABC"),
        ("终端模拟器", "chinese", "终端模拟器"),
    ],
)
async def test_languages_arrive_as_they_are_meant(text: str, language: str, arrives: str, tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        await client.call("crux_execute_command", command="cat > typed", timeout_ms=300)
        done = await client.call("crux_type_with_ime", text=text, language=language, enter=True)
        assert (done["committed"], done["is_echoed"]) == (arrives, True)
        await client.call("crux_send_keys", keys="C-d")
        await until(lambda: (tmp_path / "typed").read_text() == arrives + "\n")


async def test_text_that_is_there_already_does_not_count_as_its_echo(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("echo 한글")
        with pytest.raises(NeedsApproval) as asked:  # what is typed without an echo is not judged
            await house.service.commands.execute("stty -echo; cat > typed", timeout_s=0.3)
        await approve(house, asked.value)
        await house.service.commands.execute("stty -echo; cat > typed", timeout_s=0.3)
        await until(lambda: house.multiplexer.find().is_asking_secret)
        done = await house.service.input_method.type_with_ime("gksrmf", timeout_s=0.3)
        assert (done.committed, done.is_echoed) == ("한글", False)
        await house.service.commands.send_keys("Enter C-d")
        await until(lambda: (tmp_path / "typed").read_text() == "한글\n")


async def test_what_enter_would_run_is_judged(tmp_path: Path) -> None:
    (tmp_path / "파일").touch()
    async with client_in(tmp_path) as client:
        await client.call("crux_execute_command", command="true")
        error = (await client.call("crux_type_with_ime", text="rm 파일", enter=True))["error"]
        assert error["name"] == "needs_approval"
        assert "rm 파일" in error["message"]
    assert (tmp_path / "파일").exists()


async def test_an_unknown_pane_names_the_tool_that_lists_them(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        with pytest.raises(NotFound) as unknown:
            await house.service.input_method.type_with_ime("r", pane_id="77")
        assert "crux_list_panes" in unknown.value.hint
