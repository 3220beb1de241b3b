"""`login`: a person allows us to use an HTTP server on their behalf (OAuth 2.1)."""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from dari.bridge.config.profile import HttpSettings, Profile
from dari.bridge.oauth.persistent import oauth_for
from dari.bridge.oauth.store import Login, LoginStore, StoredLogin
from dari.bridge.upstream.connect import UpstreamConnector
from dari.cli.kit.console import print_json
from dari.cli.kit.parser import Command
from dari.cli.kit.table import one_line, print_table
from dari.cli.remote.context import CommandContext, make_recorder, to_usage_error
from dari.errors import DariError, InvalidInput, NotFound
from dari.mcp.client.client import Client
from dari.mcp.client.oauth import OAuth
from dari.transport.connect import ClientOptions

if TYPE_CHECKING:
    from dari.bridge.upstream.upstream import Upstream


def open_login_store(context: CommandContext) -> LoginStore:
    return LoginStore(context.bridge.home)


def oauth_server(context: CommandContext, id: str) -> Upstream:
    """The server, if it is one that a person can log in to."""
    try:
        upstream = context.view.upstream(id)
    except DariError as error:
        raise to_usage_error(error) from None
    connection = upstream.profile.connection
    if not isinstance(connection, HttpSettings):
        raise InvalidInput(f"'{one_line(id)}' is a program on this machine and has no login", "give it a key in env")
    if connection.auth.type in ("bearer", "header"):
        raise InvalidInput(
            f"'{one_line(id)}' uses the key in {upstream.profile.source}",
            "to log in instead, remove apiKey (or auth) from the profile",
        )
    return upstream


def kept_login(context: CommandContext, upstream: Upstream) -> StoredLogin:
    connection = cast(HttpSettings, upstream.profile.connection)
    uses_keyring = connection.auth.uses_keyring
    return open_login_store(context).login(upstream.id, connection.url, uses_keyring=uses_keyring)


BROWSER_TIMEOUT_S = 10.0


def add_login(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="the name of the server")
    parser.add_argument("--browser", action="store_true", help="open the address in a browser here")
    parser.add_argument("--again", action="store_true", help="drop the tokens that are kept, and log in anew")


async def run_login(arguments: argparse.Namespace, context: CommandContext) -> int:
    upstream = oauth_server(context, arguments.id)
    connection = cast(HttpSettings, upstream.profile.connection)
    kept = kept_login(context, upstream)
    record = make_recorder(context)
    if arguments.again:
        await _drop_tokens(kept)
    person = LoginPerson(context, opens_browser=arguments.browser)

    def make_oauth(profile: Profile, url: str) -> OAuth | None:
        return oauth_for(profile, url, home=context.bridge.home, interact=person)

    opening = UpstreamConnector(upstream.target, lambda: context.bridge.children, make_oauth)
    options: ClientOptions = {"open_timeout_s": upstream.profile.init_timeout_ms / 1000}
    session = await opening.http(connection.url, None, None, options)
    try:
        tools = await _count_tools(session.client)
    finally:
        await session.close()
    login = kept.peek()
    name = one_line(upstream.id)
    if not person.was_asked:
        known = login is not None and login.has_tokens
        context.say(f"already logged in to '{name}'" if known else f"'{name}' asks for no login")
    else:
        record("login", server=upstream.id)
        place = "the keyring" if login is not None and login.place == "keyring" else "a file that only you may read"
        context.say(f"logged in to '{name}'; the tokens are in {place}")
        await context.bridge.stop_server(upstream.id)  # sessions that were refused start anew
    if tools is not None:
        context.note(f"it has {tools} tools: {context.program} list-tools --server {upstream.id}")
    return 0


class LoginPerson:
    """The person at this command's terminal."""

    can_ask = True

    def __init__(self, context: CommandContext, *, opens_browser: bool) -> None:
        self.was_asked = False
        self._context = context
        self._opens_browser = opens_browser

    async def show(self, url: str, redirect_url: str) -> None:
        context = self._context
        self.was_asked = True
        if self._opens_browser and await open_browser(url, context.view.around.environ):
            context.note("the browser opens; if it does not, this is the address:")
        else:
            context.note("open this address in a browser and allow the access:")
        context.console.err(f"\n  {one_line(url)}\n\n")
        await context.console.drain()

    async def pasted(self, complaint: str) -> str:
        context = self._context
        if not context.console.stdin_is_tty:
            never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            return await never
        if complaint:
            context.warn(complaint)
        try:
            return await context.console.ask("waiting for the browser; or paste the address that it ended up at: ")
        except asyncio.CancelledError:
            context.console.err("\n")  # the browser was faster: leave the line of the question
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
        async with asyncio.timeout(BROWSER_TIMEOUT_S):
            return await process.wait() == 0
    except TimeoutError:
        return True  # it is the browser itself that runs
    finally:
        if process.returncode is None:
            process.terminate()


async def _drop_tokens(kept: StoredLogin) -> None:
    async with kept.turn(BROWSER_TIMEOUT_S):
        login = await kept.load()
        if login is not None:
            login.drop_tokens()
            await kept.save(login)


async def _count_tools(client: Client) -> int | None:
    try:
        return len(await client.list_tools())
    except DariError:
        return None  # the login is what counts here


LOGOUT_TIMEOUT_S = 10.0


def add_logout(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="the name of the server")


async def run_logout(arguments: argparse.Namespace, context: CommandContext) -> int:
    upstream = oauth_server(context, arguments.id)
    kept = kept_login(context, upstream)
    record = make_recorder(context)
    async with kept.turn(LOGOUT_TIMEOUT_S):
        was_there = await kept.remove()
    if not was_there:
        raise NotFound(f"no login to '{one_line(upstream.id)}' is stored", f"see: {context.program} auth-status")
    record("logout", server=upstream.id)
    await context.bridge.stop_server(upstream.id)
    context.say(f"logged out of '{one_line(upstream.id)}'")
    return 0


def add_auth_status(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the list alone, as JSON")


async def run_auth_status(arguments: argparse.Namespace, context: CommandContext) -> int:
    logins = [_shown(login) for login in open_login_store(context).all()]
    if arguments.json:
        print_json(context.console, logins)
    elif logins:
        rows = [(one["server"], one["state"], one["until"] or "-", one["kept_in"], one["url"]) for one in logins]
        print_table(context.console, ("SERVER", "STATE", "UNTIL", "KEPT IN", "ADDRESS"), rows)
    else:
        context.say("no logins are stored")
        context.note(f"hint: {context.program} login ID")
    return 0


def _shown(login: Login) -> dict[str, Any]:
    until = login.expires_unix
    return {
        "server": login.profile,
        "url": login.url,
        "state": login_state(login, time.time()),
        "until": "" if until is None else datetime.fromtimestamp(until).astimezone().isoformat(timespec="seconds"),
        "renews": login.can_refresh,
        "scope": login.scope,
        "issuer": login.issuer,
        "grant": login.grant,
        "kept_in": login.place,
    }


def login_state(login: Login, now_unix: float) -> str:
    if login.has_tokens and not login.is_expired(now_unix):
        return "valid"
    return "renews" if login.can_refresh or login.grant == "client_credentials" else "ended"


COMMANDS = (
    Command(
        "login",
        "log in to a server that asks for OAuth",
        add_login,
        run_login,
        description="""\
Log in to an HTTP server that asks for OAuth. You get an address to open in a browser; when you have allowed the
access, the browser comes back to this machine and the command ends. Where the browser runs on another machine, paste
the address that it ended up at. Tokens are kept in the system's keyring where there is one, else in a file that only
you may read, and are renewed by themselves.""",
        examples=(
            ("login notes", "print the address, wait up to 5 minutes for the answer"),
            ("login notes --browser", "open it in the browser of this desktop"),
            ("login notes --again", "forget the tokens first: another account, or more rights"),
        ),
    ),
    Command(
        "logout",
        "forget the tokens of a server",
        add_logout,
        run_logout,
        description="""\
Remove the tokens and the registration of a server from this machine, keyring included, and end its sessions. The
authorization server does not hear of it: to revoke the access there, use its page of connected applications.""",
        examples=(("logout notes", "the next call says to log in"),),
    ),
    Command(
        "auth-status",
        "show the logins that are kept on this machine",
        add_auth_status,
        run_auth_status,
        description="""\
Show the logins that are kept on this machine. States: valid · renews (ended, a new token is fetched by itself) ·
ended (log in again). No server and no keyring is asked.""",
        examples=(("auth-status", "a table"), ("auth-status --json", "for a script; nothing in it is secret")),
    ),
)
