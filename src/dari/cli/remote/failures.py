"""Errors at the shell: which exit code (design 001 §4), and the fact and the next step on stderr."""

from __future__ import annotations

from dari.cli.kit.console import Console
from dari.cli.kit.hints import name_program
from dari.cli.kit.table import json_for_terminal
from dari.errors import Conflict, DariError, InvalidInput
from dari.mcp.client.errors import RemoteError
from dari.rpc.codec import encode
from dari.text.sanitize import escape_hidden

OK, USAGE, NETWORK, TOOL, OTHER = range(5)


def exit_code(error: BaseException) -> int:
    """The table of design 001 §4 and §9."""
    if isinstance(error, Conflict):
        return USAGE  # the state is the person's to change: nothing was sent
    if isinstance(error, DariError):
        return error.exit_code if error.exit_code in (USAGE, NETWORK, TOOL) else OTHER
    return OTHER


def show_error(error: BaseException, terminal: Console) -> None:
    """`error: …` and, where something can be done, `hint: …`; a server's error also as it sent it (design 001 §9)."""
    if isinstance(error, RemoteError):
        message, hint = f"the server answered: {error.message} (JSON-RPC error {error.remote_code})", error.hint
        original = {"code": error.remote_code, "message": error.message, "data": error.data}
        terminal.err(json_for_terminal(encode({"error": original}).decode()) + "\n")
    elif isinstance(error, DariError):
        message, hint = error.message, error.hint
    else:
        message = f"{type(error).__name__}: {error}"
        hint = "this is a fault of ours; the same command with --log tells more"
    terminal.err(f"{paint_err('error:', '31', terminal)} {escape_hidden(name_program(message))}\n")
    if hint:
        terminal.err(f"{paint_err('hint:', '36', terminal)} {escape_hidden(name_program(hint))}\n")


def to_usage_error(error: DariError) -> DariError:
    """The same fact as a matter of configuration: nothing was sent, so it is no failure of network or tool."""
    return error if exit_code(error) == USAGE else InvalidInput(error.message, error.hint)


def name_server(error: DariError, server: str) -> DariError:
    """The same error with the server's name in front, where the message does not name it."""
    if server not in error.message:
        error.message = f"server '{server}': {error.message}"
    return error


def paint_err(text: str, style: str, terminal: Console) -> str:
    """Coloured where stderr is a screen that takes colours."""
    return f"\x1b[{style}m{text}\x1b[0m" if terminal.colour and terminal.stderr_is_tty else text
