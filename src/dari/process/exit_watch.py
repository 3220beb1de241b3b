"""The end of a process as an event of the loop: a pidfd on Linux, a kqueue on macOS, a look now and then elsewhere."""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
from collections.abc import Callable
from typing import Any

_POLL_S = 0.02


def watch_exit(popen: subprocess.Popen[bytes], on_exit: Callable[[], None]) -> Callable[[], None]:
    """Call `on_exit` once our child has ended, without reaping it; returns what stops the watch.

    Unlike `Process.wait()` of asyncio, a grandchild that keeps the child's stdout open does not delay it.
    """
    loop = asyncio.get_running_loop()
    if hasattr(os, "pidfd_open"):
        try:
            descriptor = os.pidfd_open(popen.pid)
        except OSError:
            pass  # a kernel before 5.3, or a seccomp filter around us
        else:
            return _watch_descriptor(loop, descriptor, lambda: os.close(descriptor), on_exit)
    if hasattr(select, "kqueue"):
        return _watch_queue(loop, popen, on_exit)
    return _poll(loop, popen, on_exit)


def _watch_descriptor(
    loop: asyncio.AbstractEventLoop, descriptor: int, close: Callable[[], None], on_exit: Callable[[], None]
) -> Callable[[], None]:
    is_watching = True

    def stop() -> None:
        nonlocal is_watching
        if is_watching:
            is_watching = False
            loop.remove_reader(descriptor)
            close()

    def ended() -> None:
        stop()
        on_exit()

    loop.add_reader(descriptor, ended)
    return stop


def _watch_queue(
    loop: asyncio.AbstractEventLoop, popen: subprocess.Popen[bytes], on_exit: Callable[[], None]
) -> Callable[[], None]:
    kernel: Any = select  # type checkers on Linux know no kqueue
    queue = kernel.kqueue()
    event = kernel.kevent(popen.pid, filter=kernel.KQ_FILTER_PROC, flags=kernel.KQ_EV_ADD, fflags=kernel.KQ_NOTE_EXIT)
    try:
        queue.control([event], 0)
    except OSError:  # it has ended before we could look
        queue.close()
        return _poll(loop, popen, on_exit)
    return _watch_descriptor(loop, queue.fileno(), queue.close, on_exit)


def _poll(
    loop: asyncio.AbstractEventLoop, popen: subprocess.Popen[bytes], on_exit: Callable[[], None]
) -> Callable[[], None]:
    timer: asyncio.TimerHandle | None = None
    is_stopped = False

    def look() -> None:
        nonlocal timer
        if is_stopped:
            return
        if _has_ended(popen):
            on_exit()
        else:
            timer = loop.call_later(_POLL_S, look)

    def stop() -> None:
        nonlocal is_stopped
        is_stopped = True
        if timer is not None:
            timer.cancel()

    timer = loop.call_later(0, look)
    return stop


def _has_ended(popen: subprocess.Popen[bytes]) -> bool:
    if not hasattr(os, "waitid"):
        return popen.poll() is not None  # Windows, where a number stays ours while a handle is open
    try:
        return os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True
