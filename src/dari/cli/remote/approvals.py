"""`approvals`: calls that wait for a person."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections.abc import Callable

import msgspec

from dari.cli.kit.console import paint, print_json, print_lines
from dari.cli.kit.parser import Command
from dari.cli.kit.table import one_line
from dari.cli.remote.context import CommandContext, decisions
from dari.core.approval_service import MAX_WAIT_S
from dari.core.approvals import Approval, ApprovalEvent
from dari.core.hub_client import hub_approvals
from dari.errors import DariError, InvalidInput, NeedsApproval, NotFound, TimedOut

_WATCHED = 1000


def add_approvals(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", nargs="?", choices=("list", "approve", "deny", "watch"), help="default: list")
    parser.add_argument("approval", nargs="?", metavar="ID", help="which call to approve or deny")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--approve", metavar="ID", help="let this call through; the first letters of its id will do")
    what.add_argument("--deny", metavar="ID", help="refuse this call")
    what.add_argument("--watch", action="store_true", help="tell of each as it comes; on a terminal also ask")
    parser.add_argument("--for-session", action="store_true", help="with --approve: this tool, for the whole session")
    parser.add_argument("--reason", metavar="TEXT", default="", help="with --deny: the reason that the caller gets")
    parser.add_argument("--json", action="store_true", help="print JSON; with --watch one line for each change")


async def run_approvals(arguments: argparse.Namespace, context: CommandContext) -> int:
    _take_verb(arguments)
    if arguments.for_session and not arguments.approve:
        raise InvalidInput("--for-session needs --approve", "give both")
    if arguments.reason and not arguments.deny:
        raise InvalidInput("--reason needs --deny", "give both")
    if arguments.watch:
        await _watch(arguments, context)
        return 0
    if arguments.approve or arguments.deny:
        question = _find(arguments.approve or arguments.deny, context)
        answer_approval(
            context, question, approves=bool(arguments.approve), is_wide=arguments.for_session, reason=arguments.reason
        )
        if arguments.json:
            print_json(context.console, msgspec.to_builtins(question))
        return 0
    pending = context.bridge.approval_service.pending()
    if arguments.json:
        print_json(context.console, msgspec.to_builtins(pending))
    elif not pending:
        context.console.err("nothing waits for a person\n")
    for question in () if arguments.json else pending:
        print_lines(context.console, _lines(question, context))
    return 0


def _take_verb(arguments: argparse.Namespace) -> None:
    """`approve ID` is `--approve ID`, and so on."""
    verb, approval = arguments.verb, arguments.approval
    if verb in ("approve", "deny"):
        if not approval:
            raise InvalidInput(f"{verb} needs the id of a call", "see what waits: dari remote approvals")
        if arguments.approve or arguments.deny or arguments.watch:
            raise InvalidInput(f"'{verb}' and --approve, --deny or --watch exclude each other", "give one of them")
        setattr(arguments, verb, approval)
    elif approval:
        raise InvalidInput(f"'{verb}' takes no id, got {approval[:40]!r}", "leave it out")
    arguments.watch = arguments.watch or verb == "watch"


def answer_approval(
    context: CommandContext, question: Approval, *, approves: bool, is_wide: bool = False, reason: str = ""
) -> None:
    """Say yes or no, and write down who said it."""
    if approves:
        if is_wide and not question.session:
            raise InvalidInput(f"the caller of {question.name} has no session", "leave --for-session out")
        decisions(context).let_through(question.id, for_session=is_wide)
    else:
        decisions(context).deny(question.id, reason)
    word = "approved" if approves else "denied"
    what = question.name if question.expires_unix else question.message
    context.console.err(f"{word} {one_line(what)}{' for the session' if is_wide else ''}\n")


async def ask_hub(question: Approval, on_waiting: Callable[[str], None]) -> str:
    """Have a person decide in the hub's queue about a call of this process, which runs without a daemon.

    Returns who approved it; raises Denied, TimedOut, or Unavailable where no hub can be had.
    """
    # A hub that a server of ours starts would have that server's sandbox, and end with it.
    hub = hub_approvals("cli", starts=not os.environ.get("DARI_CHILD"))

    async def ask() -> Approval:
        return await hub.ask(
            server=question.server,
            tool=question.tool,
            arguments=question.arguments,
            who=question.who,
            session=question.session,
            client=question.client,
            message=question.message,
            lifetime_s=max(1.0, question.expires_unix - time.time()),
        )

    try:
        return (await ask()).by
    except NeedsApproval as need:
        on_waiting(need.approval_id)
        found = await hub.wait(need.approval_id, min(MAX_WAIT_S, max(0.0, question.expires_unix - time.time())))
    if found.state not in ("approved", "denied"):
        raise TimedOut(f"nobody answered for {question.name}", "call again when a person is there to answer")
    return (await ask()).by  # which uses the answer up, or says that it is no


def _find(start: str, context: CommandContext) -> Approval:
    """By the first letters of its id, as long as they name one."""
    pending = context.bridge.approval_service.pending()
    known = [*pending, *context.bridge.approvals.answered()]  # one that was answered before is refused by its state
    found = [one for one in known if one.id.startswith(start)]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidInput(f"{start!r} matches {len(found)} ids", ", ".join(one.id for one in found))
    waiting = ", ".join(one.id for one in pending)
    raise NotFound(f"no call waits under the id {start[:40]!r}", f"waiting: {waiting}" if waiting else "none waits")


async def _watch(arguments: argparse.Namespace, context: CommandContext) -> None:
    """Until Ctrl-C. Who reads too slowly misses the oldest changes, never the newest."""
    changes: asyncio.Queue[ApprovalEvent] = asyncio.Queue()

    def hear(event: ApprovalEvent) -> None:
        while changes.qsize() >= _WATCHED:
            changes.get_nowait()
        changes.put_nowait(event)

    approvals, console = context.bridge.approvals, context.console
    asks = console.stdin_is_tty and not arguments.json
    stop = approvals.subscribe(hear)
    try:
        for question in approvals.pending():
            changes.put_nowait(ApprovalEvent(change="asked", approval=question))
        if not arguments.json:
            console.err("waiting for calls that need a person; Ctrl-C ends it\n")
        while True:
            event = await changes.get()
            if arguments.json:
                console.out(json.dumps(msgspec.to_builtins(event)) + "\n")
            elif event.change == "asked":
                print_lines(console, _lines(event.approval, context))
                if asks and event.approval in approvals.pending():
                    await _ask(event.approval, context)
            elif event.change != "waiting":
                by = f" by {one_line(event.by)}" if event.by else ""
                console.out(f"{event.approval.id}  {event.change}{by}\n")
            await console.drain()
    finally:
        stop()


async def _ask(question: Approval, context: CommandContext) -> None:
    said = (await context.console.ask("let it through? [y]es, [s]ession, [n]o, Enter leaves it: ")).strip().lower()
    if said not in ("y", "yes", "s", "session", "n", "no"):
        return
    try:
        answer_approval(context, question, approves=said[0] != "n", is_wide=said[0] == "s")
    except DariError as error:  # it ended while the person was thinking
        context.console.err(f"{one_line(error.message)}\n")


def _lines(question: Approval, context: CommandContext) -> list[str]:
    if not question.expires_unix:
        return [f"{question.id}  {one_line(question.message)}"]
    left_s = max(0, round(question.expires_unix - time.time()))
    name = paint(one_line(question.name), "bold", context.console)
    arguments = json.dumps(question.arguments, ensure_ascii=False)
    return [
        f"{question.id}  {name}  asked by {one_line(question.who)}, {left_s} s left",
        f"    {one_line(arguments)}",
    ]


COMMANDS = (
    Command(
        "approvals",
        "calls that wait for a person: see them, let them through, or deny them",
        add_approvals,
        run_approvals,
        description="""\
Calls of tools that a profile names in tools.confirm wait for a person: 30 seconds in silence, then 270 more after a
notice to the caller. Arguments are shown without secrets. They wait in the daemon (or in `dari up`).""",
        examples=(
            ("approvals", "what waits now"),
            ("approvals --approve 1a2b3c4d", "let this one call through"),
            ("approvals --approve 1a2b3c4d --for-session", "… and every later call of the tool by the same session"),
            ("approvals --deny 1a2b3c4d --reason 'not in production'", "the caller gets the reason"),
            ("approvals --watch", "stay and answer each one as it comes; Ctrl-C ends it"),
        ),
    ),
)
