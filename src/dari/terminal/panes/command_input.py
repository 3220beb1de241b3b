"""A command as the keys that make a shell run it as one."""

from __future__ import annotations

import re

from dari.errors import InvalidInput
from dari.terminal.engine.engine import Engine
from dari.terminal.panes.shell_integration import NUMBER, ShellKind, quote

# The kernel's line editor keeps this much of a line and drops the rest.
LINE_BYTES = 4000
FISH_ENTER = b"\x1b[7702~"
"""Enter in a fish with our hooks, which says so when the line is not a whole command."""
# A line of words alone cannot be taken for the beginning of something longer, unless the first of them is reserved.
_WORDS = re.compile(
    r"(?!(?:if|then|else|elif|fi|for|while|until|do|done|case|esac|function|select|time|in|coproc)\b)"
    r"[A-Za-z0-9_./~:=,@%+-][A-Za-z0-9_./~:=,@%+ -]*"
)


def type_command(command: str, kind: ShellKind, engine: Engine) -> bytes:
    """Return included. Several lines go in as one paste, or as one line where the shell knows no pastes."""
    text = _checked(command)
    has_lines = "\n" in text
    typed = engine.encode_paste(text)
    if kind != "sh" and typed.startswith(b"\x1b[200~"):
        return typed + (FISH_ENTER if kind == "fish" else b"\r")
    if has_lines or (kind == "sh" and not _WORDS.fullmatch(text)):
        if kind == "fish":
            raise InvalidInput("this fish takes no pastes, so no command of several lines", "join the lines with ;")
        # A shell without a line editor shows no prompt for the rest of a line that is not whole: it waits in silence.
        typed = engine.encode_paste(as_one_line(text) if has_lines else f"eval {quote(text, kind)}")
    if kind == "sh":
        _check_length(typed)
    return typed + b"\r"


def type_whole(command: str, kind: ShellKind, engine: Engine) -> bytes:
    """The same as one whole word for `eval`: the shell says what is wrong with it, and does not wait for more."""
    text = f"eval {quote(_checked(command), kind)}"
    if "\n" in text and kind != "fish" and not engine.encode_paste(text).startswith(b"\x1b[200~"):
        text = as_one_line(_checked(command))
    return engine.encode_paste(text) + b"\r"


def type_marked(command: str, nonce: str, engine: Engine) -> bytes:
    """Between two marks, for a POSIX shell of which nothing is known; one line, for it may not know pastes."""
    text = _checked(command)
    run = as_one_line(text) if "\n" in text else f"eval {quote(text, 'sh')}"
    begin = f"printf '\\033]{NUMBER};{nonce};C;0\\007'"
    typed = engine.encode_paste(f" {begin}; {run}; {_end_mark(nonce)}")
    _check_length(typed)
    return typed + b"\r"


def type_end_mark(nonce: str) -> bytes:
    """For a command that ended without its mark: a syntax error gives the whole line up in some shells."""
    return f" {_end_mark(nonce)}\r".encode()


def as_one_line(text: str) -> str:
    """The same command for a POSIX shell, without line ends in it."""
    quoted = text.replace("\\", "\\\\").replace("\n", "\\n").replace("'", "'\\''")
    return f"eval \"$(printf '%b' '{quoted}')\""


def _end_mark(nonce: str) -> str:
    return f'printf \'\\033]{NUMBER};{nonce};D;1;%s;%s\\007\' "$?" "$PWD"'


def _checked(command: str) -> str:
    text = command.strip("\n").replace("\r\n", "\n")
    if "\0" in text:
        raise InvalidInput("a command cannot hold a NUL character", "take it out")
    return text


def _check_length(typed: bytes) -> None:
    if len(typed) > LINE_BYTES:
        raise InvalidInput(
            f"this shell reads lines of at most {LINE_BYTES} bytes, the command has {len(typed)}",
            "put it in a file and run that, or use bash, zsh or fish",
        )
