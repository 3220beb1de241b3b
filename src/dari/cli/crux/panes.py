"""`crux split-pane | new-window | list | activate-pane | close-pane | resize | zoom | rename-pane | select-layout |
get-text | screenshot`."""

from __future__ import annotations

import argparse
import errno
import os
import sys

from dari.cli.crux.options import FAILED, OK, STILL_RUNNING, Crux, add_pane, cells, seconds
from dari.os_errors import describe_os_error, suggest_next_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STARTS = (
    "split-pane",
    "new-window",
)
EXAMPLES = {
    "split-pane": """
crux split-pane                                      a shell to the right of the focused pane
crux split-pane --direction bottom --percent 30      below it, a third of its height
crux split-pane --name server --cwd ~/app -- npm start
crux split-pane --wait-for 'listening on' -- npm start   returns once it listens; 124 when the time is over
pane=$(crux split-pane --no-focus) && crux exec -t "$pane" 'make'
""",
    "new-window": """
crux new-window                                      a window with one shell; prints the pane's id
crux new-window --tab --name logs -- journalctl -f   a tab of the focused window
""",
    "list": """
crux list
crux list --format json | jq -r '.panes[] | select(.is_focused) | .id'
""",
    "activate-pane": """
crux activate-pane --pane-id 2
crux activate-pane -t server                         by name
""",
    "close-pane": """
crux close-pane --pane-id 2                          refused while a program runs in it
crux close-pane --pane-id 2 --force                  ends the program, too
""",
    "resize": """
crux resize --pane-id 2 --cols 120 --rows 40         neighbours give or take the cells
crux resize --rows 10
""",
    "zoom": """
crux zoom --pane-id 2                                on, or off when it was on
crux zoom --off
""",
    "rename-pane": """
crux rename-pane --pane-id 2 server
crux exec -t server 'echo hello'
""",
    "select-layout": """
crux select-layout tiled
crux select-layout main-vertical --main-size 120     columns of the main pane; 60% works, too
""",
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


DIRECTIONS = ("right", "left", "top", "bottom", "up", "down", "horizontal", "vertical")


LAYOUTS = ("even-horizontal", "even-vertical", "main-horizontal", "main-vertical", "tiled")


def add_split_pane(parser: argparse.ArgumentParser) -> None:
    parser.usage = "crux split-pane [options] [-- COMMAND …]"
    add_pane(parser, "the pane to split")
    parser.add_argument(
        "--direction",
        "-d",
        choices=DIRECTIONS,
        default="right",
        metavar="WHERE",
        help="right, left, top (up), bottom (down); horizontal is right, vertical is bottom (default: %(default)s)",
    )
    parser.add_argument("--percent", "-p", metavar="N", type=_percent, help="of the pane that is split (default: half)")
    _add_program(parser)


def add_new_window(parser: argparse.ArgumentParser) -> None:
    parser.usage = "crux new-window [options] [-- COMMAND …]"
    parser.add_argument("--tab", action="store_true", help="a tab of the focused window instead")
    _add_program(parser)


def add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default: %(default)s")


def add_activate_pane(parser: argparse.ArgumentParser) -> None:
    add_pane(parser)


def add_close_pane(parser: argparse.ArgumentParser) -> None:
    add_pane(parser)
    parser.add_argument("--force", "-f", action="store_true", help="also when a program runs in it")


def add_resize(parser: argparse.ArgumentParser) -> None:
    add_pane(parser)
    parser.add_argument("--cols", "-x", metavar="N", type=cells, help="columns (default: as they are)")
    parser.add_argument("--rows", "-y", metavar="N", type=cells, help="rows (default: as they are)")


def add_zoom(parser: argparse.ArgumentParser) -> None:
    add_pane(parser)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--on", dest="is_on", action="store_const", const=True, help="fill the tab")
    choice.add_argument("--off", dest="is_on", action="store_const", const=False, help="back to its place")


def add_rename_pane(parser: argparse.ArgumentParser) -> None:
    add_pane(parser)
    parser.add_argument("name", metavar="NAME", help="empty to take the name away")


def add_select_layout(parser: argparse.ArgumentParser) -> None:
    add_pane(parser, "a pane of the tab")
    parser.add_argument("layout", metavar="LAYOUT", help=f"one of {', '.join(LAYOUTS)}")
    parser.add_argument("--main-size", metavar="N", default="", help="of the main pane: cells, or a share such as 60%%")


def run_split_pane(arguments: argparse.Namespace, crux: Crux) -> int:
    direction = arguments.direction
    way = "horizontal" if direction in ("left", "right", "horizontal") else "vertical"
    target = crux.pane(arguments)
    size = None
    if arguments.percent is not None and crux.call("crux:pane/list")["panes"]:
        split = crux.call("crux:pane/info", pane_id=target)
        size = max(1, split["cols" if way == "horizontal" else "rows"] * arguments.percent // 100)
    placed = {"direction": way, "target": target, "size": size, "is_before": direction in ("left", "top", "up")}
    return _open(arguments, crux, placed)


def run_new_window(arguments: argparse.Namespace, crux: Crux) -> int:
    return _open(arguments, crux, {"where": "tab" if arguments.tab else "window"})


def run_list(arguments: argparse.Namespace, crux: Crux) -> int:
    found: dict[str, Any] = crux.call("crux:pane/list") if crux.client.is_up() else {"panes": [], "focused": ""}
    crux.out.as_json = crux.out.as_json or arguments.format == "json"
    crux.out.show(found, _lines(found["panes"]))
    return OK


def run_activate_pane(arguments: argparse.Namespace, crux: Crux) -> int:
    pane_id = crux.call("crux:pane/info", pane_id=crux.pane(arguments))["id"]
    crux.out.show(crux.call("crux:pane/focus", pane_id=pane_id))
    return OK


def run_close_pane(arguments: argparse.Namespace, crux: Crux) -> int:
    crux.out.show(crux.call("crux:pane/close", pane_id=crux.pane(arguments), force=arguments.force))
    return OK


def run_resize(arguments: argparse.Namespace, crux: Crux) -> int:
    if arguments.cols is None and arguments.rows is None:
        from dari.errors import InvalidInput

        raise InvalidInput("no size was given", "give --cols, --rows or both")
    pane_id = crux.pane(arguments)
    size = crux.call("crux:pane/resize", pane_id=pane_id, cols=arguments.cols or 0, rows=arguments.rows or 0)
    crux.out.show(size, [f"{size['cols']}x{size['rows']}"])
    return OK if size["success"] else 1


def run_zoom(arguments: argparse.Namespace, crux: Crux) -> int:
    pane = crux.call("crux:pane/zoom", pane_id=crux.pane(arguments), is_zoomed=arguments.is_on)
    state = "fills its tab" if pane["is_zoomed"] else "is alone in its tab" if arguments.is_on else "is in its place"
    crux.out.show(pane, [f"pane {pane['id']} {state}"])
    return OK


def run_rename_pane(arguments: argparse.Namespace, crux: Crux) -> int:
    crux.out.show(crux.call("crux:pane/rename", pane_id=crux.pane(arguments), name=arguments.name))
    return OK


def run_select_layout(arguments: argparse.Namespace, crux: Crux) -> int:
    from dari.cli.kit.hints import closest

    if arguments.layout not in LAYOUTS and (meant := closest(arguments.layout, LAYOUTS)):
        from dari.errors import InvalidInput

        raise InvalidInput(f"unknown layout {arguments.layout!r}", f"did you mean {meant}?")
    found = crux.call(
        "crux:pane/arrange", preset=arguments.layout, pane_id=crux.pane(arguments), main_size=arguments.main_size
    )
    crux.out.show(found)
    return OK


def _add_program(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cwd", metavar="DIR", help="where it starts (default: the directory of the pane that is split)"
    )
    parser.add_argument("--name", metavar="NAME", default="", help="a name to call the pane by")
    parser.add_argument(
        "--env", "-e", metavar="NAME=VALUE", action="append", default=[], type=_variable, help="repeatable"
    )
    parser.add_argument("--shell", metavar="PATH", default="", help="bash, zsh, fish or sh (default: $SHELL)")
    parser.add_argument("--no-focus", action="store_true", help="the focus stays where it is")
    parser.add_argument("--wait-for", metavar="PATTERN", default="", help="return once it has printed this")
    parser.add_argument(
        "--timeout", metavar="S", type=seconds, default=30.0, help="for --wait-for (default: %(default)g)"
    )


def _open(arguments: argparse.Namespace, crux: Crux, placed: dict[str, Any]) -> int:
    pane = crux.call(
        "crux:pane/split",
        cwd=os.path.abspath(os.path.expanduser(arguments.cwd)) if arguments.cwd else None,
        argv=arguments.rest or None,
        name=arguments.name,
        shell=arguments.shell,
        env=dict(arguments.env) or None,
        focus=not arguments.no_focus,
        wait_for=arguments.wait_for,
        timeout_s=arguments.timeout,
        **placed,
    )
    crux.out.show(pane, [pane["id"]])
    waited = pane["waited"]
    if waited is None or waited["matched"]:
        return OK
    if not crux.out.as_json:
        from dari.errors import InvalidInput

        message = f"{arguments.wait_for!r} did not come: {waited['reason']}"
        crux.out.error(InvalidInput(message, f"crux get-text -t {pane['id']} shows what did"))
    return STILL_RUNNING if waited["reason"] == "timeout" else FAILED


def _lines(panes: list[dict[str, Any]]) -> list[str]:
    from dari.cli.kit.table import format_table

    if not panes:
        return ["no panes (open one: crux split-pane)"]
    rows = [("ID", "NAME", "WINDOW", "TAB", "SIZE", "PID", "STATE", "PROCESS", "DIRECTORY")]
    for pane in panes:
        marks = f"{'*' if pane['is_focused'] else ''}{'Z' if pane['is_zoomed'] else ''}"
        size = f"{pane['cols']}x{pane['rows']}"
        words = (pane["id"] + marks, pane["name"] or "-", pane["window_id"], pane["tab_id"], size, str(pane["pid"]))
        rows.append((*words, _state(pane), pane["process"] or "-", _home(pane["cwd"])))
    return format_table(rows)


def _state(pane: dict[str, Any]) -> str:
    if not pane["is_alive"]:
        return f"ended {pane['exit_code']}"
    return "prompt" if pane["is_at_prompt"] else "busy"


def _home(path: str) -> str:
    home = os.path.expanduser("~")
    return "~" + path.removeprefix(home) if path == home or path.startswith(home + "/") else path


def _percent(text: str) -> int:
    number = text.removesuffix("%")
    if not number.isdecimal() or not 1 <= int(number) <= 99:
        raise argparse.ArgumentTypeError(f"must be a share from 1 to 99, got {text[:40]!r}")
    return int(number)


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text[:40]!r}")
    return name, value


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
            raise Failed(f"{path} must be a regular file, not a link", "name another file, or remove it") from None
        raise Failed(
            f"cannot write {path}: {describe_os_error(error)}",
            suggest_next_step(error, "give a path that you may write to"),
        ) from None
    image_info = {"path": os.path.abspath(path), "width": shot["width"], "height": shot["height"]}
    crux.out.show(image_info, [f"{path}: {shot['width']}x{shot['height']}"])
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
            f"--{which}-line must be a number, got {text[:40]!r}", "negative numbers are rows of the scrollback"
        ) from None
