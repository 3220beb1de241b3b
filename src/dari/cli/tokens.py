"""`dari tokens`: one token for each client (agent), made, shown, replaced and taken away by a person.

A hub that runs does the work; without one it is done on the files. Either way a secret is given to a person's terminal
alone: panes, servers that we run, and what runs below an agent's host are refused.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeVar

from dari.cli.kit.console import Output
from dari.cli.kit.program import ProgramParser
from dari.cli.kit.table import format_table
from dari.core.hub_client import hub_client
from dari.core.scopes import ALL_SCOPES, MCP_SCOPES, READ
from dari.daemon.caller_scopes import require_person, serve_own_process
from dari.daemon.person import user_name
from dari.daemon.stub import make_stub
from dari.errors import Unavailable
from dari.transport.token_service import TokenEntry, TokenSecret, TokenService

_EPILOG = """\
examples:
  dari tokens                              the tokens there are, with their scopes and last use
  dari tokens create claude-code           make one and print it
  dari tokens create ci --read-only        one that may look and change nothing
  dari tokens show claude-code             print it again
  dari tokens rotate claude-code           a new secret; the old one and its sessions end at once
  dari tokens revoke claude-code           take it away; its sessions, streams and calls end at once

  claude mcp add --transport http dari http://127.0.0.1:3847/mcp \\
    --header "Authorization: Bearer $(dari tokens show claude-code)"

guide: docs/guide/tokens.md
"""
T = TypeVar("T")


def make_parser() -> argparse.ArgumentParser:
    parser = ProgramParser(
        prog="dari tokens",
        description="Tokens of single clients for the HTTP endpoint of `dari up`, so that records name the agent and "
        "one can be taken away alone.",
        epilog=_EPILOG,
    )
    parser.add_argument("verb", choices=("list", "create", "show", "rotate", "revoke"), nargs="?", default="list")
    parser.add_argument(
        "name", metavar="NAME", nargs="?", default="", help="of the client; `shared`: that of mcp.token"
    )
    parser.add_argument("--read-only", action="store_true", help="create: only tools that change nothing")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def main(words: list[str]) -> int:
    parser = make_parser()
    arguments = parser.parse_args(words)
    if (arguments.verb == "list") != (not arguments.name):
        parser.error(f"{arguments.verb} takes {'no' if arguments.name else 'a'} name")
    if arguments.read_only and arguments.verb != "create":
        parser.error("--read-only is for create: revoke the token and create it again")
    return asyncio.run(_run(arguments, Output(as_json=arguments.json)))


async def _run(arguments: argparse.Namespace, output: Output) -> int:
    name = arguments.name
    if arguments.verb == "list":
        found = await _do(lambda tokens: tokens.list_tokens())
        output.show(found, _lines(found.entries))
    elif arguments.verb == "revoke":
        gone = await _do(lambda tokens: tokens.revoke(name, user_name()), f"revoking the token of {name}")
        output.show(gone, [f"revoked: {gone.name}"])
    else:
        made = await _do(lambda tokens: _secret(tokens, arguments), f"the token of {name}")
        output.show(made, [made.secret])
    return 0


async def _secret(tokens: TokenService, arguments: argparse.Namespace) -> TokenSecret:
    if arguments.verb == "create":
        return await tokens.create(arguments.name, arguments.read_only, user_name())
    if arguments.verb == "rotate":
        return await tokens.rotate(arguments.name, user_name())
    return await tokens.show(arguments.name, user_name())


async def _do(work: Callable[[TokenService], Awaitable[T]], for_person: str = "") -> T:
    """What the hub answers or, where none runs, what is done on the files; `for_person` is what only people may do."""
    tokens = make_stub(TokenService, hub_client("cli", starts=False))
    try:
        await tokens.list_tokens()
    except Unavailable:  # nobody answers; what a hub refuses because it cannot record it is not done behind its back
        with serve_own_process(ALL_SCOPES):
            if for_person:
                require_person(for_person)
            return await work(TokenService.of_home())
    return await work(tokens)


def _lines(tokens: list[TokenEntry]) -> list[str]:
    rows = [("NAME", "MAY", "MADE", "USED")]
    for each in tokens:
        rows.append(
            (each.name, _may(each.scopes), _day(each.rotated_unix or each.created_unix), _day(each.last_used_unix))
        )
    return format_table(rows)


def _may(scopes: list[str]) -> str:
    if set(scopes) == MCP_SCOPES:
        return "everything agents may"
    return "read" if scopes == [READ] else ", ".join(scopes)


def _day(unix: float) -> str:
    return datetime.fromtimestamp(unix).strftime("%Y-%m-%d %H:%M") if unix else "-"
