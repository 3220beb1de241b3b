"""Panes for tests: a home of their own, ended with the test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dari.process.spawner import Spawner
from dari.terminal.panes.pane import Pane


@asynccontextmanager
async def pane_in(home: Path, shell: str = "bash", command: Sequence[str] = (), **options: Any) -> AsyncIterator[Pane]:
    env = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"), "XDG_DATA_HOME": str(home / "data")}
    env |= {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/games", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    env |= options.pop("env", {})
    (home / ".zshrc").touch()  # without one, zsh asks everybody but root to set it up
    async with Spawner() as keepers:
        pane = await Pane.open(
            keepers, "1", shell=shell, command=command, cwd=options.pop("cwd", str(home)), env=env, **options
        )
        try:
            yield pane
        finally:
            await pane.close(force=True)
