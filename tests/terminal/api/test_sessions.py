"""Sessions: what is saved comes back, and a failure loses nothing."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dari.daemon.caller_scopes import CallerIdentity, serve_caller
from dari.daemon.tokens import APP
from dari.errors import Conflict, Failed, InvalidInput, NeedsApproval, NotFound
from dari.terminal.engine.keys import parse_key
from dari.terminal.multiplexer import LayoutChanged
from dari.terminal.policy.config import Security
from dari.terminal.session_store import SessionStore
from tests.support.terminal_service import House, approve, house_in


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


@contextmanager
def by_person() -> Iterator[None]:
    with serve_caller(CallerIdentity("app", frozenset(APP.scopes), os.getpid(), is_vouched_for=True)):
        yield


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_an_agent_does_not_get_the_variables_of_a_program_in_a_persons_pane(tmp_path: Path) -> None:
    async with house_in(tmp_path, Security(sandbox="workspace")) as house:
        with by_person():
            pane = await house.multiplexer.open(shell="bash", cwd=str(tmp_path), env={"GIVEN": "yes"})
            assert not pane.is_confined
            await pane.commands.ready(20.0)
            await pane.execute("export TOKEN=secret; sh -c 'echo runs; sleep 1000'", 0.0)
            await pane.wait_for("runs", since=0)
            assert (await house.multiplexer.environment(pane))["TOKEN"] == "secret"
        for caller in (None, CallerIdentity("mcp", frozenset(("read", "control")), os.getpid())):
            with nullcontext() if caller is None else serve_caller(caller):
                assert await house.multiplexer.environment(pane) == {"GIVEN": "yes"}
                await house.service.sessions.save_session("taken")
            assert SessionStore(tmp_path / "sessions").load("taken").panes[0].env == {"GIVEN": "yes"}


async def save_changed(house: House, home: Path, **changes: object) -> None:
    """A session of one pane as somebody has written it into its file."""
    await house.service.panes.spawn_pane(shell="bash", cwd=str(home))
    await house.service.sessions.save_session("written")
    store = SessionStore(home / "sessions")
    session = store.load("written")
    store.save(replace(session, panes=(replace(session.panes[0], **changes),)))


@pytest.mark.parametrize(
    "changes",
    [{"env": {"LD_PRELOAD": "/tmp/other.so"}}, {"env": {"BASH_ENV": "/tmp/other"}}, {"shell": "/tmp/rm/bash"}],
)
async def test_variables_and_shell_of_a_session_are_judged_as_those_of_a_new_pane(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    security = Security(dangerous_patterns=(*Security().dangerous_patterns, "/tmp/rm/*"))
    async with house_in(tmp_path, security) as house:
        await save_changed(house, tmp_path, **changes)
        with pytest.raises(NeedsApproval) as opening:
            await house.service.panes.spawn_pane(cwd=str(tmp_path), **changes)
        with pytest.raises(NeedsApproval) as restoring:
            await house.service.sessions.restore_session("written")
        asked = [need.value.message.partition(" (approval")[0] for need in (opening, restoring)]
        assert asked[0] == asked[1]
        assert list(house.multiplexer.panes) == ["1"]


async def test_a_session_with_a_judged_variable_is_restored_once_a_person_agrees(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await save_changed(house, tmp_path, env={"BASH_ENV": "/dev/null"}, command="rm -rf ./nothing-there")
        with pytest.raises(NeedsApproval) as need:
            await house.service.sessions.restore_session("written", commands=True)
        assert "BASH_ENV" in need.value.message
        assert "rm -rf ./nothing-there" in need.value.message
        await approve(house, need.value)
        restored = await house.service.sessions.restore_session("written", commands=True)
        assert (await house.service.commands.execute("echo $BASH_ENV", restored.panes[0])).stdout == "/dev/null"


async def test_a_shell_that_no_pane_may_be_opened_with_is_refused_before_anything_is_opened(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await save_changed(house, tmp_path, shell="/usr/bin/env")
        with pytest.raises(InvalidInput):
            await house.service.sessions.restore_session("written")
        assert list(house.multiplexer.panes) == ["1"]


async def test_exported_functions_and_the_look_of_a_prompt_stay_with_their_shell(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        pane = await house.multiplexer.find_or_open()
        await pane.execute("f() { echo called; }; export -f f; export PS1='venv> ' LATER=1")
        await house.service.sessions.save_session("functions")
    async with house_in(tmp_path) as house:
        await house.service.sessions.restore_session("functions")
        done = await house.service.commands.execute("f; echo $LATER")
        assert done.stdout.splitlines()[-1] == "1"
        assert "called" not in done.stdout


async def test_a_program_that_leads_to_a_shell_comes_back_with_its_arguments(tmp_path: Path) -> None:
    argv = ["env", "-u", "NOTHING", "bash", "--norc", "-i"]
    async with house_in(tmp_path) as house:
        opened = await house.service.panes.spawn_pane(argv=argv, cwd=str(tmp_path), wait_for=r"\$ |# ")
        assert (await house.service.commands.execute("echo spoken", opened.id)).stdout == "spoken"
        assert house.multiplexer.find().kind == "bash"
        await house.service.sessions.save_session("led")
        assert SessionStore(tmp_path / "sessions").load("led").panes[0].argv == tuple(argv)
        restored = await house.service.sessions.restore_session("led")
        assert house.multiplexer.panes[restored.panes[0]].argv == tuple(argv)


async def test_a_session_saved_while_a_pane_opens_can_be_restored(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane()
        opening = asyncio.create_task(house.service.panes.spawn_pane())
        with house.multiplexer.changes.stream() as changes:
            async with asyncio.timeout(20):
                async for change in changes:
                    if isinstance(change, LayoutChanged):  # it has its place, and is not there yet
                        break
        await house.service.sessions.save_session("busy")
        await opening
        assert (await house.service.sessions.restore_session("busy", instead=True)).success


async def test_names_of_windows_and_tabs_come_back(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        pane = await house.service.panes.spawn_pane()
        await house.service.panes.spawn_pane(where="tab")
        await house.service.views.rename(pane.window_id, "work")
        await house.service.views.rename(pane.tab_id, "logs")
        await house.service.sessions.save_session("named")
        before = house.multiplexer.windows.all
        await house.service.sessions.restore_session("named")
        beside = house.multiplexer.windows.all[-1]
        assert beside.name == beside.id  # two of one name could not be told apart
        await house.service.sessions.restore_session("named", instead=True)
        (window,) = house.multiplexer.windows.all
        assert window.name == before[0].name == "work"
        assert [tab.name for tab in window.tabs] == ["logs", window.tabs[1].id]


async def test_the_modes_of_a_program_that_is_gone_do_not_come_back(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        pane = house.multiplexer.find((await house.service.panes.spawn_pane()).id)
        pane.engine.feed(b"\x1b[>5u\x1b[4h\x1b[?7l\x1b[?6h\x1b[?5h\x1b[?2026h\x1b(0")
        await house.service.sessions.save_session("modes")
        await house.service.sessions.restore_session("modes", instead=True)
        engine = house.multiplexer.find().engine
        modes = engine.modes
        assert (modes.kitty_keyboard, modes.insert, modes.origin, modes.reverse_video, modes.wrap) == (
            0,
            False,
            False,
            False,
            True,
        )
        assert engine.encode_key(parse_key("C-c")) == b"\x03"
        assert (await house.service.commands.execute("echo plain")).stdout == "plain"
        assert "plain" in engine.text(0, engine.rows)


async def test_a_program_that_had_ended_is_not_run_again(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane(name="shell")
        count = tmp_path / "count"
        pane = house.multiplexer.find(
            (
                await house.service.panes.spawn_pane(argv=["sh", "-c", f"echo run >> {count}; echo shown"], name="once")
            ).id
        )
        await asyncio.wait_for(pane.exited(), 20)
        await house.service.sessions.save_session("ended")
        await house.service.sessions.restore_session("ended", instead=True)
        assert "shown" in (await house.service.screen.get_raw_text("once", True)).text
        assert (await house.service.commands.execute("echo a shell", "once")).stdout == "a shell"
        assert count.read_text() == "run\n"
