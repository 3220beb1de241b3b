"""`crux get-text | screenshot`."""

from __future__ import annotations

import argparse
import errno
import os
import sys

from dari.cli.crux.options import OK, Crux, add_pane
from dari.os_errors import describe_os_error, suggest_next_step

EXAMPLES = {
    "get-text": """
crux get-text                                  the screen
crux get-text -t server --start-line -200      and the 200 rows above it
crux get-text --start-line -                   all that is kept
crux get-text --start-line 0 --end-line 4      the first five rows of the screen
crux get-text --escapes | less -R              with colours
""",
    "screenshot": """
crux screenshot -o pane.png
crux screenshot -t htop --history 100 -o - | imgcat
""",
}


def add_get_text(parser: argparse.ArgumentParser) -> None:
    add_pane(parser)
    parser.add_argument(
        "--start-line",
        "-S",
        metavar="N",
        default="0",
        help="first row: 0 is the top of the screen, -1 above it, - the oldest",
    )
    parser.add_argument("--end-line", "-E", metavar="N", default="", help="last row (default: the bottom)")
    parser.add_argument("--escapes", "-e", action="store_true", help="colours and styles as escape sequences")
    parser.add_argument("--join", "-J", action="store_true", help="a line that was wrapped is one line")


def add_screenshot(parser: argparse.ArgumentParser) -> None:
    add_pane(parser)
    parser.add_argument("--output", "-o", metavar="FILE", required=True, help="the PNG; - for stdout")
    parser.add_argument("--history", metavar="N", type=int, default=0, help="rows above the screen to show, too")


def run_get_text(arguments: argparse.Namespace, crux: Crux) -> int:
    found = crux.call(
        "crux:pane/get-rows",
        pane_id=crux.pane(arguments),
        start=_row(arguments.start_line, "start"),
        end=_row(arguments.end_line, "end"),
        escapes=arguments.escapes,
        unwrap=arguments.join,
    )
    text = found["text"].rstrip("\n")
    crux.out.show(found, [text] if text else [])
    return OK


def run_screenshot(arguments: argparse.Namespace, crux: Crux) -> int:
    from base64 import b64decode

    shot = crux.call("crux:pane/screenshot", pane_id=crux.pane(arguments), history_rows=arguments.history)
    picture = b64decode(shot["image"])
    path = arguments.output
    if path == "-":
        sys.stdout.buffer.write(picture)
        sys.stdout.flush()
        return OK
    try:
        # A link that somebody left there would lead the picture over another file.
        with open(path, "wb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o666)) as file:
            file.write(picture)
    except OSError as error:
        from dari.errors import Failed

        if error.errno == errno.ELOOP:
            raise Failed(f"{path} must be a file of its own, it is a link", "name another file, or remove it") from None
        raise Failed(
            f"cannot write {path}: {describe_os_error(error)}",
            suggest_next_step(error, "give a path that you may write to"),
        ) from None
    told = {"path": os.path.abspath(path), "width": shot["width"], "height": shot["height"]}
    crux.out.show(told, [f"{path}: {shot['width']}x{shot['height']}"])
    return OK


def _row(text: str, which: str) -> int | None:
    """A row number; None for the oldest row, or the bottom."""
    if text in ("-", ""):
        return -(10**9) if which == "start" else None
    try:
        return int(text)
    except ValueError:
        from dari.errors import InvalidInput

        raise InvalidInput(
            f"{text[:40]!r} is no row", f"give a number to --{which}-line, negative for scrollback"
        ) from None
