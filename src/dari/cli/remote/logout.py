"""`logout`: forget the tokens of a server."""

from __future__ import annotations

import argparse

from dari.cli.remote.consent import recorder
from dari.cli.remote.logins import kept_login, oauth_server
from dari.cli.remote.sheets import plain
from dari.cli.remote.world import World
from dari.errors import NotFound

NAME = "logout"
HELP = "forget the tokens of a server"
DESCRIPTION = """\
Remove the tokens and the registration of a server from this machine, keyring included, and end its sessions. The
authorization server is not told: to take the access back there as well, use its page of connected applications."""
EXAMPLES = (("logout notes", "the next call says to log in"),)
WAIT_S = 10.0


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="the name of the server")


async def run(arguments: argparse.Namespace, world: World) -> int:
    upstream = oauth_server(world, arguments.id)
    kept = kept_login(world, upstream)
    record = recorder(world)
    async with kept.turn(WAIT_S):
        was_there = await kept.remove()
    if not was_there:
        raise NotFound(f"nobody is logged in to '{plain(upstream.id)}'", f"see: {world.program} auth-status")
    record("logout", server=upstream.id)
    await world.bridge.stop_server(upstream.id)
    world.say(f"logged out of '{plain(upstream.id)}'")
    return 0
