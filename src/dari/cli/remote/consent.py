"""A person's yes: asked for on a terminal, given beforehand with `--yes`, never guessed, and written down."""

from __future__ import annotations

import os
from collections.abc import Callable

from dari.cli.remote.failures import OTHER
from dari.cli.remote.terminal import Terminal
from dari.cli.remote.world import World
from dari.errors import InvalidInput

DECLINED = OTHER
"""Exit code of a command whose person said no."""


async def agrees(terminal: Terminal, question: str, *, is_given: bool, instead: str = "--yes") -> bool:
    """Whether the person agrees. Without a terminal, and without `--yes`, it is an error that names `instead`."""
    if is_given:
        return True
    if not terminal.stdin_is_tty:
        raise InvalidInput("this needs a person's yes, and stdin is no terminal", f"look first, then add {instead}")
    answer = await terminal.ask(f"{question} [y/N] ")
    return answer.strip().lower() in ("y", "yes")


def person() -> str:
    """The login name of who runs this; it stands behind decisions in pins and in the audit log."""
    try:
        import pwd

        return pwd.getpwuid(os.geteuid()).pw_name
    except (ImportError, KeyError):  # Windows; a container without this user in its passwd
        return f"uid {os.geteuid()}" if hasattr(os, "geteuid") else os.environ.get("USERNAME", "someone")


def recorder(world: World) -> Callable[..., None]:
    """What writes a decision to the audit log: `record(event, server=…, tool=…, …)`.

    Ask for it before the decision is carried out: what cannot be recorded is not done.
    """
    audit = world.bridge.audit
    if audit is not None:
        audit.check()

    def record(event: str, *, server: str = "", tool: str = "", **detail: object) -> None:
        if audit is not None:
            audit.note("decision", server=server, tool=tool, who=person(), event=event, **detail)

    return record
