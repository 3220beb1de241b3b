"""The outermost edge of a command: an expected failure is an error with a hint and an exit code, never a traceback.

Loads nothing until something fails: `dari remote` and `crux` start in a few milliseconds.
"""

import os
import sys
from io import TextIOWrapper

TYPE_CHECKING = False  # `import typing` costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TextIO


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


def run_guarded(run: "Callable[[], int]", *, interrupted: int = INTERRUPTED, failed: int = 0) -> int:
    """The exit code of a command whose output has reached its file; an expected failure is printed on stderr.

    `interrupted` is the code after a Ctrl-C, also one that is pressed while modules are still being loaded. `failed` is
    the code of an expected failure, such as a stdout on a full disk, in a program with codes of its own; 0: that of the
    error. What stderr does not take is lost, and changes no code.
    """
    _open_closed_streams()
    stderr = sys.stderr
    sys.stderr = _LossyStderr(stderr)
    try:
        return _run_guarded(run, interrupted, failed)
    finally:
        sys.stderr = stderr
        _silence(stderr, 2)


def _run_guarded(run: "Callable[[], int]", interrupted: int, failed: int) -> int:
    try:
        try:
            return run()
        finally:
            _flush()
    except BrokenPipeError:  # `| head` has seen enough
        _silence(sys.stdout, 1)
        return 0
    except KeyboardInterrupt:
        _silence(sys.stdout, 1)
        return interrupted
    except Exception as error:
        from dari.os_errors import from_os_error

        failure = from_os_error(error)
        if failure is None:
            raise
        _silence(sys.stdout, 1)
        from dari.cli.kit.console import ProcessConsole, print_error

        print_error(ProcessConsole(), failure.message, failure.hint)
        return failed or failure.exit_code


class _LossyStderr:
    """A stderr for which no write fails: its disk may be full, its reader gone, and the command has more to do."""

    def __init__(self, stream: "TextIO") -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError:
            return len(text)

    def writelines(self, lines: "Iterable[str]") -> None:
        self.write("".join(lines))

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            pass

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


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


def _silence(stream: "TextIO", descriptor: int) -> None:
    """What is still in the buffer and cannot be written is dropped: the interpreter's own flush at the end would fail
    again, and make the exit code 120."""
    try:
        stream.flush()
    except OSError:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, descriptor)
        os.close(nothing)
