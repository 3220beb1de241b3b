"""`crux send-text | send-keys`."""

from __future__ import annotations

import argparse
import sys

from dari.cli.crux.options import OK, Crux, add_pane

STARTS = ("send-text", "send-keys")
EXAMPLES = {
    "send-text": """
crux send-text 'git status'                    at the cursor; nothing runs yet
crux send-text --enter 'git status'            and Enter
git diff | crux send-text -t editor            from stdin, pasted as one piece
crux send-text --no-paste 'yes\n'              typed: a line end is Enter (write it with $'…\\n')
""",
    "send-keys": """
crux send-keys C-c
crux send-keys -t vim Escape ':wq' Enter
crux send-keys Up Up Enter
crux send-keys --literal 'C-c is three letters'

names: Enter Tab Escape Space Backspace Up Down Left Right Home End PageUp PageDown Insert Delete F1…F25,
with C- (Ctrl), M- (Alt), S- (Shift); anything else is typed as it is
""",
}


def add_send_text(parser: argparse.ArgumentParser) -> None:
    add_pane(parser)
    parser.add_argument("--no-paste", action="store_true", help="type it: each line end is Enter")
    parser.add_argument("--enter", action="store_true", help="press Enter after it")
    parser.add_argument("text", metavar="TEXT", nargs="?", help="default: what comes from stdin")


def add_send_keys(parser: argparse.ArgumentParser) -> None:
    add_pane(parser)
    parser.add_argument("--literal", "-l", action="store_true", help="no names: every character as it is")
    parser.add_argument("keys", metavar="KEY", nargs="+", help="a key, a chord, or text")


def run_send_text(arguments: argparse.Namespace, crux: Crux) -> int:
    text = sys.stdin.read() if arguments.text is None else arguments.text
    sent = crux.call(
        "crux:pane/send-text",
        text=text,
        pane_id=crux.pane(arguments),
        paste=not arguments.no_paste,
        enter=arguments.enter,
    )
    crux.out.show(sent)
    return OK


def run_send_keys(arguments: argparse.Namespace, crux: Crux) -> int:
    if arguments.literal:
        keys, is_literal = " ".join(arguments.keys), True
    else:
        from dari.terminal.engine.keys import parse_keys, spell_keys

        keys, is_literal = spell_keys(parse_keys(*arguments.keys))
    sent = crux.call("crux:pane/send-keys", keys=keys, pane_id=crux.pane(arguments), literal=is_literal)
    crux.out.show(sent)
    return OK
