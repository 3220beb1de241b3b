"""`approve`: look at what a server shows differently than before, and agree to it or not."""

from __future__ import annotations

import argparse
from typing import get_args

from dari.bridge.trust.diff_text import diff, heading
from dari.bridge.trust.items import ItemKind
from dari.bridge.trust.pin_store import HeldItem
from dari.bridge.trust.pins import Pins
from dari.cli.remote.consent import DECLINED, agrees, decisions, pinned_as
from dari.cli.remote.payloads import print_json
from dari.cli.remote.sheets import painted, plain, print_lines, takes_colour
from dari.cli.remote.world import World
from dari.errors import Conflict, NotFound

NAME = "approve"
HELP = "look at what a server changed of its tools and texts, and agree to it or not"
DESCRIPTION = """\
What a model sees of a server (instructions, tools, prompts, templates) is pinned on first use. What is different later
is held: neither shown nor callable, until you have seen the difference and agreed. Your yes counts for the text that
you saw; if the server changes it again in between, it is refused."""
EXAMPLES = (
    ("approve", "which servers have something held"),
    ("approve files", "show every difference, ask, then pin what is new"),
    ("approve files --diff", "only show"),
    ("approve files --kind tool --name write_file", "one item"),
    ("approve files --name write_file --reject", "keep it hidden, and do not ask again"),
    ("approve files --digest 9f2c… --yes", "what you saw elsewhere, without a question"),
)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", nargs="?", help="its name; without one, what is held of all is listed")
    parser.add_argument("--diff", action="store_true", help="show the differences and decide nothing")
    parser.add_argument("--kind", choices=get_args(ItemKind), help="only items of this kind")
    parser.add_argument("--name", metavar="NAME", help="only the item of this name")
    parser.add_argument("--digest", metavar="HASH", help="only the content with this hash, or the first digits of it")
    parser.add_argument("--reject", action="store_true", help="keep it hidden and ask no more about this content")
    parser.add_argument("--yes", "-y", action="store_true", help="decide without a question")
    parser.add_argument("--json", action="store_true", help="print what is held, with its contents, as JSON")


async def run(arguments: argparse.Namespace, world: World) -> int:
    pins, terminal = world.bridge.pins, world.terminal
    held = _wanted(arguments, world)
    if arguments.json and not arguments.yes:
        print_json(terminal, [payload(pins, one) for one in held])
        return 0
    if arguments.server is None or not held:
        print_lines(terminal, _overview(held, world) if held else ["nothing is held"])
        return 0
    for one in held:
        style = "dim" if one.rejected_by else "bold"
        lines = diff(*pins.contents(one), colour=takes_colour(terminal))
        print_lines(terminal, [painted(heading(one), style, terminal), *(f"  {line}" for line in lines), ""])
    if arguments.diff:
        return 0
    open_ones = [one for one in held if not (arguments.reject and one.rejected_by)]
    if not open_ones:
        terminal.out("all of it is rejected already\n")
        return 0
    word = "reject" if arguments.reject else "approve"
    question = f"{word} {len(open_ones)} item{'s' * (len(open_ones) != 1)} of {plain(arguments.server)}?"
    if not await agrees(terminal, question, is_given=arguments.yes):
        terminal.err("nothing was decided; it stays held\n")
        return DECLINED
    count = decisions(world).decide_on(open_ones, approves=not arguments.reject)
    done = painted("rejected" if arguments.reject else "approved", "green", terminal)
    terminal.out(f"{done} {count} item{'s' * (count != 1)} of {plain(arguments.server)}\n")
    return 0


def payload(pins: Pins, held: HeldItem) -> dict[str, object]:
    import msgspec

    before, after = pins.contents(held)
    return {
        **msgspec.to_builtins(held),
        "before_content": msgspec.json.decode(before) if before else None,
        "content": msgspec.json.decode(after),
    }


def _wanted(arguments: argparse.Namespace, world: World) -> list[HeldItem]:
    if arguments.server is None:
        return world.bridge.pins.held()
    held = world.bridge.pins.held(pinned_as(world, arguments.server))
    if arguments.kind or arguments.name is not None or arguments.digest:
        if not any(_is_named(one, arguments) for one in held):
            what = " ".join(filter(None, (arguments.kind or "item", arguments.name)))
            raise NotFound(f"no {what} of {arguments.server} is held", f"see: {world.program} approve --diff")
        held = [one for one in held if _is_named(one, arguments)]
        if arguments.digest and not any(one.digest.startswith(arguments.digest.lower()) for one in held):
            raise Conflict(
                f"what is held of {arguments.server} has another hash than {arguments.digest[:20]}",
                f"the server changed it again; look: {world.program} approve {arguments.server} --diff",
            )
        if arguments.digest:
            held = [one for one in held if one.digest.startswith(arguments.digest.lower())]
    return held


def _is_named(held: HeldItem, arguments: argparse.Namespace) -> bool:
    return arguments.kind in (None, held.kind) and arguments.name in (None, held.name)


def _overview(held: list[HeldItem], world: World) -> list[str]:
    servers = sorted({one.server for one in held})
    lines = [heading(one) for one in held]
    return [*lines, "", *(f"look at the differences: {world.program} approve {plain(one)}" for one in servers)]
