"""`crux attach`: a window of the server in the person's own terminal."""

from __future__ import annotations

import argparse
import os
import sys

from dari.cli.crux.options import OK, Crux, add_pane

STARTS = ("attach",)
EXAMPLES = {
    "attach": """
crux attach                                    the window with the focus; a shell is opened when there is none
crux attach --pane-id server                   the window with this pane
crux attach --window w2
crux attach --prefix C-a

keys: the prefix (Ctrl-b), then
  d            leave; everything goes on          %  "      split to the right, below
  arrows  o    focus the pane there, the next     z  x      fill the tab with the pane, end it (asks)
  Ctrl-arrows  move the border by a cell, Alt-arrows by five; again without the prefix for half a second
  c n p 0…9    new tab, next, previous, by number ,  $      rename the tab, the window
  w            list windows, tabs and panes       (  )      the previous, the next window
  [  PageUp    copy mode                          ]         type what was copied
  Space        next layout                        r  ?      draw everything again, these keys
  M            tools of every server: pick one by typing, fill it in, see the result or type it into the pane
copy mode: arrows or h j k l, PageUp, PageDown, g, G, 0, $ move; / and ? search down and up, n and N again;
  Space begins a selection, Enter copies it (also to the clipboard of your terminal), q leaves.
The mouse works in programs that use it; elsewhere a click takes the focus and the wheel looks back.
Shift with the mouse selects text as your terminal does.
""",
}


def add_attach(parser: argparse.ArgumentParser) -> None:
    add_pane(parser, "a pane of the window")
    parser.add_argument("--window", "-w", metavar="ID", default="", help="a window, as `crux list` shows it")
    parser.add_argument("--prefix", metavar="KEY", default="C-b", help="Ctrl and a letter (default: %(default)s)")
    parser.add_argument("--no-mouse", action="store_true", help="leave the mouse to your terminal")


def run_attach(arguments: argparse.Namespace, crux: Crux) -> int:
    from dari.cli.crux.view.keyboard import parse_prefix
    from dari.errors import Conflict, InvalidInput

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidInput("attach needs a terminal", "run it in one; crux get-text prints what a pane shows")
    prefix = parse_prefix(arguments.prefix)
    inside = os.environ.get("CRUX_PANE", "")
    panes = crux.call("crux:pane/list")["panes"]
    if inside and not getattr(arguments, "socket", "") and any(pane["id"] == inside for pane in panes):
        raise Conflict(f"this is pane {inside} of the same server", "to look at it from inside: unset CRUX_PANE")
    if not panes:
        crux.call("crux:pane/open", where="window", cwd=os.getcwd())
    pane_id = arguments.pane_id or ""
    if pane_id:
        crux.call("crux:pane/focus", pane_id=crux.call("crux:pane/info", pane_id=pane_id)["id"])
    from dari.cli.crux.view.loop import AttachView

    ended = AttachView(crux.client.place, prefix, has_mouse=not arguments.no_mouse).run(arguments.window, pane_id)
    sys.stdout.write(f"[{ended}]\n")
    return OK
