"""What happens, and what is told, after a server was switched on or off."""

from __future__ import annotations

from pathlib import Path

from dari.cli.remote.sheets import plain
from dari.cli.remote.world import World


async def end_servers(world: World, path: Path, id: str | None = None) -> None:
    """What runs of this file, or of one server in it, ends now and not when it has been idle for a while."""
    for upstream in world.bridge.pool:
        if upstream.profile.source.file == str(path) and id in (None, upstream.id):
            await upstream.stop()


def tell_switched(world: World, id: str, what: str, path: Path) -> int:
    world.terminal.out(f"{what} '{plain(id)}' in {plain(path)}\n")
    listed = world.view.book.load().find(id)
    if listed.state == "untrusted":
        world.terminal.err(f"the file is not trusted, so nothing in it runs: {world.program} trust {plain(path)}\n")
    elif listed.state == "broken":
        world.terminal.err(f"it cannot be read, though: {plain(listed.message)}\n")
    return 0
