"""Workspaces: the presets of the design and files of one's own, opened with their commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from dari.errors import Conflict, Denied, InvalidInput, NotFound
from dari.terminal.policy.config import Security
from tests.support.terminal_service import house_in
from tests.support.terminal_tools import client_in
from tests.support.waiting import until

OWN = """
description = "mine"
[layout]
split = "horizontal"
[[layout.parts]]
pane = "left"
size = "30%"
[[layout.parts]]
split = "vertical"
parts = [{ pane = "top" }, { pane = "bottom", size = 10 }]
[panes.left]
command = "echo \\"$WORD\\" > said"
cwd = "inner"
env = { WORD = "a 'quoted' word" }
title = "The left one"
[panes.bottom]
focus = true
"""


@pytest.mark.parametrize(
    ("name", "panes"),
    [
        ("debug-session", 3),
        ("full-stack", 4),
        ("agent-team-3", 3),
        ("monitoring", 3),
    ],
)
async def test_the_presets_of_the_design_open_named_panes_in_one_window(name: str, panes: int, tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        await client.call("crux_create_pane", name="mine")
        done = await client.call("crux_load_workspace", name=name, cwd=str(tmp_path), run=False)
        assert (done["success"], done["workspace"], len(done["panes"])) == (True, name, panes)
        listed = (await client.call("crux_list_panes"))["panes"]
        opened = [pane for pane in listed if pane["window_id"] == done["window_id"]]
        assert {pane["name"] for pane in opened} == {pane["name"] for pane in done["panes"]}
        assert all(pane["cwd"] == str(tmp_path) for pane in opened)
        areas = [(pane["left"], pane["top"]) for pane in opened]
        assert len(set(areas)) == panes
        assert sum(pane["cols"] * pane["rows"] for pane in opened) > 200 * 50 * 0.9
        assert [pane["id"] for pane in opened if pane["is_focused"]] == [done["focused"]]
        assert next(pane for pane in listed if pane["name"] == "mine")["window_id"] != done["window_id"]


async def test_a_pane_is_found_by_its_name_afterwards(tmp_path: Path) -> None:
    async with client_in(tmp_path) as client:
        await client.call("crux_load_workspace", name="agent-team-3", run=False)
        done = await client.call("crux_execute_command", pane_id="worker-2", command="echo hi")
        assert done["stdout"] == "hi"


async def test_a_file_of_ones_own_sets_layout_directory_variables_and_commands(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "workspaces").mkdir()
    (tmp_path / "workspaces" / "own.toml").write_text(OWN)
    async with house_in(tmp_path) as house:
        api = house.service.workspaces
        listed = {info.name: info for info in (await api.list_workspaces()).workspaces}
        assert (listed["own"].source, listed["own"].panes) == ("user", ["left", "top", "bottom"])
        assert listed["full-stack"].source == "built-in"
        done = await api.load_workspace("own", str(tmp_path))
        await until(lambda: (tmp_path / "inner" / "said").exists() and bool((tmp_path / "inner" / "said").read_text()))
        assert (tmp_path / "inner" / "said").read_text() == "a 'quoted' word\n"
        left, top, bottom = (await house.service.panes.list_panes()).panes
        assert (left.title, left.cols, bottom.rows) == ("The left one", 59, 10)
        assert top.left == bottom.left == left.cols + 1
        assert done.focused == bottom.id


async def test_commands_can_be_given_with_the_call(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        api = house.service.workspaces
        done = await api.load_workspace("agent-team-3", str(tmp_path), commands={"leader": "touch led"})
        await until((tmp_path / "led").exists)
        assert [pane.command for pane in done.panes] == ["touch led", "", ""]
        with pytest.raises(InvalidInput) as wrong:
            await api.load_workspace("full-stack", commands={"nobody": "true"})
        assert "frontend" in wrong.value.hint


async def test_names_that_are_open_already_are_a_conflict_unless_replaced(tmp_path: Path) -> None:
    async with house_in(tmp_path) as house:
        api = house.service.workspaces
        first = await api.load_workspace("agent-team-3", run=False)
        with pytest.raises(Conflict):
            await api.load_workspace("agent-team-3", run=False)
        second = await api.load_workspace("agent-team-3", run=False, replace=True)
        now = [pane.id for pane in (await house.service.panes.list_panes()).panes]
        assert sorted(now) == sorted(pane.id for pane in second.panes)
        assert not {pane.id for pane in first.panes} & set(now)


async def test_nothing_is_opened_when_something_is_refused(tmp_path: Path) -> None:
    async with house_in(tmp_path, Security(max_panes=3, denied_patterns=("halt",))) as house:
        api = house.service.workspaces
        with pytest.raises(Denied):
            await api.load_workspace("agent-team-3", commands={"worker-1": "touch ran", "worker-2": "halt"})
        with pytest.raises(Conflict):
            await api.load_workspace("full-stack", run=False)
        with pytest.raises(InvalidInput):
            await api.load_workspace("agent-team-3", str(tmp_path / "missing"))
        with pytest.raises(NotFound) as unknown:
            await api.load_workspace("no-such-workspace")
        assert "full-stack" in unknown.value.hint
        assert not house.multiplexer.panes
        assert not (tmp_path / "ran").exists()


async def test_dangerous_commands_and_variables_are_asked_about_together(tmp_path: Path) -> None:
    path = tmp_path / "risky.toml"
    path.write_text(
        'arrange = "tiled"\norder = ["a", "b"]\n[panes.a]\ncommand = "sudo -n true"\n'
        '[panes.b]\ncommand = "rm -f gone"\nenv = { LD_PRELOAD = "x.so" }\n'
    )
    (tmp_path / "gone").touch()
    async with client_in(tmp_path) as client:
        error = (await client.call("crux_load_workspace", name=str(path)))["error"]
        assert error["name"] == "needs_approval"
        for part in ("sudo -n true", "rm -f gone", "LD_PRELOAD"):
            assert part in error["message"]
    path.write_text(path.read_text().replace('env = { LD_PRELOAD = "x.so" }\n', ""))
    async with client_in(tmp_path, answer={"action": "accept", "content": {"run": True}}) as client:
        done = await client.call("crux_load_workspace", name=str(path), cwd=str(tmp_path))
        assert done["success"]
        assert len(client.questions) == 1
        await until(lambda: not (tmp_path / "gone").exists())
