"""`pins`, `approve`, `forget-pins`: the pinned and held items of a server."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import get_args

import msgspec

from dari.bridge.trust.diff_text import diff, heading
from dari.bridge.trust.items import ItemKind
from dari.bridge.trust.pin_store import HeldItem
from dari.bridge.trust.pins import Pins
from dari.cli.kit.console import paint, print_json, print_lines
from dari.cli.kit.parser import Command
from dari.cli.kit.table import format_table, one_line
from dari.cli.remote.context import DECLINED, CommandContext, ask_consent, decisions, resolve_pin_name
from dari.errors import Conflict, NotFound


def add_pins(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", help="its name")
    parser.add_argument("--history", action="store_true", help="the last 100 decisions, newest first")
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")


async def run_pins(arguments: argparse.Namespace, context: CommandContext) -> int:
    pins, console, server = context.bridge.pins, context.console, resolve_pin_name(context, arguments.server)
    pinned, held = pins.pinned(server), pins.held(server)
    history = pins.history(server)
    if arguments.json:
        report = {"server": server, "pinned": pinned, "held": held, "history": history if arguments.history else []}
        print_json(console, msgspec.to_builtins(report))
        return 0
    if arguments.history:
        rows = [
            (
                _moment(one.at),
                one.event,
                one.kind,
                one.name or "-",
                f"{one.old[:8] or '-'} → {one.new[:8] or '-'}",
                one.by,
            )
            for one in history
        ]
        print_lines(
            console, format_table(rows) if rows else [f"nothing has happened to the pins of {one_line(server)}"]
        )
        return 0
    if not pinned and not held:
        console.out(f"nothing is pinned of {one_line(server)}: its next listing is a first use\n")
        return 0
    several = len({one.profile for one in pinned}) > 1
    items: list[tuple[str, ...]] = [
        (one.kind, one.name or "-", one.digest[:12], one.state, one.profile[:8] if several else "") for one in pinned
    ]
    items += [(one.kind, one.name or "-", one.digest[:12], f"held: {one.reason}", one.rejected_by) for one in held]
    print_lines(console, format_table(items))
    if held:
        console.err(f"look at the held items: {context.program} approve {one_line(server)}\n")
    return 0


def _moment(unix: float) -> str:
    return datetime.fromtimestamp(unix).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def add_approve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", nargs="?", help="its name; without one, the held items of all servers are listed")
    parser.add_argument("--diff", action="store_true", help="show the differences and decide nothing")
    parser.add_argument("--kind", choices=get_args(ItemKind), help="only items of this kind")
    parser.add_argument("--name", metavar="NAME", help="only the item of this name")
    parser.add_argument("--digest", metavar="HASH", help="only the content with this hash, or the first digits of it")
    parser.add_argument("--reject", action="store_true", help="keep it hidden and ask no more about this content")
    parser.add_argument("--yes", "-y", action="store_true", help="decide without a question")
    parser.add_argument("--json", action="store_true", help="print the held items with their contents as JSON")


async def run_approve(arguments: argparse.Namespace, context: CommandContext) -> int:
    pins, console = context.bridge.pins, context.console
    held = _wanted(arguments, context)
    if arguments.json and not arguments.yes:
        print_json(console, [held_payload(pins, one) for one in held])
        return 0
    if arguments.server is None or not held:
        print_lines(console, _overview(held, context) if held else ["nothing is held"])
        return 0
    for one in held:
        style = "dim" if one.rejected_by else "bold"
        lines = diff(*pins.contents(one), colour=console.colour and console.stdout_is_tty)
        print_lines(console, [paint(heading(one), style, console), *(f"  {line}" for line in lines), ""])
    if arguments.diff:
        return 0
    open_ones = [one for one in held if not (arguments.reject and one.rejected_by)]
    if not open_ones:
        console.out("all of it is rejected already\n")
        return 0
    word = "reject" if arguments.reject else "approve"
    question = f"{word} {len(open_ones)} item{'s' * (len(open_ones) != 1)} of {one_line(arguments.server)}?"
    if not await ask_consent(console, question, is_given=arguments.yes):
        console.err("nothing was decided; it stays held\n")
        return DECLINED
    count = decisions(context).decide_on(open_ones, approves=not arguments.reject)
    done = paint("rejected" if arguments.reject else "approved", "green", console)
    console.out(f"{done} {count} item{'s' * (count != 1)} of {one_line(arguments.server)}\n")
    return 0


def held_payload(pins: Pins, held: HeldItem) -> dict[str, object]:
    import msgspec

    before, after = pins.contents(held)
    return {
        **msgspec.to_builtins(held),
        "before_content": msgspec.json.decode(before) if before else None,
        "content": msgspec.json.decode(after),
    }


def _wanted(arguments: argparse.Namespace, context: CommandContext) -> list[HeldItem]:
    if arguments.server is None:
        return context.bridge.pins.held()
    held = context.bridge.pins.held(resolve_pin_name(context, arguments.server))
    if arguments.kind or arguments.name is not None or arguments.digest:
        if not any(_is_named(one, arguments) for one in held):
            what = " ".join(filter(None, (arguments.kind or "item", arguments.name)))
            raise NotFound(f"no {what} of {arguments.server} is held", f"see: {context.program} approve --diff")
        held = [one for one in held if _is_named(one, arguments)]
        if arguments.digest and not any(one.digest.startswith(arguments.digest.lower()) for one in held):
            raise Conflict(
                f"the held items of {arguments.server} do not have the hash {arguments.digest[:20]}",
                f"the server changed it again; look: {context.program} approve {arguments.server} --diff",
            )
        if arguments.digest:
            held = [one for one in held if one.digest.startswith(arguments.digest.lower())]
    return held


def _is_named(held: HeldItem, arguments: argparse.Namespace) -> bool:
    return arguments.kind in (None, held.kind) and arguments.name in (None, held.name)


def _overview(held: list[HeldItem], context: CommandContext) -> list[str]:
    servers = sorted({one.server for one in held})
    lines = [heading(one) for one in held]
    return [*lines, "", *(f"look at the differences: {context.program} approve {one_line(one)}" for one in servers)]


def add_forget_pins(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", help="its name")
    parser.add_argument("--yes", "-y", action="store_true", help="without a question")


async def run_forget_pins(arguments: argparse.Namespace, context: CommandContext) -> int:
    pins, console, server = context.bridge.pins, context.console, resolve_pin_name(context, arguments.server)
    pinned, held = pins.pinned(server), pins.held(server)
    if not pinned and not held:
        console.err(f"nothing is pinned of {one_line(server)}\n")
        return 0
    if held:
        console.err(f"{len(held)} of its items are held now, and would be shown without a look at them\n")
    question = f"forget {len(pinned)} pins of {one_line(server)}, and trust what it shows next?"
    if not await ask_consent(console, question, is_given=arguments.yes):
        console.err("nothing was forgotten\n")
        return DECLINED
    count = decisions(context).forget(server)
    console.out(f"forgot {count} pins of {one_line(server)}\n")
    return 0


COMMANDS = (
    Command(
        "pins",
        "show the pinned and held items of a server, and every decision about it",
        add_pins,
        run_pins,
        examples=(
            ("pins files", "each item with the start of its hash"),
            ("pins files --history", "what was pinned, held, approved and rejected, by whom and when"),
            ("pins files --json", "with whole hashes"),
        ),
    ),
    Command(
        "approve",
        "look at what a server changed of its tools and texts, and agree to it or not",
        add_approve,
        run_approve,
        description="""\
What a model sees of a server (instructions, tools, prompts, templates) is pinned on first use. What is different later
is held: neither shown nor callable, until you have seen the difference and agreed. Your yes counts for the text that
you saw; if the server changes it again in between, it is refused.""",
        examples=(
            ("approve", "which servers have something held"),
            ("approve files", "show every difference, ask, then pin the new text"),
            ("approve files --diff", "only show"),
            ("approve files --kind tool --name write_file", "one item"),
            ("approve files --name write_file --reject", "keep it hidden, and do not ask again"),
            ("approve files --digest 9f2c… --yes", "what you saw elsewhere, without a question"),
        ),
    ),
    Command(
        "forget-pins",
        "drop all pins of a server: what it shows next is taken as its first",
        add_forget_pins,
        run_forget_pins,
        examples=(("forget-pins files", "after you replaced it by another server of the same name"),),
    ),
)
