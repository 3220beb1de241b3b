"""The outermost edge of a command: what the operating system refuses is an error with a hint, never a traceback.

Loads nothing until something fails: `dari remote` and `crux` start in a few milliseconds.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # `import typing` costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable


def run_guarded(run: Callable[[], int]) -> int:
    """The exit code of a command whose output has reached its file; an expected failure is printed on stderr."""
    try:
        try:
            return run()
        finally:
            _flush()
    except BrokenPipeError:  # `| head` has seen enough
        _silence()
        return 0
    except Exception as error:
        from dari.os_errors import from_os_error

        failure = from_os_error(error)
        if failure is None:
            raise
        _silence()
        sys.stderr.write(f"error: {failure.message}\n" + (f"hint: {failure.hint}\n" if failure.hint else ""))
        return failure.exit_code


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
