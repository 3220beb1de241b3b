"""Whether a child works or only waits: the processor time and the bytes of its whole process tree (Linux)."""

from __future__ import annotations

from typing import NamedTuple, Self

from dari.bridge.children.marks import children_of

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
