"""What is told after a server was switched on or off."""

from __future__ import annotations

from pathlib import Path

from dari.cli.remote.sheets import plain
from dari.cli.remote.world import World


def tell_switched(world: World, id: str, what: str, path: Path) -> int:
    world.terminal.out(f"{what} '{plain(id)}' in {plain(path)}\n")
    listed = world.view.book.load().find(id)
    if listed.state == "untrusted":
        world.terminal.err(f"the file is not trusted, so nothing in it runs: {world.program} trust {plain(path)}\n")
    elif listed.state == "broken":
        world.terminal.err(f"it cannot be read, though: {plain(listed.message)}\n")
    return 0
