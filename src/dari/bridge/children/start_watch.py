"""Watches a child while it starts: gives its turn back when it only waits, and tells how a download goes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple, Self

from msgspec import Struct

from dari.bridge.children.channel import SupervisedChannel
from dari.bridge.children.downloads import MAX_DOWNLOAD_S, PackageDownload
from dari.bridge.children.start_queue import StartTurn
from dari.process.tag import children_of

MIN_TICKS = 5
"""A tick is 10 ms; a timer of an idle runtime uses less between two looks."""
MIN_BYTES = 16 * 1024
MAX_PROCESSES = 256


class Activity(NamedTuple):
    """Counters that only grow while a process lives."""

    ticks: int
    bytes: int

    def is_progress_since(self, before: Self) -> bool:
        """A process of the tree that has ended takes its numbers with it: any drop is a sign of life, too."""
        ticks, size = self.ticks - before.ticks, self.bytes - before.bytes
        return ticks >= MIN_TICKS or size >= MIN_BYTES or ticks < 0 or size < 0


def activity_of(pid: int) -> Activity | None:
    """None where the system does not tell."""
    ticks = size = 0
    pending, seen = [pid], {pid}
    found = False
    while pending and len(seen) <= MAX_PROCESSES:
        one = pending.pop()
        try:
            with open(f"/proc/{one}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
            found = True
            with open(f"/proc/{one}/io", "rb") as file:
                for line in file:
                    name, _, value = line.partition(b":")
                    if name in (b"rchar", b"wchar"):
                        size += int(value)
        except (OSError, IndexError, ValueError):
            pass  # it has ended, or is not ours to look at
        new = children_of(one) - seen
        seen |= new
        pending += new
    return Activity(ticks, size) if found else None


LOOK_S = 0.5
NOTE_S = 10.0
TURN_QUIET_S = 2.0
"""A child that did nothing for so long does not need the processor."""
FIRST_QUIET_S = 60.0
"""How long a download may stand still: npm waits 10 s between two attempts."""
UNSEEN_QUIET_S = 180.0
"""The same where the work cannot be seen: dockerd does it, or the system has no /proc."""
_ELSEWHERE = ("docker", "nerdctl")


class StartLimits(Struct, frozen=True):
    """How long a start may take, in seconds."""

    init_s: float
    download: PackageDownload | None = None
    is_first: bool = False
    """It has never answered: whatever it runs may have to be fetched."""

    @property
    def whole_s(self) -> float:
        """The end of every start."""
        return self.init_s if self.download is None else max(self.init_s, MAX_DOWNLOAD_S)

    def quiet_s(self, *, can_be_seen: bool) -> float:
        """How long a command that downloads may show no sign of work."""
        if not self.is_first:
            return self.init_s
        is_elsewhere = self.download is not None and self.download.program.split(" ")[0] in _ELSEWHERE
        return max(self.init_s, FIRST_QUIET_S if can_be_seen and not is_elsewhere else UNSEEN_QUIET_S)


class StartWatch:
    """`async with StartWatch(channel, limits, turn, on_note)` around the start of one child."""

    def __init__(
        self,
        channel: SupervisedChannel,
        limits: StartLimits,
        turn: StartTurn | None = None,
        on_note: Callable[[str], None] | None = None,
    ) -> None:
        self._channel = channel
        self._limits = limits
        self._turn = turn
        self._on_note = on_note
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.get_running_loop().create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        limits = self._limits
        began_s = worked_s = loop.time()
        next_note_s = began_s + min(1.0, NOTE_S)
        before: Activity | None = None
        heard_bytes = 0
        while True:
            await asyncio.sleep(LOOK_S)
            now_s = loop.time()
            child = self._channel.child
            now = None if child is None else activity_of(child.pid)
            said_bytes = 0 if child is None else child.tail.received_bytes
            if now is not None and (before is None or now.is_progress_since(before)):
                before, worked_s = now, now_s
            if said_bytes != heard_bytes:
                heard_bytes, worked_s = said_bytes, now_s
            quiet_s = now_s - worked_s
            if self._turn is not None and (quiet_s >= TURN_QUIET_S or now_s - began_s >= limits.init_s):
                self._turn.give_back()
            if limits.download is None or child is None:
                continue
            if now_s - began_s > limits.init_s and quiet_s > limits.quiet_s(can_be_seen=now is not None):
                self._channel.give_up(f"did not answer; it has shown no sign of work for {quiet_s:.0f} s")
                return
            if limits.is_first and self._on_note is not None and now_s >= next_note_s:
                next_note_s = now_s + NOTE_S
                self._on_note(self._progress(limits.download, now_s - began_s))

    def _progress(self, download: PackageDownload, so_far_s: float) -> str:
        lines = self._channel.last_words().splitlines()
        said = f'; it says: "{lines[-1][:200]}"' if lines else ""
        return f"{download}, its first start here: {so_far_s:.0f} s of at most {MAX_DOWNLOAD_S:.0f} s{said}"
