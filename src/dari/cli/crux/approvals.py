"""Calls that wait for a person: `crux approvals`, and the question at this terminal where a person sits at it."""

from __future__ import annotations

import argparse
import os
import signal
import sys

from dari.cli.crux.options import OK, Crux
from dari.errors import DariError, NeedsApproval

EXAMPLES = {
    "approvals": """
crux approvals                                 what waits, oldest first
crux approvals approve 1a2b3c                  let it run once
crux approvals deny 1a2b3c 'use git clean'     the agent gets the reason
crux approvals list --json                     with what was answered before
""",
}


def add_approvals(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=("list", "approve", "deny"), nargs="?", default="list", help="default: list")
    parser.add_argument("id", metavar="ID", nargs="?", help="the call, as the list shows it")
    parser.add_argument("reason", metavar="REASON", nargs="?", default="", help="the reason, which the agent gets")


def run_approvals(arguments: argparse.Namespace, crux: Crux) -> int:
    if arguments.verb == "list":
        return _list(crux)
    from dari.errors import InvalidInput

    if not arguments.id:
        raise InvalidInput(f"{arguments.verb} needs the id of a call", "crux approvals lists them")
    is_approved = arguments.verb == "approve"
    done = crux.call(
        "crux:approval/answer", question_id=arguments.id, is_approved=is_approved, by=_person(), reason=arguments.reason
    )
    crux.out.show(done, [f"{done['state']}: {_shown(done['message'])}"])
    return OK


def _list(crux: Crux) -> int:
    from dari.cli.kit.table import format_table

    found = crux.call("crux:approval/list")
    rows = [("ID", "ASKED BY", "WHAT")]
    rows += [(each["id"], each["client"] or "-", _shown(each["message"])) for each in found["waiting"]]
    crux.out.show(found, format_table(rows) if found["waiting"] else ["nothing waits for you"])
    return OK


def _shown(message: str) -> str:
    from dari.text.sanitize import escape_hidden

    return escape_hidden(message).replace("\n", " ⏎ ")


def _person() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dari.cli.crux.client import CruxClient


def settle(client: CruxClient, method: str, params: dict[str, Any], refusal: DariError) -> Any:
    """The call that was refused for want of an approval, made again if a person agrees; else why not."""
    approval_id = refusal.approval_id if isinstance(refusal, NeedsApproval) else ""
    if not approval_id or not _has_person(client) or not _agrees(refusal.message):
        raise refusal
    client.call("crux:approval/answer", question_id=approval_id, is_approved=True, by="the person at the terminal")
    return client.call(method, **params)


def is_in_pane(client: CruxClient) -> bool:
    """Whether the terminal of this command is a pane: what is typed there may come from an agent."""
    if os.environ.get("CRUX_PANE"):
        return True
    try:
        here = os.ttyname(0)
    except OSError:
        return False
    return any(pane["tty"] == here for pane in client.call("crux:pane/list")["panes"])


def _has_person(client: CruxClient) -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty() and not is_in_pane(client)


def _agrees(message: str) -> bool:
    from dari.text.sanitize import escape_hidden

    sys.stderr.write(f"{escape_hidden(message)}\nrun it? [y/N] ")
    sys.stderr.flush()
    held = signal.getsignal(signal.SIGINT)
    if callable(held):  # at a question Ctrl-C is the answer, also where it is held back for a call
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return sys.stdin.readline().strip().lower() in ("y", "yes")
    finally:
        signal.signal(signal.SIGINT, held)
