"""The daemon's side of the reapers: starts them, tells them which children live, replaces one that has ended.

Two of them do the same, so that one of them, killed together with us, takes no protection away. Their ends are
watched; one that cannot be replaced, when the other is gone too, is the end of the children.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from dari.errors import Unavailable
from dari.log import format_event
from dari.process import reaper_main
from dari.process.exit_watch import watch_exit
from dari.process.tag import ProcessTag

COUNT = 2
MAX_QUICK_STARTS = 6
"""A reaper that is killed again and again within `QUICK_S` is started anew after a pause."""
QUICK_S = 10.0
PAUSE_S = 5.0

_log = logging.getLogger("dari.bridge")


class Reapers:
    """The reapers of all children of this process. Nothing here waits but `close`."""

    def __init__(self, *, is_needed: bool = True, on_lost: Callable[[], None] | None = None) -> None:
        """`on_lost` is called when no reaper is left and none can be started."""
        self._is_needed = is_needed
        self._on_lost = on_lost
        self._processes: list[subprocess.Popen[bytes] | None] = [None] * COUNT
        self._stop_watching: list[Callable[[], None] | None] = [None] * COUNT
        self._starts_s: list[float] = []
        self._retry: asyncio.TimerHandle | None = None
        self._tags: dict[str, ProcessTag] = {}
        self._groups: dict[str, int] = {}
        self._folders: dict[str, Path] = {}

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(one.pid for one in self._processes if one is not None)

    def watch(self, tag: ProcessTag) -> None:
        """Before the child is started: from here on it cannot outlive us. Unavailable when there is no reaper."""
        self._tags[tag.token] = tag
        self._say(f"watch {tag.token} {tag.brand}")
        self._complete()

    def group(self, tag: ProcessTag, group: int) -> None:
        self._groups[tag.token] = group
        self._say(f"group {tag.token} {group}")

    def folder(self, tag: ProcessTag, path: Path) -> None:
        """A temporary folder that goes away with the child."""
        self._folders[tag.token] = path
        self._say(f"folder {tag.token} {path}")

    def forget(self, tag: ProcessTag) -> None:
        """Once nothing of the child is left."""
        self._groups.pop(tag.token, None)
        self._folders.pop(tag.token, None)
        if self._tags.pop(tag.token, None) is not None:
            self._say(f"forget {tag.token}")

    def tags(self) -> dict[str, int]:
        return {tag.token: tag.brand for tag in self._tags.values()}

    def release(self) -> None:
        """Call before `close`, in the event loop: their ends are not reported any more."""
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        for number, stop in enumerate(self._stop_watching):
            if stop is not None:
                stop()
                self._stop_watching[number] = None

    def close(self) -> None:
        """They kill whatever is still watched, then end."""
        processes, self._processes = self._processes, [None] * COUNT
        for process in processes:
            if process is not None:
                assert process.stdin is not None
                process.stdin.close()
        for process in processes:
            if process is not None:
                process.wait()

    def _complete(self) -> None:
        """Start those that are missing. Unavailable when not a single one runs then."""
        if not self._is_needed:
            return
        problem: Unavailable | None = None
        for number in range(COUNT):
            if self._processes[number] is None:
                try:
                    self._start(number)
                except Unavailable as error:
                    problem = error
        if problem is None:
            return
        if not self.pids:
            raise problem
        _log.warning(format_event("child", "reaper", f"one is missing: {problem.message}"))
        self._retry_later()

    def _start(self, number: int) -> None:
        loop = asyncio.get_running_loop()
        command = [sys.executable, "-IS", reaper_main.__file__]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise Unavailable(
                f"the reaper of child processes does not start: {error.strerror}", f"does {sys.executable} run?"
            ) from None
        self._starts_s = [*(at for at in self._starts_s if loop.time() - at < QUICK_S), loop.time()]
        assert process.stdin is not None
        os.set_blocking(process.stdin.fileno(), False)
        self._processes[number] = process
        self._stop_watching[number] = watch_exit(process, lambda: self._ended(number, process))
        lines = [f"watch {tag.token} {tag.brand}" for tag in self._tags.values()]
        lines += [f"group {token} {group}" for token, group in self._groups.items()]
        lines += [f"folder {token} {path}" for token, path in self._folders.items()]
        if lines and not self._say_to(number, "\n".join(lines)):
            raise Unavailable("the reaper of child processes ended at once", f"does {sys.executable} run?")

    def _ended(self, number: int, process: subprocess.Popen[bytes]) -> None:
        """One was killed: the next takes its place now, not when the next child is started."""
        if self._processes[number] is not process:
            return
        self._drop(number)
        if not self._tags:
            return  # the next child brings new ones
        _log.warning(format_event("child", "reaper", f"pid={process.pid} was killed and is replaced"))
        if len(self._starts_s) > MAX_QUICK_STARTS + COUNT:
            self._retry_later()
            if not self.pids:
                self._lose()
            return
        try:
            self._complete()
        except Unavailable as error:
            _log.error(format_event("child", "reaper", f"{error.message}; the children are ended"))
            self._lose()

    def _lose(self) -> None:
        if self._on_lost is not None:
            self._on_lost()

    def _retry_later(self) -> None:
        if self._retry is None:
            self._retry = asyncio.get_running_loop().call_later(PAUSE_S, self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        if self._tags:
            try:
                self._complete()
            except Unavailable as error:
                _log.error(format_event("child", "reaper", error.message))
                self._lose()

    def _drop(self, number: int) -> None:
        """End one that is of no use, and reap it."""
        process, self._processes[number] = self._processes[number], None
        stop, self._stop_watching[number] = self._stop_watching[number], None
        if stop is not None:
            stop()
        if process is not None:
            process.kill()
            process.wait()
            assert process.stdin is not None
            process.stdin.close()

    def _say(self, text: str) -> None:
        for number in range(COUNT):
            self._say_to(number, text)

    def _say_to(self, number: int, text: str) -> bool:
        """False when the reaper cannot receive it any more: ended, or stopped with its pipe full."""
        process = self._processes[number]
        if process is None:
            return False
        assert process.stdin is not None
        data = f"{text}\n".encode("utf-8", "surrogateescape")
        try:
            if process.poll() is None and os.write(process.stdin.fileno(), data) == len(data):
                return True
        except OSError:
            pass
        self._drop(number)
        return False


_SET_CHILD_SUBREAPER = 36


@cache
def become_subreaper() -> bool:
    """For the life of this process. False where the system has no such thing."""
    if sys.platform != "linux":
        return False
    try:
        return bool(ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (AttributeError, OSError):
        return False
