"""argparse that belongs to a command, not to a process: it raises instead of printing and leaving.

A wrong word is `InvalidInput` with a hint that names the program as it was called; each program turns it into its own
exit code. `--help` is `HelpRequested`.
"""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from typing import Any, NamedTuple, NoReturn

from dari.cli.kit.program import ProgramParser
from dari.errors import InvalidInput

HELP_COLUMNS: ContextVar[int] = ContextVar("columns", default=80)
"""How wide help is written; the hub runs each command in a context of its own."""

_INDENTED: dict[str, Any] = {"initial_indent": "      ", "subsequent_indent": "      "}


class Command(NamedTuple):
    """One command: how it reads, its options, and what runs."""

    name: str
    help: str
    add: Callable[[argparse.ArgumentParser], None]
    """Adds the command's own options."""
    run: Callable[[argparse.Namespace, Any], Awaitable[int]]
    """Arguments and the program's context to an exit code."""
    description: str = ""
    """The text of `--help`; without one it is `help`."""
    examples: tuple[tuple[str, str], ...] = ()
    """What follows the program's name, and what it does."""
    split: Callable[[list[str]], tuple[list[str], list[str]]] | None = None
    """Sets words aside before the others are parsed: they come as `arguments.rest`."""


class HelpRequested(Exception):
    """Help was asked for; `text` is the whole answer."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """As wide as the person's screen. With a width of its own it does not load shutil to ask for one."""

    def __init__(self, prog: str) -> None:
        columns = max(40, min(HELP_COLUMNS.get(), 120))
        super().__init__(prog, max_help_position=min(30, columns // 2), width=columns - 2)


class Parser(ProgramParser):
    """A wrong word is InvalidInput, `--help` is HelpRequested. Parsers made by `add_subparsers` are of this class."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", HelpFormatter)
        super().__init__(**settings)

    def error(self, message: str) -> NoReturn:
        raise InvalidInput(*self.explain(message))

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise HelpRequested(message or "")

    def print_help(self, file: object = None) -> NoReturn:
        raise HelpRequested(self.format_help())


def format_examples(program: str, examples: Iterable[tuple[str, str]], footer: str = "") -> str:
    """The end of `--help`; `examples` are (what follows the program's name, what it does)."""
    import textwrap

    lines = []
    for words, meaning in examples:
        lines.append(f"  {program} {words}")
        lines.extend(textwrap.wrap(meaning, max(30, min(HELP_COLUMNS.get(), 120) - 8), **_INDENTED))
    return "\n".join([*(["examples:", *lines, ""] if lines else []), footer])


def milliseconds(text: str) -> int:
    """The type of `--timeout`."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a number of milliseconds above 0, such as 30000; got {text[:40]!r}")
    return value


def count_between(minimum: int, maximum: int) -> Callable[[str], int]:
    """The type of an option that takes a whole number within limits."""

    def parse(text: str) -> int:
        if not text.isdecimal() or not minimum <= int(text) <= maximum:
            raise argparse.ArgumentTypeError(f"must be {minimum} to {maximum}, got {text[:40]!r}")
        return int(text)

    return parse
