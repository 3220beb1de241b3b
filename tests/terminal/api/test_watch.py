"""A person at a pane on a page: taking over and handing back, who typed what, history, search, commands."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dari.daemon.caller_scopes import CallerIdentity, pass_on_call_of, serve_caller
from dari.daemon.person import user_name
from dari.daemon.tokens import APP
from dari.errors import Conflict, DariError, InvalidInput, NotFound
from dari.terminal import take_over
from dari.terminal.api import watch as watch_module
from dari.terminal.api.watch import TypedPiece
from dari.terminal.multiplexer import PaneRenamed
from dari.terminal.take_over import Typist
from dari.terminal.viewers.pane_screen import CommandBlock, to_block
from tests.support.terminal_service import House, house_in

ENTER = TypedPiece(key="Enter")


@contextmanager
def by_person() -> Iterator[None]:
    """As the hub calls for a page: a process that no agent started."""
    with serve_caller(CallerIdentity("app", frozenset(APP.scopes), os.getpid(), is_vouched_for=True)):
        yield


@contextmanager
def by_thief() -> Iterator[None]:
    """A program in a pane that has read the token of the console; the kernel says which process it is."""
    with serve_caller(CallerIdentity("app", frozenset(APP.scopes), 2**22 + 1)):
        yield


async def _ended(house: House, pane: str, command: str) -> CommandBlock:
    frame = await house.service.watch.watch(pane)
    async with asyncio.timeout(20):
        while True:
            for block in frame.blocks:
                if block.command == command and not block.is_running:
                    return block
            frame = await house.service.watch.watch(pane, frame.version)


async def test_a_person_takes_over_types_and_hands_back_and_agents_are_refused_meanwhile(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        watch, commands = house.service.watch, house.service.commands
        with pass_on_call_of("mcp:claude"):
            pane = (await commands.execute("true", timeout_s=20)).pane_id
        with by_person():
            held = await watch.take_over(pane)
            assert held.holder is not None
            assert (held.holder.kind, held.holder.place) == ("person", "console")
            await watch.type_pieces(pane, [TypedPiece(text="echo by-ha"), TypedPiece(paste="nd"), ENTER])
        assert (await _ended(house, pane, "echo by-hand")).exit_code == 0
        with pass_on_call_of("mcp:claude"):
            for refused in (
                commands.execute("echo no", pane),
                commands.send_text("no", pane),
                commands.send_keys("C-c", pane),
                house.service.panes.close_pane(pane),
            ):
                with pytest.raises(Conflict) as error:
                    await refused
                assert "taken pane 1 over" in error.value.message
                assert "handed back" in error.value.hint
        assert "by-hand" in (await house.service.screen.get_output(pane)).text
        assert (await house.service.screen.get_pane_state(pane)).taken_over_by == user_name()
        with by_person():
            await watch.hand_back(pane)
        with pass_on_call_of("mcp:claude"):
            assert (await commands.execute("echo again", pane)).stdout.strip() == "again"


async def test_commands_tell_who_typed_them(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        watch = house.service.watch
        with pass_on_call_of("mcp:claude\u202e"):
            pane = (await house.service.commands.execute("exit_with() { return $1; }; exit_with 4")).pane_id
        with pass_on_call_of("mcp:codex"):
            await house.service.commands.send_text("ec", pane)
        with by_person():
            await watch.take_over(pane)
            await watch.type_pieces(pane, [TypedPiece(text="ho both"), ENTER])
        both = await _ended(house, pane, "echo both")
        assert both.typists[0].name == "codex"
        assert [each.kind for each in both.typists] == ["agent", "person"]
        first = await _ended(house, pane, "exit_with() { return $1; }; exit_with 4")
        assert first.exit_code == 4
        assert [(each.kind, each.name) for each in first.typists] == [("agent", "claude<U+202E>")]
        assert first.duration_ms > 0
        assert first.cwd


async def test_nothing_is_typed_by_a_page_that_has_not_taken_over(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        pane = (await house.service.panes.spawn_pane()).id
        with by_person(), pytest.raises(Conflict, match="not taken over"):
            await house.service.watch.type_pieces(pane, [TypedPiece(text="x")])
        with by_person(), pytest.raises(Conflict, match="not taken over"):
            await house.service.watch.use_mouse(pane, "press", "left", 0, 0)


def test_a_client_does_not_get_the_name_of_a_token_by_calling_itself_so() -> None:
    assert take_over.name_agent("mcp:x@claude-code") == Typist("agent", "x@claude-code")
    assert take_over.name_agent("mcp@claude-code:x") == Typist("agent", "claude-code", "x")


async def test_an_agent_cannot_take_over(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        pane = (await house.service.panes.spawn_pane()).id
        with serve_caller(CallerIdentity("mcp", frozenset(("read", "control")), None)), pytest.raises(Conflict):
            await house.service.watch.take_over(pane)


async def test_the_consoles_token_alone_makes_nobody_a_person(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        watch, pane = house.service.watch, (await house.service.panes.spawn_pane()).id
        with by_thief(), pytest.raises(Conflict, match="an agent cannot"):
            await watch.take_over(pane)
        with by_person():
            await watch.take_over(pane)
        with by_thief():
            for refused in (
                watch.type_pieces(pane, [TypedPiece(text="x")]),
                watch.hand_back(pane),
                house.service.panes.close_pane(pane),
            ):
                with pytest.raises(Conflict, match="taken pane 1 over"):
                    await refused
        assert (await house.service.screen.get_pane_state(pane)).taken_over_by


async def test_a_pane_that_nobody_types_in_is_handed_back_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(take_over, "HOLD_S", 0.0)
    async with house_in(tmp_path) as house:
        pane = (await house.service.panes.spawn_pane()).id
        with by_person():
            await house.service.watch.take_over(pane)
        with pass_on_call_of("mcp:claude"):
            assert (await house.service.commands.execute("echo mine", pane)).exit_code == 0


async def test_keys_are_encoded_as_the_program_wants_them(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        script = tmp_path / "keys.sh"
        script.write_text("stty raw -echo; printf '\\033[?1hready'; head -c 9 | od -An -c; sleep 100")
        pane = (await house.service.scripts.open_pane(["sh", str(script)], where="window")).id
        await house.service.commands.wait_for("ready", pane, timeout_s=20)
        with by_person():
            await house.service.watch.take_over(pane)
            pieces = [TypedPiece(key="Up"), TypedPiece(key="C-c"), TypedPiece(key="S-Tab"), TypedPiece(text="é")]
            await house.service.watch.type_pieces(pane, pieces)
        found = await house.service.commands.wait_for(r"033\s+O\s+A\s+003\s+033\s+\[\s+Z", pane, timeout_s=20, since=0)
        assert found.matched


async def test_the_wheel_moves_a_pager_and_a_mouse_program_gets_reports(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        script = tmp_path / "pager.sh"
        script.write_text("stty raw -echo; printf '\\033[?1049hready'; head -c 9 | od -An -c; sleep 100")
        pane = (await house.service.scripts.open_pane(["sh", str(script)], where="window")).id
        await house.service.commands.wait_for("ready", pane, timeout_s=20)
        with by_person():
            await house.service.watch.take_over(pane)
            await house.service.watch.use_mouse(pane, "press", "wheel_up", 1, 1)
        found = await house.service.commands.wait_for(r"033\s+\[\s+A\s+033\s+\[\s+A", pane, timeout_s=20, since=0)
        assert found.matched


async def test_history_is_read_by_rows_and_rows_that_came_since_are_allowed_for(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        watch = house.service.watch
        pane = (await house.service.commands.execute("seq 1 200")).pane_id
        before = await watch.styled_rows(pane, -20, 5)
        assert len(before.rows) == 5
        await house.service.commands.execute("seq 1 30", pane)
        after = await watch.styled_rows(pane, -20, 5, before.history)
        assert after.history > before.history
        assert after.rows == before.rows
        assert (await watch.styled_rows(pane, -(10**6), 3)).rows == []
        with pytest.raises(InvalidInput, match="between 1 and 2000"):
            await watch.styled_rows(pane, 0, 5000)


async def test_the_history_is_searched_newest_first(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        watch = house.service.watch
        pane = (await house.service.commands.execute("seq 1 120; echo Needle; seq 1 90")).pane_id
        hits = (await watch.search_rows(pane, "needle")).hits
        assert hits[0].text == "Needle"
        row = (await watch.styled_rows(pane, hits[0].row, 1)).rows[0]
        assert row == "Needle"
        assert not (await watch.search_rows(pane, "NEEDLE")).hits
        assert (await watch.search_rows(pane, r"^N.*e$", True)).hits
        with pytest.raises(InvalidInput):
            await watch.search_rows(pane, "(", True)
        with pytest.raises(InvalidInput):
            await watch.search_rows(pane, "")


async def test_a_command_has_its_output_and_its_row(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        watch = house.service.watch
        ran = await house.service.commands.execute("echo one; false")
        await house.service.commands.execute("seq 1 100", ran.pane_id)
        found = await watch.command_block(ran.command_id)
        assert (found.output.strip(), found.block.exit_code) == ("one", 1)
        assert found.row is not None
        assert "echo one" in (await watch.styled_rows(ran.pane_id, found.row, 1)).rows[0]
        for unknown in ("9:cmd-1", "nonsense", f"{ran.pane_id}:cmd-99"):
            with pytest.raises(NotFound):
                await watch.command_block(unknown)


async def test_the_list_of_panes_tells_what_runs_and_who_has_it(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        watch = house.service.watch
        with pass_on_call_of("mcp:claude"):
            pane = (await house.service.follow.start("sleep 1000")).pane_id
        async with asyncio.timeout(20):
            roster = await watch.roster()
            while roster.panes[0].running is None or not roster.panes[0].running.typists:
                roster = await watch.roster(roster.version, 1.0)
        assert roster.panes[0].running.command == "sleep 1000"
        assert roster.panes[0].running.typists[0].name == "claude"
        waiting = asyncio.create_task(watch.roster(roster.version))
        with by_person():
            await watch.take_over(pane)
        held = (await asyncio.wait_for(waiting, 20)).panes[0]
        assert held.holder is not None


async def test_an_agent_ends_no_pane_at_all_where_one_of_them_is_a_persons(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        service = house.service
        opened = [pane.id for pane in (await service.workspaces.load_workspace("agent-team-3", run=False)).panes]
        with by_person():
            await service.watch.take_over(opened[0])
        with serve_caller(CallerIdentity("mcp", frozenset(("read", "control", "admin")), None)):
            for refused in (
                service.workspaces.load_workspace("agent-team-3", run=False, replace=True),
                service.server.kill(),
            ):
                with pytest.raises(Conflict, match="over and types in it"):
                    await refused
        assert {each.id for each in (await service.watch.roster()).panes} == set(opened)


async def test_a_person_may_close_what_they_have_taken_over(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        pane = (await house.service.panes.spawn_pane()).id
        with by_person():
            await house.service.watch.take_over(pane)
            await house.service.panes.close_pane(pane)
        with pytest.raises(DariError):
            await house.service.watch.watch(pane)


async def test_a_roster_is_gathered_also_for_a_page_that_is_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "ROSTER_GATHER_S", 1000.0)
    async with house_in(tmp_path) as house:
        watch, told = house.service.watch, house.multiplexer.changes
        start = (await watch.roster()).version
        told.publish(PaneRenamed("1"))
        behind = asyncio.create_task(watch.roster(start, 0.5))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not behind.done()
        told.publish(PaneRenamed("1"))
        assert (await behind).version == start + 2
        assert (await watch.roster()).version == start + 2, "0 is answered at once"


async def test_a_command_says_whether_it_is_shown_as_it_was_run(tmp_path: Path) -> None:
    """What a page runs again must be the command, and not its beginning or a picture of it."""
    async with house_in(tmp_path) as house:
        pane = await house.multiplexer.find_or_open()
        for command in ("echo plain", "echo two\necho lines", "echo " + "x" * 2000, "echo a\u200bb", "echo a\r\n"):
            await pane.execute(command, 20)
        shown = [to_block(pane, record) for record in pane.commands.records]
        exact = [block.is_exact for block in shown]
        assert exact[:2] == [True, True]
        assert exact[2:4] == [False, False]
        for block, record in zip(shown, pane.commands.records, strict=True):
            assert block.is_exact == (block.command == record.command)
