"""Sessions: what is saved comes back, and a failure loses nothing."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from dari.errors import Conflict, Failed, InvalidInput, NotFound
from dari.terminal.policy.config import Security
from tests.support.terminal_service import House, house_in


async def build(house: House, home: Path) -> None:
    (home / "work").mkdir(exist_ok=True)
    panes, commands = house.service.panes, house.service.commands
    await panes.spawn_pane(name="code", env={"PROJECT": "dari"})
    await panes.spawn_pane("vertical", name="logs", cwd=str(home / "work"))
    await panes.resize_pane("code", 200, 31)
    await panes.spawn_pane("horizontal", where="tab", name="other")
    await commands.execute("echo written before", "code")
    await commands.execute("seq 1 200", "logs")
    await panes.focus_pane("logs")


async def test_layout_directories_environment_and_scrollback_come_back(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await build(house, tmp_path)
        before = (await house.service.panes.list_panes()).panes
        saved = await house.service.sessions.save_session("mine")
        assert (saved.session_id, saved.panes) == ("mine", 3)
    async with house_in(tmp_path) as house:
        restored = await house.service.sessions.restore_session("mine")
        assert restored.success
        after = (await house.service.panes.list_panes()).panes
        same = [(pane.id, pane.name, pane.cols, pane.rows, pane.left, pane.top, pane.cwd) for pane in before]
        assert [(pane.id, pane.name, pane.cols, pane.rows, pane.left, pane.top, pane.cwd) for pane in after] == same
        assert len({pane.tab_id for pane in after}) == 2
        assert (await house.service.panes.list_panes()).focused == house.multiplexer.find("logs").id
        assert "written before" in (await house.service.screen.get_raw_text("code", True)).text
        lines = (await house.service.screen.get_raw_text("logs", True)).text.split("\n")
        assert [str(number) for number in range(1, 201)] == [line for line in lines if line.isdigit()]
        assert (await house.service.commands.execute("echo $PROJECT", "code")).stdout == "dari"
        assert (await house.service.commands.execute("pwd", "logs")).stdout == str(tmp_path / "work")


async def test_variables_that_the_shell_exported_come_back(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("export LATER='two words' && unset OLDPWD")
        await house.service.sessions.save_session("exported")
    async with house_in(tmp_path) as house:
        await house.service.sessions.restore_session("exported")
        assert (await house.service.commands.execute("echo $LATER")).stdout == "two words"


async def test_commands_run_again_only_where_asked(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("echo again; sleep 1000", timeout_s=0.2)
        await house.service.sessions.save_session("busy", scrollback=False)
    for asked in (False, True):
        async with house_in(tmp_path) as house:
            await house.service.sessions.restore_session("busy", commands=asked)
            found = await house.service.commands.wait_for("^again$", timeout_s=30 if asked else 0.5, since=0)
            assert found.matched is asked


async def test_a_restored_session_stands_beside_what_is_open_or_in_its_place(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane(name="kept")
        await house.service.sessions.save_session("one")
        beside = await house.service.sessions.restore_session("one")
        assert beside.panes == ["2"]
        assert len(house.multiplexer.windows.all) == 2
        instead = await house.service.sessions.restore_session("one", instead=True)
        assert instead.panes == ["1"]
        assert list(house.multiplexer.panes) == ["1"]


async def test_a_session_with_too_many_panes_changes_nothing(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await build(house, tmp_path)
        await house.service.sessions.save_session("large")
    async with house_in(tmp_path, Security(max_panes=3)) as house:
        await house.service.panes.spawn_pane()
        with pytest.raises(Conflict, match="max_panes"):
            await house.service.sessions.restore_session("large")
        assert list(house.multiplexer.panes) == ["1"]


async def test_a_directory_that_is_gone_becomes_the_home(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane(cwd=str(tmp_path / "gone"))
        await house.service.sessions.save_session("gone")
    (tmp_path / "gone").rmdir()
    async with house_in(tmp_path) as house:
        await house.service.sessions.restore_session("gone")
        assert (await house.service.commands.execute("pwd")).stdout == str(tmp_path)


async def test_files_are_private_and_listed_newest_first(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane()
        await house.service.sessions.save_session("older")
        made = (await house.service.sessions.save_session()).session_id
        listed = (await house.service.sessions.list_sessions()).sessions
        assert [info.session_id for info in listed] == [made, "older"]
        assert oct((tmp_path / "sessions").stat().st_mode & 0o777) == "0o700"
        assert oct((tmp_path / "sessions" / "older.session").stat().st_mode & 0o777) == "0o600"
        await house.service.sessions.remove_session("older")
        with pytest.raises(NotFound, match="older"):
            await house.service.sessions.restore_session("older")


async def test_a_full_disk_is_told_and_the_earlier_session_stays(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.commands.execute("seq 1 2000")
        await house.service.sessions.save_session("mine")
        before = (tmp_path / "sessions" / "mine.session").read_bytes()
        await house.service.commands.execute("seq 1 3000")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        # The kernel refuses to let a file grow, as it does on a full disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, hard))
        try:
            with pytest.raises(Failed, match="the disk is full"):
                await house.service.sessions.save_session("mine")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert (tmp_path / "sessions" / "mine.session").read_bytes() == before
        assert [path.name for path in (tmp_path / "sessions").iterdir()] == ["mine.session"]
        assert (await house.service.commands.execute("echo alive")).stdout == "alive"


async def test_what_is_no_session_is_refused(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        with pytest.raises(Conflict):
            await house.service.sessions.save_session("nothing")
        await house.service.panes.spawn_pane()
        for wrong in ("../escape", "", "a/b", ".hidden", "x" * 100):
            with pytest.raises(InvalidInput):
                await house.service.sessions.restore_session(wrong)
        await house.service.sessions.save_session("good")
        path = tmp_path / "sessions" / "good.session"
        for broken in (b"", b"nonsense", path.read_bytes()[:-7]):
            path.write_bytes(broken)
            with pytest.raises(Failed):
                await house.service.sessions.restore_session("good")
        assert list(house.multiplexer.panes) == ["1"]


@pytest.mark.parametrize(("shell", "export"), [("zsh", "export A=zet"), ("fish", "set -gx A zet")])
async def test_exported_variables_come_back_in_other_shells(shell: str, export: str, tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane(shell=shell)
        await house.service.commands.execute(export)
        await house.service.sessions.save_session("other")
    async with house_in(tmp_path) as house:
        await house.service.sessions.restore_session("other")
        assert (await house.service.commands.execute("echo $A")).stdout == "zet"
