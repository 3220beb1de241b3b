"""`dari approvals`: what waits for a person (calls of every part, changed servers, untrusted files), and the answer.

The queue is kept by the hub. Answers are taken from a terminal of the person alone: the hub refuses them to panes, to
servers that it runs, and to what runs below an agent's host.
"""

from __future__ import annotations

import argparse
import asyncio
import getpass
import time
from collections.abc import Sequence

import msgspec

from dari.cli.kit.table import format_table, one_line
from dari.core.approval_service import ApprovalList, ApprovalService
from dari.core.approvals import Approval
from dari.core.hub_client import hub_approvals
from dari.errors import Conflict, InvalidInput, NotFound, Unavailable
from dari.text.sanitize import escape_hidden

_EPILOG = """\
examples:
  dari approvals                             what waits, oldest first
  dari approvals show 1a2b3c4d               one call with its arguments, without secrets
  dari approvals show pin-1a2b3c4d           what a server changed, line by line
  dari approvals approve trust-1a2b3c4d      let a project's mcp.json run what it names
  dari approvals approve 1a2b3c4d            let this one call through
  dari approvals approve 1a2b3c4d --for-session   … and later calls of the tool by the same session
  dari approvals deny 1a2b3c4d 'use git clean'    the caller is given the reason

guide: docs/guide/trust.md
"""


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dari approvals",
        description="What waits for a person (calls, changed servers, untrusted files): approve or deny it, in a "
        "terminal of your own.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("verb", choices=("list", "show", "approve", "deny"), nargs="?", default="list")
    parser.add_argument(
        "id", metavar="ID", nargs="?", default="", help="as the list shows it; its first letters are enough"
    )
    parser.add_argument(
        "reason", metavar="REASON", nargs="?", default="", help="deny: the reason, which the caller gets"
    )
    parser.add_argument("--for-session", action="store_true", help="approve: this tool, for the caller's session")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def main(words: list[str]) -> int:
    parser = make_parser()
    arguments = parser.parse_args(words)
    if (arguments.verb == "list") != (not arguments.id):
        raise InvalidInput(f"{arguments.verb} takes {'no' if arguments.id else 'an'} id", "dari approvals lists them")
    return asyncio.run(_run(arguments))


async def _run(arguments: argparse.Namespace) -> int:
    hub = hub_approvals("cli", starts=False)
    found = await _list(hub)
    if arguments.verb == "list":
        _show(msgspec.to_builtins(found) if arguments.json else None, _lines(found.waiting))
        return 0
    id = _whole_id(arguments.id, found)
    if arguments.verb == "show":
        done = await hub.show(id)
        shown = msgspec.json.format(msgspec.json.encode(done), indent=2).decode()
        lines = escape_hidden(shown, one_line=False).splitlines()
    else:
        try:
            if arguments.verb == "approve":
                done = await hub.approve(id, arguments.for_session, _person())
            else:
                done = await hub.deny(id, arguments.reason, _person())
        except Conflict as error:  # answered before: the id is wrong, as one that nobody asked for is
            raise InvalidInput(error.message, error.hint) from error
        lines = [f"{done.state}: {_effect(done)}"]
    _show(msgspec.to_builtins(done) if arguments.json else None, lines)
    return 0


async def _list(hub: ApprovalService) -> ApprovalList:
    try:
        return await hub.list_approvals()
    except Unavailable:
        return ApprovalList([], [])  # no hub runs, so nothing waits


def _whole_id(start: str, found: ApprovalList) -> str:
    ids = [each.id for each in (*found.waiting, *found.answered) if each.id.startswith(start)]
    if len(ids) > 1:
        raise InvalidInput(f"{start!r} matches {len(ids)} ids", ", ".join(ids))
    if not ids:
        raise NotFound(f"no call waits under the id {start[:40]!r}", "dari approvals lists them")
    return ids[0]


def _lines(waiting: Sequence[Approval]) -> list[str]:
    if not waiting:
        return ["nothing waits for a person"]
    rows = [("ID", "ASKED BY", "LEFT", "WHAT")]
    for each in waiting:
        left = f"{max(0, round(each.expires_unix - time.time()))} s" if each.expires_unix else "-"
        rows.append((each.id, one_line(each.client or each.who), left, _effect(each)))
    return format_table(rows)


def _effect(approval: Approval) -> str:
    arguments = msgspec.json.encode(approval.arguments).decode()
    return one_line(approval.message or f"{approval.name} {arguments}")


def _show(payload: object, lines: Sequence[str]) -> None:
    if payload is not None:
        print(msgspec.json.encode(payload).decode())
        return
    for line in lines:
        print(line)


def _person() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "a person"
