"""Words to a shell that leave no trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from dari.errors import Conflict
from tests.support.terminal_service import house_in

pytestmark = pytest.mark.usefixtures("own_home")


@pytest.mark.parametrize(
    ("shell", "script"),
    [("bash", "export A=1; echo told"), ("zsh", "export A=1; echo told"), ("fish", "set -gx A 1; echo told")],
)
async def test_it_changes_the_shell_and_nothing_is_seen_of_it(shell: str, script: str, tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane(shell=shell)
        await house.service.commands.execute("echo before")
        pane = house.multiplexer.find()
        seen = (await house.service.screen.get_raw_text(scrollback=True)).text
        for _ in range(3):
            assert await house.multiplexer.run_quietly(pane, script) == b"told\n"
        done = await house.service.commands.execute("echo A is $A")
        assert (done.stdout, done.exit_code) == ("A is 1", 0)
        after = (await house.service.screen.get_raw_text(scrollback=True)).text
        assert after.startswith(seen.rstrip())
        assert "told" not in after
        listed = await house.service.commands.execute("history")
        assert "told" not in listed.stdout


async def test_a_line_that_was_begun_stays(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("true")
        await house.service.commands.send_text("echo half")
        assert (await house.service.commands.wait_for("x", timeout_s=0.1)).matched is False
        await house.multiplexer.run_quietly(house.multiplexer.find(), ":")
        await house.service.commands.send_text(" and half\n")
        assert (await house.service.commands.wait_for("^half and half$", timeout_s=30, since=0)).matched


async def test_a_busy_shell_is_a_conflict(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("sleep 1000", timeout_s=0.1)
        with pytest.raises(Conflict):
            await house.multiplexer.run_quietly(house.multiplexer.find(), ":")


async def test_a_key_without_a_request_does_nothing(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("true")
        await house.multiplexer.find().write(b"\x1b[7701~")
        assert (await house.service.commands.execute("echo fine")).stdout == "fine"
        assert list((tmp_path / "control" / "1").iterdir()) == []
