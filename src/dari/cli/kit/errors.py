"""The outermost edge of a command: an expected failure is an error with a hint and an exit code, never a traceback.

Loads nothing until something fails: `dari remote` and `crux` start in a few milliseconds.
"""

import os
import sys
from io import TextIOWrapper

TYPE_CHECKING = False  # `import typing` costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class ExitCodes:
    """The exit codes of one program, by the name of an error.

    An error that `by_name` does not list has its own `exit_code`, if that is one of `known`, else `other`.
    """

    def __init__(self, by_name: "Mapping[str, int]", *, known: tuple[int, ...] = (), other: int) -> None:
        self._by_name = by_name
        self._known = known
        self._other = other

    def of(self, error: BaseException) -> int:
        name = getattr(error, "name", "")
        if name in self._by_name:
            return self._by_name[name]
        code: int = getattr(error, "exit_code", self._other)
        return code if code in self._known else self._other


INTERRUPTED = 130
"""As a shell has it for a program that Ctrl-C ended."""


def run_guarded(run: "Callable[[], int]", *, interrupted: int = INTERRUPTED) -> int:
    """The exit code of a command whose output has reached its file; an expected failure is printed on stderr.

    `interrupted` is the code after a Ctrl-C, also one that is pressed while modules are still being loaded.
    """
    _open_closed_streams()
    try:
        try:
            return run()
        finally:
            _flush()
    except BrokenPipeError:  # `| head` has seen enough
        _silence()
        return 0
    except KeyboardInterrupt:
        _silence()
        return interrupted
    except Exception as error:
        from dari.os_errors import from_os_error

        failure = from_os_error(error)
        if failure is None:
            raise
        _silence()
        from dari.cli.kit.console import ProcessConsole, print_error

        print_error(ProcessConsole(), failure.message, failure.hint)
        return failure.exit_code


def _open_closed_streams() -> None:
    """Python has None for a stream that was closed at the start (`>&-`): what goes there is dropped instead."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            try:
                os.fstat(number)
            except OSError:
                os.open(os.devnull, os.O_RDWR)  # the lowest number that is free is this one
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))
    # A help text, or the name of a file, may hold what the terminal's encoding lacks: it is escaped.
    if sys.stdout.errors == "strict" and isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _flush() -> None:
    try:
        sys.stdout.flush()
    except OSError as error:
        error.filename = error.filename or "standard output"
        raise


def _silence() -> None:
    """What is still in the buffer cannot be written: the interpreter's own flush at the end must not complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
