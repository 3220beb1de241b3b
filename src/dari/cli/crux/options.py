"""What the commands share: a parser that suggests, `--json`, `--socket`, `--pane-id`."""

from __future__ import annotations

import argparse
import os
import sys

from dari.cli.kit.console import Output, write_text
from dari.cli.kit.hints import make_rewriter
from dari.cli.kit.program import ProgramParser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dari.cli.crux.client import CruxClient

    Handle = Callable[[argparse.Namespace, "Crux"], int]

OK, USAGE, NO_PANE, FAILED = 0, 1, 2, 3
STILL_RUNNING = 124
"""As `timeout` says it."""
OWN_FAILURE = 125
"""Of `crux exec`: not the command failed, but what was to run it."""


TOOLS = {
    "crux_create_pane": "crux split-pane",
    "crux_close_pane": "crux close-pane",
    "crux_list_panes": "crux list",
    "crux_focus_pane": "crux activate-pane",
    "crux_resize_pane": "crux resize",
    "crux_execute_command": "crux exec",
    "crux_wait_for_output": "crux wait",
    "crux_wait_command": "crux wait",
    "crux_interrupt_command": "crux send-keys C-c",
    "crux_send_keys": "crux send-keys",
    "crux_send_text": "crux send-text",
    "crux_get_output": "crux get-text",
    "crux_screenshot_pane": "crux screenshot",
    "crux_save_session": "crux save-session",
    "crux_restore_session": "crux restore-session",
    "crux_load_workspace": "crux load-workspace",
}
"""Hints of the service name the tools of an agent; a person at a shell reads the commands."""
PHRASES = {
    "load with replace=true": "add --replace",
    "use send_keys and wait_for": "use crux send-keys and crux wait",
    "dari approvals list": "crux approvals",
}


class CruxOutput(Output):
    """Raises BrokenPipeError when the reader has left: `crux exec` then interrupts its command."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__(as_json=as_json, rewrite=make_rewriter(TOOLS, PHRASES))

    def write(self, text: str) -> None:
        """Text as it is; what stdout cannot spell is escaped."""
        write_text(sys.stdout, text, sys.stdout.encoding or "utf-8")


class CruxParser(ProgramParser):
    """One command of `crux`: exits with 1 for what it does not understand."""

    exit_code = USAGE

    def __init__(self, name: str, help: str, examples: str) -> None:
        lines = "\n".join("  " + line for line in examples.strip().splitlines())
        super().__init__(
            prog=f"crux {name}",
            description=help[0].upper() + help[1:] + ".",
            epilog=f"examples:\n{lines}",
        )

    def explain(self, message: str) -> tuple[str, str]:
        fact, hint = super().explain(message)
        if fact.startswith("unexpected argument ") and "[-- COMMAND" in (self.usage or ""):
            word = message.rpartition(": ")[2].split()[0]
            hint = f"a command comes after --: {self.prog} -- {word} …"
        return fact, hint


def add_shared(parser: argparse.ArgumentParser) -> None:
    """Given before or after the command: a default here would undo what was given before."""
    shared = parser.add_argument_group("for every command")
    shared.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="the result as one JSON value")
    shared.add_argument(
        "--socket",
        metavar="PATH",
        default=argparse.SUPPRESS,
        help="the server's MCP socket (default: $CRUX_SOCKET, else ~/.crux/mcp.sock)",
    )


def add_pane(parser: argparse.ArgumentParser, what: str = "the pane") -> None:
    parser.add_argument(
        "--pane-id",
        "-t",
        metavar="ID",
        default=None,
        help=f"{what}: id or name (default: $CRUX_PANE, else the focused pane)",
    )


def cells(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if not 1 <= value <= 2000:
        raise argparse.ArgumentTypeError(f"must be 1 to 2000 cells, got {text[:40]!r}")
    return value


def seconds(text: str) -> float:
    try:
        value = float(text.removesuffix("s"))
    except ValueError:
        value = -1.0
    if not 0 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"must be 0 to 3600 seconds, got {text[:40]!r}")
    return value


class Crux:
    """What a command has in its hands: the client of the server, and where its result goes."""

    def __init__(self, client: CruxClient, out: CruxOutput) -> None:
        self.client = client
        self.out = out

    def call(self, method: str, **params: Any) -> Any:
        """Ask the server. What only a person may allow is asked of the person at this terminal, if there is one."""
        from dari.errors import DariError

        try:
            return self.client.call(method, **params)
        except DariError as error:
            if error.name != "needs_approval":
                raise
            from dari.cli.crux.approvals import settle

            return settle(self.client, method, params, error)

    def pane(self, arguments: argparse.Namespace) -> str:
        """The pane that was named, else the one that this runs in; empty for the focused one."""
        if arguments.pane_id is not None:
            named: str = arguments.pane_id
            return named
        inside = os.environ.get("CRUX_PANE", "")
        # The number of a pane means nothing to another server.
        return inside if not getattr(arguments, "socket", "") else ""
