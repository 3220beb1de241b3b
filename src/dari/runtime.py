"""A command from its first line to its exit code: the loop, failures as messages, no surprise at the end."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import logging
import os
from collections.abc import Awaitable, Callable

from dari.errors import DariError
from dari.log import format_event
from dari.os_errors import from_os_error

PANIC_EXIT = 101
_log = logging.getLogger("dari")


def run_to_exit(main: Callable[[], Awaitable[int]]) -> int:
    """Run a command on uvloop where it is installed; failures become a message and an exit code."""
    _open_standard_descriptors()
    # SIGSEGV and the like leave the Python stack of every thread on stderr, which is the log of a daemon. 2, not
    # `sys.stderr`: whatever becomes of that object, this is the file.
    faulthandler.enable(2)
    gc.freeze()
    gc.enable()
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(_awaited(main))
    except DariError as error:
        _log.error("%s", error.message + (f"\nhint: {error.hint}" if error.hint else ""))
        return error.exit_code if error.exit_code == 1 else 1
    except KeyboardInterrupt:
        return 0
    except Exception as failure:
        refused = from_os_error(failure)
        if refused is not None:
            _log.error("%s\nhint: %s", refused.message, refused.hint)
            return 1
        _log.exception(format_event("process", "fatal"))
        return PANIC_EXIT


MAX_OPEN_FILES = 65_536


def raise_file_limit() -> int:
    """Let this process open as many files as the system allows, MAX_OPEN_FILES at most; the limit that holds now.

    A shell gives 1024 (macOS: 256), which a proxy with 500 connections uses up. Only for a program that starts no
    programs of the user's: they would inherit the limit.
    """
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(MAX_OPEN_FILES, hard)
    if soft == resource.RLIM_INFINITY or soft >= most:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (OSError, ValueError):  # macOS refuses more than its kern.maxfilesperproc
        return soft
    return most


def tune_gc_for_serving() -> None:
    """For a program that has loaded what it needs and now serves: what is here stays, and is not looked through again.

    A tenth of the time of a busy gateway went into looking for garbage among its modules and schemas.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


def _open_standard_descriptors() -> None:
    """A program started with one of them closed would get it as the number of its next file; libuv aborts on that."""
    opened = os.open(os.devnull, os.O_RDWR)
    while opened <= 2:
        opened = os.open(os.devnull, os.O_RDWR)
    os.close(opened)


async def _awaited(main: Callable[[], Awaitable[int]]) -> int:
    return await main()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
