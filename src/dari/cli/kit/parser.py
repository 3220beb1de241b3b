"""argparse that belongs to a command, not to a process: it raises instead of printing and leaving."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from difflib import get_close_matches
from typing import Any, NamedTuple, NoReturn

from dari.errors import InvalidInput

HELP_COLUMNS: ContextVar[int] = ContextVar("columns", default=80)
"""How wide help is written; each command runs in a context of its own."""

EXIT_CODES = """\
exit codes:
  0 done · 1 usage, validation or configuration · 2 network, authentication, time or start of a server
  3 the tool or the server answered with an error · 4 interrupted, or anything else"""


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
    """Help was asked for; it is the whole answer."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        columns = max(40, min(HELP_COLUMNS.get(), 120))
        super().__init__(prog, max_help_position=min(30, columns // 2), width=columns - 2)


class Parser(argparse.ArgumentParser):
    """A wrong word is InvalidInput, `--help` is `Shown`. Parsers made by `add_subparsers` are of this class too."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", _Formatter)
        settings.setdefault("allow_abbrev", False)
        super().__init__(**settings)

    def error(self, message: str) -> NoReturn:
        raise InvalidInput(message, self._meant(message) or f"see: {self.prog} --help")

    def _meant(self, message: str) -> str:
        """What an option that we do not have may be a slip of; how to give a value that looks like an option."""
        if message.endswith(": expected one argument"):
            option = message.removeprefix("argument ").partition(":")[0].rpartition("/")[2]
            return f"a value that begins with a dash is given as {option}=VALUE; see: {self.prog} --help"
        said, _, words = message.partition("unrecognized arguments: ")
        if said or not words.startswith("--"):
            return ""
        likely = get_close_matches(words.split()[0].partition("=")[0], self._option_string_actions, n=1)
        return f"did you mean {likely[0]}? see: {self.prog} --help" if likely else ""

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise HelpRequested(message or "")

    def print_help(self, file: object = None) -> NoReturn:
        raise HelpRequested(self.format_help())


def epilog(program: str, examples: Iterable[tuple[str, str]]) -> str:
    """`examples` are (what follows the program's name, what it does)."""
    lines = []
    for words, meaning in examples:
        lines.append(f"  {program} {words}")
        lines.extend(textwrap.wrap(meaning, max(30, min(HELP_COLUMNS.get(), 120) - 8), **_INDENTED))
    return "\n".join([*(["examples:", *lines, ""] if lines else []), EXIT_CODES])


_INDENTED: dict[str, Any] = {"initial_indent": "      ", "subsequent_indent": "      "}


def add_common(parser: argparse.ArgumentParser) -> None:
    """The options that every command takes, before its name as well."""
    common = parser.add_argument_group("common options")
    common.add_argument("--log", action="store_true", help="tell on stderr what is sent where, and how long it took")
    common.add_argument("--config", metavar="FILE", help="accepted for CrewX; profiles are read from mcp.json files")
    common.add_argument("--no-daemon", action="store_true", help="run in this process instead of the warm daemon")


def milliseconds(text: str) -> int:
    """The type of `--timeout`."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no time; give milliseconds, such as 30000")
    return value
