"""Snapshots: everything that is open, brought back in another server."""

from __future__ import annotations

from pathlib import Path

import pytest

from dari.errors import Conflict, NeedsApproval, NotFound
from dari.terminal.api import sessions
from tests.support.terminal_service import House, house_in
from tests.support.terminal_tools import client_in
from tests.support.waiting import until

COUNTING = "touch started; while :; do sleep 0.05; done"


async def fill(house: House, home: Path) -> None:
    """Two panes side by side and one below: with text, a directory, a variable, and a program that runs."""
    (home / "deep" / "er").mkdir(parents=True)
    panes, commands = house.service.panes, house.service.commands
    await panes.spawn_pane(name="first")
    await commands.execute("seq 1 300")
    await commands.execute("cd deep/er; export KEPT='a b'; echo last words")
    await panes.spawn_pane("horizontal", name="second")
    await commands.execute("echo in the second")
    await panes.spawn_pane("vertical", name="third", cwd=str(home))
    await commands.execute(COUNTING, timeout_s=0.2)
    await until((home / "started").exists)


async def test_layout_screens_directories_and_variables_come_back(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await fill(house, tmp_path)
        before = {pane.name: pane for pane in (await house.service.panes.list_panes()).panes}
        taken = await house.service.snapshots.create("bug-42")
        assert (taken.snapshot_id, taken.panes) == ("bug-42", 3)
    async with house_in(tmp_path) as house:
        done = await house.service.snapshots.restore("bug-42")
        assert done.success
        after = {pane.name: pane for pane in (await house.service.panes.list_panes()).panes}
        for name, old in before.items():
            new = after[name]
            assert (new.left, new.top, new.cols, new.rows) == (old.left, old.top, old.cols, old.rows)
            assert (new.cwd, new.is_focused) == (old.cwd, old.is_focused)
        text = (await house.service.screen.get_raw_text("first", True)).text.split("\n")
        assert text.index("300") - text.index("1") == 299
        assert "last words" in text
        shown = await house.service.commands.execute('echo "$KEPT" in "$(basename "$PWD")"', "first")
        assert shown.stdout == "a b in er"
        await house.multiplexer.find("third").commands.ready(30)  # its shell is a new one: the loop did not come back
        assert (await house.service.screen.get_pane_state("third")).is_at_prompt


async def test_commands_run_again_only_when_asked(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await fill(house, tmp_path)
        await house.service.snapshots.create("run")
    (tmp_path / "started").unlink()
    async with house_in(tmp_path) as house:
        await house.service.snapshots.restore("run", commands=True)
        await until((tmp_path / "started").exists)
        assert (await house.service.screen.get_pane_state("third")).running_command == COUNTING


async def test_a_snapshot_taken_and_restored_in_place_replaces_what_is_open(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        await client.call("crux_execute_command", command="echo before")
        taken = await client.call("crux_create_snapshot")
        await client.call("crux_execute_command", command="clear; echo after")
        done = await client.call("crux_restore_snapshot", snapshot_id=taken["snapshot_id"], replace=True)
        assert (done["success"], len((await client.call("crux_list_panes"))["panes"])) == (True, 1)
        text = (await client.call("crux_get_raw_text"))["text"]
        assert "before" in text
        assert "after" not in text
        (listed,) = (await client.call("crux_list_snapshots"))["snapshots"]
        assert listed["snapshot_id"] == taken["snapshot_id"]


async def test_what_would_run_again_is_judged(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        await house.service.panes.spawn_pane()
        person = house.multiplexer.find()
        await person.commands.ready(10)
        await person.execute("sudo() { sleep 60; }; sudo true", 0.2)
        await house.service.snapshots.create("risky")
        with pytest.raises(NeedsApproval):
            await house.service.snapshots.restore("risky", commands=True)
        assert len(house.multiplexer.panes) == 1


async def test_snapshots_without_a_name_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_UNNAMED", 2)
    async with house_in(tmp_path) as house:
        api = house.service.snapshots
        with pytest.raises(Conflict):
            await api.create()
        await house.service.commands.execute("true")
        await api.create("named")
        taken = [(await api.create()).snapshot_id for _ in range(4)]
        kept = [info.snapshot_id for info in (await api.list_snapshots()).snapshots]
        assert sorted(kept) == sorted([*taken[2:], "named"])
        await api.remove("named")
        with pytest.raises(NotFound):
            await api.restore("named")
