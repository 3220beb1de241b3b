"""Prompts that no shell reports: of a shell inside the pane's own or in its place, far away, or without its hooks.

Who has the terminal, how it reads keys, and what the row of the cursor says decide which way a command can go:
`join` teaches a shell on this machine to tell about its commands, `mark` puts marks around a single command, which
works in every POSIX shell however far away it is, `idle` only sees that the prompt has come back.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from typing import Literal

from dari.terminal.engine.engine import Engine
from dari.terminal.panes.pty import ProcessInfo
from dari.terminal.panes.shell_integration import ShellKind, kind_of

Way = Literal["join", "mark", "idle"]
OTHER_SHELLS = frozenset(["csh", "tcsh", "nu", "xonsh", "elvish", "pwsh", "rc", "es", "ion", "murex"])
# `#` of psql (`db=#`, `db-#`) and the like is not the end of a shell's prompt; `>` is that of most REPLs.
_PROMPT = re.compile(r"(?:^|[^=*!\-^(])[$#%❯➜λ»]$")
_ANY_PROMPT = re.compile(r"[$#%>❯➜λ»)]$")
_WITH_VALUE = frozenset(["--rcfile", "--init-file", "-O", "+O", "-o", "+o", "-C", "--init-command"])


@dataclass(frozen=True, slots=True)
class FoundPrompt:
    way: Way
    kind: ShellKind | None
    pid: int


def find_prompt(
    process: ProcessInfo | None, engine: Engine, *, is_canonical: bool, has_echo: bool, may_read: bool
) -> FoundPrompt | None:
    """The prompt that the pane seems to be at; None when something else has the terminal, as far as one can see.

    `may_read`: a builtin of the shell may be what reads the terminal.
    """
    if process is None or engine.is_alternate:
        return None
    row = _row(engine)
    kind = kind_of(process.name)
    if kind is not None:
        looks_right = _PROMPT.search(row) is not None
        if is_canonical:
            is_at_prompt = kind == "sh" and (looks_right or (not may_read and reads_terminal(process.pid)))
        else:  # `read -s -n 1` reads keys, too; a line editor asks for pastes to be marked
            is_at_prompt = not has_echo and (looks_right or (not may_read and engine.modes.bracketed_paste))
        if not is_at_prompt or not _is_interactive(process.command_line):
            return None
        if _is_near(process.pid):
            return FoundPrompt("join", kind, process.pid)
        return FoundPrompt("idle" if kind == "fish" else "mark", kind, process.pid)
    if process.name in OTHER_SHELLS:
        return FoundPrompt("idle", None, process.pid) if _ANY_PROMPT.search(row) else None
    if not is_canonical and not has_echo and _PROMPT.search(row):
        return FoundPrompt("mark", None, process.pid)
    return None


def _row(engine: Engine) -> str:
    """What stands before the cursor; behind it may be a prompt of the right side, or what another width left there."""
    cursor = engine.cursor
    return engine.text(cursor.row, cursor.row + 1)[: cursor.col].rstrip()


def _is_interactive(command_line: str) -> bool:
    """A shell that was given a script, or a command as text, is at no prompt whatever it shows."""
    try:
        words = iter(shlex.split(command_line)[1:])
    except ValueError:
        return False
    for word in words:
        if word in _WITH_VALUE:
            next(words, None)
        elif word == "-" or word == "--" or word.startswith("--"):
            continue
        elif not word.startswith(("-", "+")) or "c" in word:
            return False
    return True


def reads_terminal(pid: int) -> bool:
    """Whether it sleeps in a read of a terminal, and not until a child ends."""
    try:
        with open(f"/proc/{pid}/wchan") as file:
            return file.read() in ("wait_woken", "n_tty_read", "tty_read")
    except OSError:
        return False


def waits_for_keys(pid: int) -> bool:
    """Whether it sleeps until something is typed, as a shell does that has read all of its input."""
    try:
        with open(f"/proc/{pid}/wchan") as file:
            return file.read().startswith(("wait_woken", "n_tty_read", "tty_read", "poll_", "do_poll", "do_select"))
    except OSError:
        return False


def _is_near(pid: int) -> bool:
    """Whether it may read our files: it is the same user's, and sees the same ones."""
    try:
        return os.stat(f"/proc/{pid}").st_uid == os.geteuid() and os.readlink(f"/proc/{pid}/root") == "/"
    except OSError:
        return not os.path.isdir("/proc/self")  # without /proc there is nothing to ask
