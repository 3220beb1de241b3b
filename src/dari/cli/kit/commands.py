"""Commands of a program with many: a table of names, and modules that are loaded when a command is used.

`kebab` and `dari remote` are two such programs. Each module has its `Command`s in `COMMANDS`.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from dari.cli.kit.hints import suggest
from dari.cli.kit.parser import HELP_COLUMNS, Command, Parser, format_examples
from dari.errors import InvalidInput

OVERVIEW_OPTIONS = ("--help", "--version")
"""What a program with commands takes in place of one."""


class CommandEntry(NamedTuple):
    """One line of `--help`; without help it is not listed."""

    name: str
    module: str
    help: str = ""


class CommandLoader:
    """Loads commands from the modules of a package, and makes their parsers."""

    def __init__(
        self, package: str, exit_codes: str, add_common_options: Callable[[argparse.ArgumentParser], None]
    ) -> None:
        self._package = package
        self._exit_codes = exit_codes
        self._add_common_options = add_common_options
        self._parser = lru_cache(maxsize=64)(self._make_parser)

    def load(self, entry: CommandEntry) -> Command:
        commands: tuple[Command, ...] = importlib.import_module(f"{self._package}.{entry.module}").COMMANDS
        return next(command for command in commands if command.name == entry.name)

    def parser_of(self, entry: CommandEntry, program: str) -> Parser:
        """The parser of one command: its own options, then those of every command. Kept: to make one takes longer than
        a call."""
        return self._parser(entry, program, HELP_COLUMNS.get())

    def _make_parser(self, entry: CommandEntry, program: str, columns: int) -> Parser:
        command = self.load(entry)
        parser = Parser(
            prog=f"{program} {command.name}",
            description=command.description or command.help,
            epilog=format_examples(program, command.examples, self._exit_codes),
        )
        command.add(parser)
        self._add_common_options(parser)
        return parser


def find_command(name: str, entries: Iterable[CommandEntry], program: str) -> CommandEntry:
    """The entry of this name; InvalidInput with the nearest one."""
    known = list(entries)
    for entry in known:
        if entry.name == name:
            return entry
    if name.startswith("-"):
        raise InvalidInput(f"unknown option {name[:60]!r}", suggest(name, OVERVIEW_OPTIONS, program))
    listed = [entry.name for entry in known if entry.help]
    spelled = name.replace("_", "-") if any("-" in one for one in listed) else name
    raise InvalidInput(f"unknown command '{name[:60]}'", suggest(spelled, listed, program))


def list_commands(entries: Iterable[CommandEntry]) -> list[str]:
    """The lines of an overview."""
    listed = [entry for entry in entries if entry.help]
    width = max(len(entry.name) for entry in listed)
    return [f"  {entry.name.ljust(width)}  {entry.help}" for entry in listed]
