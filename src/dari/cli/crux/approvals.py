"""`crux approvals`: calls of agents that wait for a person's approval."""

from __future__ import annotations

import argparse

from dari.cli.crux.options import OK, Crux

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
    parser.add_argument("id", metavar="ID", nargs="?", help="the question, as the list names it")
    parser.add_argument("reason", metavar="REASON", nargs="?", default="", help="why not, for the agent")


def run_approvals(arguments: argparse.Namespace, crux: Crux) -> int:
    if arguments.verb == "list":
        return _list(crux)
    from dari.errors import InvalidInput

    if not arguments.id:
        raise InvalidInput(f"which question to {arguments.verb}?", "crux approvals lists them")
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
