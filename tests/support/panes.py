"""Panes for tests: a home of their own, ended with the test."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dari.process.spawner import Spawner
from dari.terminal.panes.pane import Pane
from tests.support.waiting import until


@asynccontextmanager
async def pane_in(home: Path, shell: str = "bash", command: Sequence[str] = (), **options: Any) -> AsyncIterator[Pane]:
    env = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"), "XDG_DATA_HOME": str(home / "data")}
    env |= {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/games", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    env |= options.pop("env", {})
    (home / ".zshrc").touch()  # without one, zsh asks everybody but root to set it up
    fill_fish_data(home / "data")
    async with Spawner() as keepers:
        pane = await Pane.open(
            keepers, "1", shell=shell, command=command, cwd=options.pop("cwd", str(home)), env=env, **options
        )
        try:
            yield pane
        finally:
            await pane.close(force=True)


def fill_fish_data(folder: Path) -> None:
    """A fish that finds this in its data reads no manual: in a new home it makes completions of every page, which takes
    half a minute of a processor."""
    (folder / "fish" / "generated_completions").mkdir(parents=True, exist_ok=True)


class Gate:
    """A program waits here until it is let on: `command` is what it runs, `reached` returns once it has."""

    def __init__(self, folder: Path) -> None:
        self._fifo = folder / "gate"
        os.mkfifo(self._fifo)
        self.command = f"cat {self._fifo}"
        self._opened = -1

    async def reached(self) -> None:
        await until(self._open, lambda: f"nobody reads {self._fifo}")

    def _open(self) -> bool:
        try:
            self._opened = os.open(self._fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # ENXIO: nobody reads
            return False
        return True

    def let_on(self, says: str = "") -> None:
        os.write(self._opened, says.encode())
        os.close(self._opened)

    def hold_start(self, home: Path) -> dict[str, str]:
        """Every shell of that home waits here in its start files; variables to start it with."""
        files = (".bashrc", ".zshrc", ".shrc", "config/fish/config.fish")
        for path in map(home.joinpath, files):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{self.command}\n")
        return {"ENV": str(home / ".shrc")}
