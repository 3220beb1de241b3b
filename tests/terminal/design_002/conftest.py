"""One daemon for all of design 002, in a home of its own with the programs of the design's examples."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.terminal_clients import Terminal, terminal
from tests.terminal.design_002.programs import PROGRAMS

HERE = str(Path(__file__).parent) + os.sep


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All on one worker: they share the daemon."""
    for item in items:
        if str(item.path).startswith(HERE):  # 20,000 of them: `Path.parents` takes a second for each worker
            item.add_marker(pytest.mark.xdist_group("design_002"))


@pytest.fixture(scope="session")
def crux() -> Iterator[Terminal]:
    with terminal() as made:
        (made.path / ".bashrc").write_text("PS1='$ '; PATH=$HOME/bin:$PATH\n")
        (made.path / "bin").mkdir()
        for name, text in PROGRAMS.items():
            (made.path / "bin" / name).write_text(text)
            (made.path / "bin" / name).chmod(0o755)
        yield made


@pytest.fixture(scope="session")
def line(crux: Terminal) -> Iterator[Any]:
    """A client of the whole run, for `client`."""
    with crux.client() as connection:
        connection.main = connection.call("crux_create_pane", name="main", cwd=str(crux.path))["id"]  # type: ignore[attr-defined]
        yield connection


@pytest.fixture
def client(line: Any) -> Iterator[Any]:
    """A client with one pane, `main`, which is focused and at its prompt, 200×50. What a test opens is closed."""
    line.notes.clear()
    yield line
    for pane in line.call("crux_list_panes")["panes"]:
        if pane["id"] != line.main:
            line.call("crux_close_pane", pane_id=pane["id"])
    line.call("crux_focus_pane", pane_id=line.main)
    line.call("crux_resize_pane", cols=200, rows=50)
    cleared = line.result("crux_execute_command", command="cd; clear")
    if cleared.get("isError"):  # the test failed while something ran there: the next one gets a pane of its own
        line.call("crux_close_pane", pane_id=line.main)
        line.main = line.call("crux_create_pane", name="main")["id"]
