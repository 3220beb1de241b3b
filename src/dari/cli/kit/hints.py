"""Hints name the command as it was typed: `crewx mcp remote …` or `dari remote …`.

Errors are made deep in the bridge, often in the daemon, where nobody knows what was typed; they say `dari remote`. What
reaches a person is rewritten on its way out, here and nowhere else.
"""

from __future__ import annotations

import re
from contextvars import ContextVar

PROGRAM: ContextVar[str] = ContextVar("program", default="dari remote")
"""What was typed before the command; each command runs in a context of its own."""
_NAMED = re.compile(r"\b(?:dari|crewx mcp) remote\b")


def remote_program() -> str:
    """The commands for other servers, also for who typed `crewx mcp call_tool`."""
    program = PROGRAM.get()
    return program if program.endswith("remote") else f"{program} remote"


def name_program(text: str) -> str:
    """The same advice in the words of who reads it."""
    return _NAMED.sub(remote_program(), text) if " remote" in text else text
