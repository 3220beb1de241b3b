"""The parser of a program: a wrong word is one line with the fact and one with the next step, on stderr.

`dari`, its groups and the daemons use `ProgramParser` itself, which leaves the process as argparse does; the commands
of `dari.cli.kit.parser` raise instead. Loads nothing but argparse until something is wrong: `dari --version` uses it.
"""

from __future__ import annotations

import argparse
import os
import sys

TYPE_CHECKING = False  # `import typing` costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

WRONG_USE = 2
_INVALID_CHOICE = ": invalid choice: "
_UNRECOGNIZED = "unrecognized arguments: "


class ProgramParser(argparse.ArgumentParser):
    """Exits with `exit_code` for what it does not understand, and names the option or word that was probably meant.

    Parsers made by `add_subparsers` are of the same class, and complain about their own words: argparse leaves that to
    the outermost one, which knows none of their options.
    """

    exit_code = WRONG_USE

    def __init__(self, *, is_nested: bool = False, **settings: Any) -> None:
        settings.setdefault("formatter_class", make_formatter)
        settings.setdefault("allow_abbrev", False)
        super().__init__(**settings)
        self._is_nested = is_nested

    def add_subparsers(self, **settings: Any) -> Any:
        kind = type(self)
        settings.setdefault("parser_class", lambda **given: kind(is_nested=True, **given))
        return super().add_subparsers(**settings)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        found, extra = super().parse_known_args(args, namespace)
        if extra and self._is_nested:
            self.error(_UNRECOGNIZED + " ".join(extra))
        return found, extra

    def error(self, message: str) -> NoReturn:
        from dari.cli.kit.console import ProcessConsole, print_error

        print_error(ProcessConsole(), *self.explain(message))
        sys.exit(self.exit_code)

    def _print_message(self, message: str, file: Any = None) -> None:
        """argparse drops a help text that cannot be written, and the exit code is 0."""
        if message:
            (file or sys.stderr).write(message)

    def explain(self, message: str) -> tuple[str, str]:
        """What was wrong, and the next step."""
        return message, f"{self._suggest(message)}see: {self.prog} --help"

    def _suggest(self, message: str) -> str:
        """What a wrong option or value may be a slip of; how to give a value that looks like an option."""
        from dari.cli.kit.hints import closest

        if message.endswith(": expected one argument"):
            option = message.removeprefix("argument ").partition(":")[0].rpartition("/")[2]
            return f"a value that begins with a dash is given as {option}=VALUE; "
        if _INVALID_CHOICE in message:
            word, _, choices = message.partition(_INVALID_CHOICE)[2].partition(" (choose from ")
            meant = closest(word.strip("'"), [one.strip(" '") for one in choices.removesuffix(")").split(",")])
            return f"did you mean {meant}? " if meant else ""
        before, found, words = message.partition(_UNRECOGNIZED)
        if found and not before and words.startswith("-"):
            meant = closest(words.split()[0].partition("=")[0], self._option_string_actions)
            return f"did you mean {meant}? " if meant else ""
        return ""


def make_formatter(prog: str) -> argparse.HelpFormatter:
    """One with a width: each argument that is added makes one, which else loads shutil and every compression."""
    try:
        columns = int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(1).columns
    except (ValueError, OSError):
        columns = 0
    return argparse.RawDescriptionHelpFormatter(prog, width=max(30, (columns or 80) - 2))
