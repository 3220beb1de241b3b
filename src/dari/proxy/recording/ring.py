"""The newest flows in memory, and the numbered log that they make.

A flow adds two marks to the log: one when it began (one record) and one when it finished (four records at most).
The numbers of those records are taken at that moment, so `after_seq` is exact; the records themselves are made
when somebody reads them, because making them costs 34 µs and doubles the price of a request.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import islice

from msgspec import Struct

from dari.proxy.flow import Flow

MAX_FLOWS = 10_000
FINISH_RECORDS = 4
"""Numbers taken at the end of a flow: request body, response headers, entry, response body. Some stay unused."""

# Dropping flows one block at a time keeps an append O(1), and a block is freed in well under a millisecond.
_BLOCK = 128


class Slot(Struct, eq=False, gc=False):
    """A flow with its numbers: `seq` is 0 when its beginning was cleared away, `end_seq` until it finished."""

    flow: Flow
    seq: int = 0
    end_seq: int = 0

    @property
    def first_seq(self) -> int:
        return self.seq or self.end_seq


class Note:
    """A line of plain text in the log, such as `LAN_ACCESS_REQUEST ip=…`."""

    __slots__ = ("seq", "message", "ts_unix_ms", "level")

    def __init__(self, seq: int, message: str, ts_unix_ms: int, level: int) -> None:
        self.seq = seq
        self.message = message
        self.ts_unix_ms = ts_unix_ms
        self.level = level


Mark = Slot | Note


class Ring:
    """One writer, the event loop. Holds `capacity` flows, and up to a block more for a moment."""

    def __init__(self, capacity: int = MAX_FLOWS) -> None:
        self.capacity = capacity
        self.last_seq = 0
        self.on_finished: list[Callable[[Slot], None]] = []
        """Called with each flow that ends. Empty most of the time: a wait adds itself."""
        self.on_change: list[Callable[[], None]] = []
        """Called when a flow begins or ends and when all is cleared; likewise empty most of the time."""
        self.clears = 0
        self._slots: dict[int, Slot] = {}
        self._seqs: list[int] = []
        self._marks: list[Mark] = []
        self._block = min(_BLOCK, capacity)
        self._trim_at = self._block

    def __len__(self) -> int:
        return min(len(self._slots), self.capacity)

    def began(self, flow: Flow) -> None:
        self.last_seq = seq = self.last_seq + 1
        self._slots[flow.id] = slot = Slot(flow, seq)
        self._seqs.append(seq)
        self._marks.append(slot)
        if len(self._marks) > self._trim_at:
            self._trim()
        if self.on_change:
            self._note_change()

    def finished(self, flow: Flow) -> None:
        slot = self._slots.get(flow.id)
        if slot is None or slot.flow is not flow:  # cleared or pushed out while it ran, yet its end is news
            self._slots[flow.id] = slot = Slot(flow)
        elif slot.end_seq:
            return
        slot.end_seq = seq = self.last_seq + 1
        self.last_seq = seq + FINISH_RECORDS - 1
        self._seqs.append(seq)
        self._marks.append(slot)
        if len(self._marks) > self._trim_at:
            self._trim()
        if self.on_finished:
            for listener in tuple(self.on_finished):
                listener(slot)
        if self.on_change:
            self._note_change()

    def note(self, message: str, level: int = 2) -> None:
        """Add a line of text to the log."""
        self.last_seq = seq = self.last_seq + 1
        self._seqs.append(seq)
        self._marks.append(Note(seq, message, int(time.time() * 1000), level))
        if len(self._marks) > self._trim_at:
            self._trim()

    def get(self, flow_id: int) -> Slot | None:
        return self._slots.get(flow_id)

    def newest(self) -> list[Flow]:
        """Every flow, the highest id first; a copy that may be read in another thread."""
        newest = sorted(self._slots, reverse=True)[: self.capacity]
        return [self._slots[flow_id].flow for flow_id in newest]

    def marks_after(self, after_seq: int) -> Iterator[tuple[int, Mark]]:
        """(first seq, mark), oldest first, from the first mark that has a number above `after_seq`."""
        index = bisect_right(self._seqs, after_seq)
        if index and self._seqs[index - 1] + FINISH_RECORDS > after_seq:
            index -= 1  # the four records of an end may be read in two parts
        for place in range(index, len(self._marks)):
            yield self._seqs[place], self._marks[place]

    def marks_newest(self) -> Iterator[tuple[int, Mark]]:
        """The same marks from the newest on."""
        return zip(reversed(self._seqs), reversed(self._marks), strict=True)

    def clear(self) -> list[tuple[int, Mark]]:
        """Forget every flow and line, and return the marks that were there; numbers go on."""
        gone = list(zip(self._seqs, self._marks, strict=True))
        self._slots.clear()
        self._seqs.clear()
        self._marks.clear()
        self._trim_at = self._block
        self.note_clear()
        return gone

    def note_clear(self) -> None:
        """What was read before is worth nothing now; who follows reads anew."""
        self.clears += 1
        self._note_change()

    @property
    def oldest_seq(self) -> int:
        """The lowest number that is still there; the next one when there is none."""
        return self._seqs[0] if self._seqs else self.last_seq + 1

    def _note_change(self) -> None:
        for listener in tuple(self.on_change):
            listener()

    def _trim(self) -> None:
        excess = len(self._slots) - self.capacity
        if excess > 0:
            for flow_id in list(islice(self._slots, excess)):
                del self._slots[flow_id]
        excess = len(self._marks) - 2 * self.capacity
        if excess > 0:
            del self._marks[:excess]
            del self._seqs[:excess]
        self._trim_at = len(self._marks) + self._block
