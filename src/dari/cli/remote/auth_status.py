"""`auth-status`: who is logged in where, and for how long."""

from __future__ import annotations

import argparse
import time
from datetime import datetime
from typing import Any

from dari.bridge.oauth.login import Login
from dari.cli.remote.logins import store_of
from dari.cli.remote.payloads import print_json, print_table
from dari.cli.remote.world import World

NAME = "auth-status"
HELP = "show the logins that are kept on this machine"
DESCRIPTION = """\
Show the logins that are kept on this machine. States: valid · renews (ended, a new token is fetched by itself) ·
ended (log in again). No server and no keyring is asked."""
EXAMPLES = (("auth-status", "a table"), ("auth-status --json", "for a script; nothing in it is secret"))


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the list alone, as JSON")


async def run(arguments: argparse.Namespace, world: World) -> int:
    logins = [_shown(login) for login in store_of(world).all()]
    if arguments.json:
        print_json(world.terminal, logins)
    elif logins:
        rows = [(one["server"], one["state"], one["until"] or "-", one["kept_in"], one["url"]) for one in logins]
        print_table(world.terminal, ("SERVER", "STATE", "UNTIL", "KEPT IN", "ADDRESS"), rows)
    else:
        world.say("nobody is logged in anywhere")
        world.note(f"hint: {world.program} login ID")
    return 0


def _shown(login: Login) -> dict[str, Any]:
    until = login.expires_unix
    return {
        "server": login.profile,
        "url": login.url,
        "state": state_of(login, time.time()),
        "until": "" if until is None else datetime.fromtimestamp(until).astimezone().isoformat(timespec="seconds"),
        "renews": login.can_refresh,
        "scope": login.scope,
        "issuer": login.issuer,
        "grant": login.grant,
        "kept_in": login.place,
    }


def state_of(login: Login, now_unix: float) -> str:
    if login.has_tokens and not login.is_expired(now_unix):
        return "valid"
    return "renews" if login.can_refresh or login.grant == "client_credentials" else "ended"
