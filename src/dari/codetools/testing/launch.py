"""Run a test framework: behind the launcher, with its events beside its output, all of it bounded."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from dari.codetools.engines.locate import EngineProgram
from dari.codetools.session import CodeSession
from dari.codetools.testing import launch_main
from dari.codetools.testing.report import RunLog
from dari.process.run import ProgramRun

MAX_OUTPUT_BYTES = 256 << 20
MAX_CAPTURED_BYTES = 256 << 20
"""Of one file that a framework captures output in: tests that print for ever would fill the disk."""
MAX_LINE_BYTES = 1 << 20
TAIL_BYTES = 8192
# Between asking the test process for its stack and ending it.
STACK_GRACE_S = 0.5
# Between the framework's last word and its end, of a process that waits, and of one that works.
EXIT_GRACE_S = 10.0
MAX_EXIT_S = 120.0
_WATCH_EVERY_S = 0.5
STACK_SIGNAL = getattr(signal, "SIGRTMIN", 0) and signal.SIGRTMIN + 13


class TestLaunch(Struct, frozen=True):
    """What every framework's run has in common."""

    session: CodeSession
    cwd: Path
    timeout_s: float
    env: Mapping[str, str]


class OutputLines:
    """stdout as it comes: whole lines to `on_line`, and the end of it kept."""

    def __init__(self, on_line: Callable[[bytes], None] | None = None) -> None:
        self._on_line = on_line
        self._pending = b""
        self._tail = b""

    @property
    def tail(self) -> str:
        return self._tail.decode("utf-8", "replace")

    def feed(self, data: bytes) -> None:
        self._tail = (self._tail + data)[-TAIL_BYTES:]
        if self._on_line is None:
            return
        *lines, rest = (self._pending + data).split(b"\n")
        for line in lines:
            self._on_line(line[:MAX_LINE_BYTES])
        self._pending = rest[: MAX_LINE_BYTES + 1]

    def close(self) -> None:
        if self._pending and self._on_line is not None:
            self._on_line(self._pending)
            self._pending = b""


async def launch(
    what: TestLaunch,
    engine: EngineProgram,
    arguments: Sequence[str],
    output: OutputLines,
    log: RunLog,
    *,
    captures: Callable[[], Sequence[tuple[int, int]]] = tuple,
    is_over: Callable[[], bool] = lambda: False,
    is_direct: bool = False,
    is_merged: bool = False,
) -> ProgramRun:
    """`captures`: process and descriptor of files that hold output. A run that was ended says so in `log.stopped`.

    `is_over`: the framework has announced its end; what keeps the process after it (a thread, an open handle) is ended.
    `is_merged`: stderr comes with stdout, in the order in which they were written.
    `is_direct`: without the launcher, for programs that ask nothing of tests (a version, a list).
    """
    started = asyncio.get_running_loop().time()
    launcher = (
        sys.executable,
        "-I",
        "-S",
        str(launch_main.__file__),
        f"{what.timeout_s:.3f}",
        "merge" if is_merged else "apart",
    )
    behind = EngineProgram(
        engine.name, engine.command if is_direct else (*launcher, *engine.command), engine.origin, engine.env
    )
    running = asyncio.ensure_future(
        what.session.run(
            behind,
            arguments,
            what.cwd,
            timeout_s=what.timeout_s + STACK_GRACE_S,
            max_output_bytes=MAX_OUTPUT_BYTES,
            env=what.env,
            on_output=output.feed,
        )
    )
    over_at = 0.0
    ending = _Activity(lambda: [pid for pid, _ in captures()])
    try:
        while not (await asyncio.wait({running}, timeout=_WATCH_EVERY_S))[0]:
            now = asyncio.get_running_loop().time()
            over_at = over_at or (now if is_over() else 0.0)
            if over_at and now - over_at > EXIT_GRACE_S and not (now - over_at < MAX_EXIT_S and ending.is_busy()):
                log.note(
                    f"something kept the test process alive {now - over_at:.0f} s after its last test: it was ended"
                )
                return ProgramRun(0, b"", "", "stopped")
            if _captured_bytes(captures()) > MAX_CAPTURED_BYTES:
                log.stopped = "output_limit"
                return ProgramRun(-signal.SIGKILL, b"", "", "output_limit")
        run = running.result()
    finally:
        if not running.done():
            running.cancel()
            await asyncio.wait({running})
        log.duration_s += asyncio.get_running_loop().time() - started
    output.close()
    if run.end == "timed_out" or (STACK_SIGNAL and run.returncode == -STACK_SIGNAL):
        log.stopped = "timed_out"
    elif run.end == "output_limit":
        log.stopped = "output_limit"
    return run


class _Activity:
    """Whether processes work: a slow end on a busy machine is not a hang."""

    def __init__(self, pids: Callable[[], Sequence[int]]) -> None:
        self._pids = pids
        self._ticks: dict[int, int] = {}
        """What each that runs has used."""

    def is_busy(self) -> bool:
        """Since the last time it was asked; a process that has ended since then was. Linux alone can tell."""
        ticks: dict[int, int] = {}
        is_waiting_for_turn = False
        for pid in set(self._pids()):
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            ticks[pid] = int(fields[11]) + int(fields[12])
            is_waiting_for_turn |= fields[0] in "RD"
        has_worked = ticks != self._ticks
        self._ticks = ticks
        return has_worked or is_waiting_for_turn


def signal_name(returncode: int) -> str:
    """How a process ended, in words."""
    if returncode >= 0:
        return f"exit code {returncode}"
    return next((known.name for known in signal.Signals if known == -returncode), f"signal {-returncode}")


def _captured_bytes(files: Sequence[tuple[int, int]]) -> int:
    largest = 0
    for pid, file in files:
        try:
            largest = max(largest, os.stat(f"/proc/{pid}/fd/{file}").st_size)
        except OSError:
            continue  # ended, or another system
    return largest
