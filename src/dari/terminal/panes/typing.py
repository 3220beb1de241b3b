"""A command as the keys that make a shell run it as one."""

from __future__ import annotations

from dari.errors import InvalidInput
from dari.terminal.engine.engine import Engine
from dari.terminal.panes.integration import ShellKind

# The kernel's line editor keeps this much of a line and drops the rest.
LINE_BYTES = 4000


def type_command(command: str, kind: ShellKind, engine: Engine) -> bytes:
    """Return included. Several lines go in as one paste, or as one line where the shell knows no pastes."""
    text = command.strip("\n").replace("\r\n", "\n")
    if "\0" in text:
        raise InvalidInput("a command cannot hold a NUL character", "take it out")
    has_lines = "\n" in text
    typed = engine.encode_paste(text)
    if kind != "sh" and typed.startswith(b"\x1b[200~"):
        return typed + b"\r"
    if has_lines or (kind == "sh" and text.endswith("\\")):
        if kind == "fish":
            raise InvalidInput("this fish takes no pastes, so no command of several lines", "join the lines with ;")
        typed = engine.encode_paste(as_one_line(text))
    if kind == "sh" and len(typed) > LINE_BYTES:
        raise InvalidInput(
            f"this shell reads lines of at most {LINE_BYTES} bytes, the command has {len(typed)}",
            "put it in a file and run that, or use bash, zsh or fish",
        )
    return typed + b"\r"


def as_one_line(text: str) -> str:
    """The same command for a POSIX shell, without line ends in it."""
    quoted = text.replace("\\", "\\\\").replace("\n", "\\n").replace("'", "'\\''")
    return f"eval \"$(printf '%b' '{quoted}')\""
