"""Hints name the program as it was called, and commands instead of tools.

Errors are made deep in a service, often in a daemon, where nobody knows what was typed: they name `dari remote`, or the
tools of an agent (`crux_list_panes`, `crab_rules_list`). What reaches a person is rewritten on its way out, here and
nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar

PROGRAM: ContextVar[str] = ContextVar("program", default="dari remote")
"""What was typed before the command; the hub runs each command in a context of its own."""
_REMOTE = re.compile(r"\b(?:dari|crewx mcp) remote\b")
_TOOL = re.compile(r"\b(?:crab|crux)_[a-z_]+\b")


def remote_program() -> str:
    """The program for other servers, also for a person who typed `crewx mcp call_tool`."""
    program = PROGRAM.get()
    return program if program.endswith("remote") else f"{program} remote"


def name_program(text: str) -> str:
    """The text with every mention of `dari remote` in the words of the person who reads it."""
    return _REMOTE.sub(remote_program(), text) if " remote" in text else text


def make_rewriter(commands: Mapping[str, str], phrases: Mapping[str, str]) -> Callable[[str], str]:
    """A function that names the command of each tool (`crab_rules_list`: `dari proxy rules`), and replaces phrases."""

    def rewrite(text: str) -> str:
        text = _TOOL.sub(lambda found: commands.get(found[0], found[0]), text)
        for phrase, ours in phrases.items():
            text = text.replace(phrase, ours)
        return text

    return rewrite


def closest(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant; empty when none is near."""
    from difflib import get_close_matches

    found = get_close_matches(word, list(known), n=1)
    return found[0] if found else ""


def suggest(word: str, known: Iterable[str], program: str, *, quote: str = "'") -> str:
    """The next step for an unknown command: the one that was probably meant, else where they are listed."""
    meant = closest(word, known)
    return f"did you mean {quote}{program} {meant}{quote}?" if meant else f"see: {program} --help"
