"""A command in the foreground: its own terminal, its own signals, its own exit code."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
AFTER_TERM_S = 5.0
NOT_FOUND, NOT_EXECUTABLE = 127, 126


class Signals:
    """What reaches us is the command's while it runs; before that it ends us, afterwards nothing interrupts."""

    def __init__(self) -> None:
        self._task = asyncio.current_task()
        self._process: asyncio.subprocess.Process | None = None
        self._is_over = False
        self.ended_by: int | None = None
        """The signal that came before the command could start."""

    def __enter__(self) -> Signals:
        loop = asyncio.get_running_loop()
        for number in (*_FROM_TERMINAL, *_FORWARDED):
            with suppress(RuntimeError, ValueError):  # not the main thread
                loop.add_signal_handler(number, self._arrived, number)
        return self

    def __exit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for number in (*_FROM_TERMINAL, *_FORWARDED):
            with suppress(RuntimeError, ValueError):
                loop.remove_signal_handler(number)

    def belong_to(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    def over(self) -> None:
        """The command has ended: what is left to do is done to its end."""
        self._process, self._is_over = None, True

    def _arrived(self, number: int) -> None:
        if self._process is not None:
            # Ctrl-C goes to every process in the foreground of the terminal; a second one would mean "at once".
            if number in _FROM_TERMINAL and _is_foreground():
                return
            with suppress(ProcessLookupError):
                self._process.send_signal(number)
        elif not self._is_over:
            # What was begun at crabd is known to us only when its reply has come, so the first one waits for that.
            if self.ended_by is not None and self._task is not None:
                self._task.cancel()
            self.ended_by = number


async def run_child(words: Sequence[str], environment: Mapping[str, str], signals: Signals) -> int:
    """Run it to its end; its exit code, with 128 added to the number of a signal that ended it."""
    try:
        process = await asyncio.create_subprocess_exec(*words, env=dict(environment))
    except OSError as error:
        print(f"dari proxy run: cannot run {words[0]}: {error.strerror}", file=sys.stderr)
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
    signals.belong_to(process)
    try:
        code = await process.wait()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(AFTER_TERM_S):
                await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        raise
    finally:
        signals.over()
    return code if code >= 0 else 128 - code


def _is_foreground() -> bool:
    for descriptor in (0, 1, 2):
        with suppress(OSError):
            return os.tcgetpgrp(descriptor) == os.getpgrp()
    return False
