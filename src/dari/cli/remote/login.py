"""`login`: a person allows us to use an HTTP server on their behalf (OAuth 2.1)."""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
from collections.abc import Mapping
from typing import cast

from dari.bridge.config.profile import HttpSettings, Profile
from dari.bridge.oauth.store import KeptLogin
from dari.bridge.upstream.oauth import oauth_for
from dari.bridge.upstream.opening import Opening
from dari.cli.remote.consent import recorder
from dari.cli.remote.logins import kept_login, oauth_server
from dari.cli.remote.sheets import plain
from dari.cli.remote.world import World
from dari.errors import DariError
from dari.mcp.client.client import Client
from dari.mcp.client.oauth import OAuth
from dari.transport.connect import ClientOptions

NAME = "login"
HELP = "log in to a server that asks for OAuth"
DESCRIPTION = """\
Log in to an HTTP server that asks for OAuth. You get an address to open in a browser; when you have allowed the
access, the browser comes back to this machine and the command ends. Where the browser runs on another machine, paste
the address that it ended up at. Tokens are kept in the system's keyring where there is one, else in a file that only
you may read, and are renewed by themselves."""
EXAMPLES = (
    ("login notes", "print the address, wait up to 5 minutes for the answer"),
    ("login notes --browser", "open it in the browser of this desktop"),
    ("login notes --again", "forget the tokens first: another account, or more rights"),
)
OPEN_S = 10.0


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="the name of the server")
    parser.add_argument("--browser", action="store_true", help="open the address in a browser here")
    parser.add_argument("--again", action="store_true", help="drop the tokens that are kept, and log in anew")


async def run(arguments: argparse.Namespace, world: World) -> int:
    upstream = oauth_server(world, arguments.id)
    connection = cast(HttpSettings, upstream.profile.connection)
    kept = kept_login(world, upstream)
    record = recorder(world)
    if arguments.again:
        await _drop_tokens(kept)
    person = LoginPerson(world, opens_browser=arguments.browser)

    def make_oauth(profile: Profile, url: str) -> OAuth | None:
        return oauth_for(profile, url, home=world.bridge.home, interact=person)

    opening = Opening(upstream.target, lambda: world.bridge.children, make_oauth)
    options: ClientOptions = {"open_timeout_s": upstream.profile.init_timeout_ms / 1000}
    session = await opening.http(connection.url, None, None, options)
    try:
        tools = await _count_tools(session.client)
    finally:
        await session.close()
    login = kept.peek()
    name = plain(upstream.id)
    if not person.was_asked:
        known = login is not None and login.has_tokens
        world.say(f"already logged in to '{name}'" if known else f"'{name}' asks for no login")
    else:
        record("login", server=upstream.id)
        place = "the keyring" if login is not None and login.place == "keyring" else "a file that only you may read"
        world.say(f"logged in to '{name}'; the tokens are in {place}")
        await world.bridge.stop_server(upstream.id)  # sessions that were refused start anew
    if tools is not None:
        world.note(f"it has {tools} tools: {world.program} list-tools --server {upstream.id}")
    return 0


class LoginPerson:
    """The person at this command's terminal."""

    can_ask = True

    def __init__(self, world: World, *, opens_browser: bool) -> None:
        self.was_asked = False
        self._world = world
        self._opens_browser = opens_browser

    async def show(self, url: str, redirect_url: str) -> None:
        world = self._world
        self.was_asked = True
        if self._opens_browser and await open_browser(url, world.view.around.environ):
            world.note("the browser opens; if it does not, this is the address:")
        else:
            world.note("open this address in a browser and allow the access:")
        world.terminal.err(f"\n  {plain(url)}\n\n")
        await world.terminal.drain()

    async def pasted(self, complaint: str) -> str:
        world = self._world
        if not world.terminal.stdin_is_tty:
            never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            return await never
        if complaint:
            world.warn(complaint)
        try:
            return await world.terminal.ask("waiting for the browser; or paste the address that it ended up at: ")
        except asyncio.CancelledError:
            world.terminal.err("\n")  # the browser was faster: leave the line of the question
            raise


async def open_browser(url: str, environ: Mapping[str, str]) -> bool:
    """In a process with the person's environment: ours may have another display, or none."""
    if sys.platform == "linux" and not any(environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")):
        return False
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "webbrowser", url),
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(OPEN_S):
            return await process.wait() == 0
    except TimeoutError:
        return True  # it is the browser itself that runs
    finally:
        if process.returncode is None:
            process.terminate()


async def _drop_tokens(kept: KeptLogin) -> None:
    async with kept.turn(OPEN_S):
        login = await kept.load()
        if login is not None:
            login.drop_tokens()
            await kept.save(login)


async def _count_tools(client: Client) -> int | None:
    try:
        return len(await client.list_tools())
    except DariError:
        return None  # the login is what counts here
