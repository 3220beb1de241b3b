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
MAX_SHOWN_CHARS = 60
_UNRECOGNIZED = "unrecognized arguments: "
_REQUIRED = "the following arguments are required: "
_ONE_OF, _GOT = " must be one of ", ", got "
_NEEDS_VALUE = " needs a value"
_TYPES = {int: "a whole number", float: "a number"}


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

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            value = super()._get_value(action, arg_string)
            if not isinstance(value, float) or float("-inf") < value < float("inf"):
                return value
            raise OverflowError  # `nan` and `inf` are numbers to Python, and no deadline can be one
        except (argparse.ArgumentError, OverflowError) as error:
            if isinstance(error.__context__, argparse.ArgumentTypeError):
                raise  # its text says what is required
            kind = _TYPES.get(action.type, "as the help says")  # type: ignore[call-overload]
            raise argparse.ArgumentError(action, f"must be {kind}{_GOT}{_shown(arg_string)}") from None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            text = f"{_ONE_OF.lstrip()}{', '.join(map(str, action.choices))}{_GOT}{_shown(str(value))}"
            raise argparse.ArgumentError(action, text)

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
        fact = self._name_missing(message) if message.startswith(_REQUIRED) else to_plain_words(message)
        return fact, f"{self._suggest(message, fact)}see: {self.prog} --help"

    def _name_missing(self, message: str) -> str:
        """The words that may stand in the place of the first one that is missing, or its name."""
        missing = message.removeprefix(_REQUIRED).split(", ")[0]
        for action in self._actions:
            if action.choices is not None and missing in (action.metavar, action.dest):
                return f"{self.prog} needs one of {', '.join(map(str, action.choices))}"
        return f"{missing} is missing"

    def _suggest(self, message: str, fact: str) -> str:
        """What a wrong option or value may be a slip of; how to give a value that looks like an option."""
        from dari.cli.kit.hints import closest

        meant = ""
        if fact.endswith(_NEEDS_VALUE):
            return f"a value that begins with a dash is given as {fact.removesuffix(_NEEDS_VALUE)}=VALUE; "
        if _ONE_OF in fact:
            choices, _, word = fact.partition(_ONE_OF)[2].rpartition(_GOT)
            meant = closest(word.strip("'"), choices.split(", "))
        elif message.startswith(f"{_UNRECOGNIZED}-"):
            word = message.removeprefix(_UNRECOGNIZED).split()[0].partition("=")[0]
            meant = closest(word, self._option_string_actions)
        return f"did you mean {meant}? " if meant else ""


def nonempty(text: str) -> str:
    """The type of an option that takes a name: an empty one is a variable of the shell that was not set."""
    if not text:
        raise argparse.ArgumentTypeError("must be a name, got ''")
    return text


def nonnegative(text: str) -> float:
    """The type of an option that takes 0 or more."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number, 0 or more, got {text[:40]!r}")
    return value


def to_plain_words(message: str) -> str:
    """What argparse says, as the rest of the program says it: the requirement, then what was given."""
    if message.startswith(_UNRECOGNIZED):
        word = message.removeprefix(_UNRECOGNIZED).split(" ")[0]
        if word.startswith("-"):
            return f"unknown option {_shown(word.partition('=')[0])}"
        return f"unexpected argument {_shown(word)}"
    if not message.startswith("argument "):
        return message
    name, _, text = message.removeprefix("argument ").partition(": ")
    if name.startswith("-"):
        name = max(name.split("/"), key=len)  # of `-n/--limit` the long one
    if text == "expected one argument":
        return f"{name}{_NEEDS_VALUE}"
    return f"{name} {text}" if text.startswith("must ") else f"{name}: {text}"


def _shown(word: str) -> str:
    return repr(word if len(word) <= MAX_SHOWN_CHARS else f"{word[:MAX_SHOWN_CHARS]}…")


def make_formatter(prog: str) -> argparse.HelpFormatter:
    """One with a width: each argument that is added makes one, which else loads shutil and every compression."""
    try:
        columns = int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(1).columns
    except (ValueError, OSError):
        columns = 0
    return argparse.RawDescriptionHelpFormatter(prog, width=max(30, (columns or 80) - 2))
