"""A person's yes: asked for on a terminal, given beforehand with `--yes`, never guessed, and written down."""

from __future__ import annotations

import os
from collections.abc import Callable

from dari.bridge.decisions import Decisions
from dari.bridge.upstream.target import pin_name
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


def decisions(world: World) -> Decisions:
    """Of the person who runs this command."""
    return Decisions(world.bridge, person())


def recorder(world: World) -> Callable[..., None]:
    """`record(event, server=…, …)` for a decision of this person that `Decisions` does not know.

    Ask for it before the decision is carried out: what cannot be recorded is not done.
    """
    audit = world.bridge.audit
    if audit is not None:
        audit.check()

    def record(event: str, *, server: str = "", tool: str = "", **detail: object) -> None:
        if audit is not None:
            audit.note("decision", server=server, tool=tool, who=person(), event=event, **detail)

    return record


def pinned_as(world: World, name: str) -> str:
    """A server as the pins know it: the one that is meant here, or a name that `approve` and `doctor` showed."""
    catalog = world.view.catalog()
    listed = next((one for one in catalog.listed if one.id == name), None)
    if listed is not None:
        return pin_name(name, listed)
    if not world.bridge.pins.pinned(name) and not world.bridge.pins.held(name):
        catalog.find(name)  # says that there is none, with a guess at what was meant
    return name
