"""`dari approvals`: what waits for a person (calls of every part, changed servers, untrusted files), and the answer.

The queue is kept by the hub. Answers are taken from a terminal of the person alone: the hub refuses them to panes, to
servers that it runs, and to what runs below an agent's host.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence

import msgspec

from dari.cli.kit.program import ProgramParser
from dari.cli.kit.table import format_table, one_line
from dari.core.approval_service import ApprovalList, ApprovalService
from dari.core.approvals import Approval
from dari.core.hub_client import hub_approvals
from dari.core.standing_approvals import ArgumentMatch, RuleDraft, StandingRule, describe_rule
from dari.daemon.person import user_name
from dari.errors import Conflict, InvalidInput, NotFound, Unavailable
from dari.text.sanitize import escape_hidden

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
MAX_LASTS = 100_000
VERBS = ("list", "show", "approve", "deny", "rules", "forget")
_EPILOG = """\
examples:
  dari approvals                             what waits, oldest first
  dari approvals show 1a2b3c4d               one call with its arguments, without secrets
  dari approvals show pin-1a2b3c4d           what a server changed, line by line
  dari approvals approve trust-1a2b3c4d      let a project's mcp.json run what it names
  dari approvals approve 1a2b3c4d            let this one call through
  dari approvals approve 1a2b3c4d --for-session   … and later calls of the tool by the same session
  dari approvals approve 1a2b3c4d --always        … and every later call that is the very same
  dari approvals approve 1a2b3c4d --always --any pane_id --like command='make test-*' --lasts 8h
  dari approvals deny 1a2b3c4d 'use git clean'    the caller is given the reason
  dari approvals rules                       what was approved for good
  dari approvals forget rule-1a2b3c4d        take it back

Rules: what --any and --like do not name must be the very same as in this call. guide: docs/guide/trust.md
"""


def make_parser() -> argparse.ArgumentParser:
    parser = ProgramParser(
        prog="dari approvals",
        description="What waits for a person (calls, changed servers, untrusted files): approve or deny it, in a "
        "terminal of your own.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "verb", choices=("list", "show", "approve", "deny", "rules", "forget"), nargs="?", default="list"
    )
    parser.add_argument(
        "id", metavar="ID", nargs="?", default="", help="as the list shows it; its first letters are enough"
    )
    parser.add_argument(
        "reason", metavar="REASON", nargs="?", default="", help="deny: the reason, which the caller gets"
    )
    parser.add_argument("--for-session", action="store_true", help="approve: this tool, for the caller's session")
    parser.add_argument("--always", action="store_true", help="approve: make a rule for calls like this one")
    parser.add_argument(
        "--any",
        metavar="NAME",
        action="append",
        default=[],
        help="--always: this argument (or who) may be anything",
    )
    parser.add_argument(
        "--like",
        metavar="NAME=PATTERN",
        action="append",
        default=[],
        help="--always: an argument, who or effect may be like a pattern; * stands for plain characters of one word",
    )
    parser.add_argument(
        "--lasts", metavar="TIME", default="", help="--always: 15m, 8h or 7d; default: until taken back"
    )
    parser.add_argument("--yes", action="store_true", help="--always: write the rule without asking")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def main(words: list[str]) -> int:
    parser = make_parser()
    arguments = parser.parse_args(words)
    if (arguments.verb in ("list", "rules")) != (not arguments.id):
        parser.error(f"{arguments.verb} takes {'no' if arguments.id else 'an'} id")
    return asyncio.run(_run(arguments))


async def _run(arguments: argparse.Namespace) -> int:
    hub = hub_approvals("cli", starts=False)
    if arguments.verb in ("rules", "forget"):
        return await _rules(hub, arguments)
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
            if arguments.always and arguments.verb == "approve":
                rule = _draft(arguments)
                if not _agrees(await hub.preview_rule(id, rule, user_name()), arguments.yes):
                    raise InvalidInput("no rule was made", f"approve this one call: dari approvals approve {id}")
                done = await hub.approve(id, False, user_name(), rule)
            elif arguments.verb == "approve":
                done = await hub.approve(id, arguments.for_session, user_name())
            else:
                done = await hub.deny(id, arguments.reason, user_name())
        except Conflict as error:  # answered before: the id is wrong, as one that nobody asked for is
            raise InvalidInput(error.message, error.hint) from error
        lines = [f"{done.state}: {_effect(done)}"]
    _show(msgspec.to_builtins(done) if arguments.json else None, lines)
    return 0


async def _rules(hub: ApprovalService, arguments: argparse.Namespace) -> int:
    if arguments.verb == "forget":
        rule = await hub.forget_rule(arguments.id, user_name())
        line = f"taken back: {one_line(describe_rule(rule))}"
        _show(msgspec.to_builtins(rule) if arguments.json else None, [line])
        return 0
    found = await hub.list_rules()
    lines = [f"warning: {one_line(found.problem)}"] if found.problem else []
    rows = [("ID", "USED", "LASTS", "LETS THROUGH")]
    for each in found.rules:
        rule = each.rule
        left = f"{max(0, round(rule.expires_unix - time.time()))} s" if rule.expires_unix else "-"
        rows.append((rule.id, str(each.uses), left, one_line(each.summary)))
    lines += format_table(rows) if found.rules else ["no call is approved for good"]
    _show(msgspec.to_builtins(found) if arguments.json else None, lines)
    return 0


def _draft(arguments: argparse.Namespace) -> RuleDraft:
    """`--any` and `--like` as a rule; what they do not name must be the very same."""
    chosen = {name: ArgumentMatch(kind="any") for name in arguments.any}
    for word in arguments.like:
        name, equals, pattern = word.partition("=")
        if not equals:
            raise InvalidInput(f"--like must be NAME=PATTERN, got {word[:80]!r}", "such as --like path='/home/me/*'")
        chosen[name] = ArgumentMatch(kind="like", text=pattern)
    who, effect = chosen.pop("who", ArgumentMatch()), chosen.pop("effect", ArgumentMatch())
    return RuleDraft(who=who, effect=effect, arguments=chosen, lasts_s=_seconds(arguments.lasts))


def _seconds(text: str) -> float:
    if not text:
        return 0.0
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS_S or not number.isdigit() or not number.isascii() or int(number) > MAX_LASTS:
        raise InvalidInput(f"--lasts must be a time like 15m, 8h or 7d, got {text[:40]!r}", "leave it out: no end")
    return float(int(number) * _UNITS_S[unit])


def _agrees(rule: StandingRule, is_sure: bool) -> bool:
    """Show what would be written; ask the person at the terminal."""
    print(f"from now on without asking: {one_line(describe_rule(rule))}", file=sys.stderr)
    if is_sure:
        return True
    if not sys.stdin.isatty():
        raise InvalidInput("a rule is made by a person at a terminal", "add --yes to write it without a question")
    print("write this rule? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


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
