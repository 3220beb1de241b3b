"""Output as it comes: each call waits for what follows a mark, so that a reader at any distance can follow.

While a command runs the mark counts the bytes of its own output (no prompt, no echo); otherwise the bytes of the pane.
"""

from __future__ import annotations

import asyncio
import re
from typing import Literal

from msgspec import Struct

from dari.daemon.stub import expose
from dari.errors import NotFound
from dari.terminal.api.approvals import approvable, approved_message
from dari.terminal.api.commands import start_command
from dari.terminal.limits import DEFAULT_WAIT_S, MAX_POLL_S, check_wait
from dari.terminal.multiplexer import Multiplexer
from dari.terminal.panes import events
from dari.terminal.panes.commands import CommandRecord
from dari.terminal.panes.expect import make_matcher
from dari.terminal.panes.output_text import to_stream
from dari.terminal.panes.pane import Pane

CHUNK_BYTES = 64 * 1024
"""Of one event."""
GATHER_S = 0.05
"""Output comes in many pieces; those within this time are sent together."""
QUIET_S = 0.25
"""A line without its end (a prompt, a progress bar) is sent after this time."""
REST_CHARS = 4096


class StreamEvent(Struct, frozen=True, omit_defaults=True, kw_only=True):
    event: Literal["output", "exit"]
    pane_id: str
    text: str = ""
    exit_code: int | None = None
    command_id: str = ""


class StreamChunk(Struct, frozen=True, kw_only=True):
    """What came since a mark; `matched` is the line that the stream was to stop at."""

    events: list[StreamEvent]
    mark: int
    command_id: str = ""
    matched: str = ""
    lost_bytes: int = 0
    rest: str = ""
    """The beginning of a line whose end has not come, for the next call."""


class StreamStart(Struct, frozen=True, kw_only=True):
    pane_id: str
    mark: int
    command_id: str = ""


class StreamsApi:
    def __init__(self, multiplexer: Multiplexer) -> None:
        self._all = multiplexer

    @expose("crux:stream/begin", "control", is_slow=True)
    @approvable
    async def begin(self, pane_id: str = "", command: str = "", until: str = "", is_regex: bool = True) -> StreamStart:
        """Where to follow from: the output of `command`, which is run, or of what runs now, from here on.

        `until` is what `follow` will look for: a pattern that is none is refused before anything runs.
        """
        if until:
            make_matcher(until, is_regex)
        if not command:
            pane = self._all.find(pane_id)
            current = pane.commands.current
            if current is None:
                return StreamStart(pane_id=pane.id, mark=pane.position)
            return StreamStart(pane_id=pane.id, mark=current.capture.total_bytes, command_id=f"{pane.id}:{current.id}")
        pane = await self._all.find_or_open(pane_id)
        record = await start_command(self._all, pane, command, approved_message())
        return StreamStart(pane_id=pane.id, mark=0, command_id=f"{pane.id}:{record.id}")

    @expose("crux:stream/follow", "read", ends_with_caller=True)
    async def follow(
        self,
        pane_id: str,
        mark: int,
        command_id: str = "",
        timeout_s: float = DEFAULT_WAIT_S,
        until: str = "",
        is_regex: bool = True,
        rest: str = "",
    ) -> StreamChunk:
        """What came after the mark: at once when there is something, else as soon as there is; empty after the time.

        An event `exit` is the last one of a command, or of the pane. `until` is looked for in each line.
        """
        check_wait(timeout_s, MAX_POLL_S)
        matcher = make_matcher(until, is_regex) if until else None
        pane = self._all.find(pane_id)
        follower = _Follower(pane, self._record(pane, command_id), mark)
        data, lost = await follower.next(timeout_s)
        text = _text(data, not rest)
        new_events = [StreamEvent(event="output", pane_id=pane.id, text=text)] if text else []
        code = follower.ended()
        own_id = f"{pane.id}:{follower.record.id}" if follower.record is not None else ""
        if code is not None:
            new_events.append(StreamEvent(event="exit", pane_id=pane.id, exit_code=code, command_id=own_id))
        seen = rest + text
        found = matcher.search(seen) if matcher is not None and text else None
        matched = ""
        if found is not None:
            line_end = seen.find("\n", found[1])
            matched = seen[seen.rfind("\n", 0, found[0]) + 1 : line_end if line_end >= 0 else None]
        return StreamChunk(
            events=new_events,
            mark=follower.mark,
            command_id=own_id,
            matched=matched,
            lost_bytes=lost,
            rest=seen[seen.rfind("\n") + 1 :][-REST_CHARS:],
        )

    def _record(self, pane: Pane, command_id: str) -> CommandRecord | None:
        if not command_id:
            return None
        owner, _, own_id = command_id.partition(":")
        if owner != pane.id:
            raise NotFound(f"pane {pane.id} has no command {command_id!r}", "use the command_id of this pane")
        return pane.commands.find(own_id)


class _Follower:
    """Reads on from one mark, in a command's output or in a pane's."""

    def __init__(self, pane: Pane, record: CommandRecord | None, mark: int) -> None:
        self.pane = pane
        self.record = record
        self.mark = mark

    async def next(self, timeout_s: float) -> tuple[bytes, int]:
        news = asyncio.Event()
        stop = self.pane.events.subscribe(lambda event: self._hear(event, news))
        try:
            deadline = asyncio.get_running_loop().time() + timeout_s
            while not self._available() and not self._is_over():
                if not await _within(news, deadline):
                    return b"", 0
            if not self._is_over():
                await asyncio.sleep(GATHER_S)
            data, lost = self._read()
            whole = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
            if not whole and not self._is_over() and len(data) < CHUNK_BYTES:
                news.clear()
                await _within(news, asyncio.get_running_loop().time() + QUIET_S)
                data, lost = self._read()
                whole = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
            taken = data[:whole] if whole and not self._is_over() else data
            self._advance(len(taken), lost)
            return taken, lost
        finally:
            stop()

    def ended(self) -> int | None:
        """The exit code, once everything before it was read."""
        if self._available() or not self._is_over():
            return None
        code = self.record.exit_code if self.record is not None else self.pane.exit_code
        return -1 if code is None else code

    def _hear(self, event: events.PaneEvent, news: asyncio.Event) -> None:
        if isinstance(event, events.CommandStarted) and self.record is None:
            self.record, self.mark = self.pane.commands.find(event.command_id), 0
        if isinstance(event, events.OutputShown | events.CommandStarted | events.CommandEnded | events.Exited):
            news.set()

    def _is_over(self) -> bool:
        return not self.pane.is_alive if self.record is None else self.record.done.is_set()

    def _available(self) -> bool:
        if self.record is not None:
            return self.record.capture.total_bytes > self.mark and bool(self._read()[0])
        return bool(self.pane.shown_since(self.mark))

    def _read(self) -> tuple[bytes, int]:
        if self.record is None:
            data = b"".join([piece for _, piece in self.pane.shown_since(self.mark)])
            return data[:CHUNK_BYTES], 0
        if not self.record.has_begun and self.pane.kind != "sh":
            return b"", 0
        data, lost = self.record.capture.since(self.mark)
        if not self.record.has_begun and self.mark == 0:
            # This shell does not tell where output begins: it is after the echo of the line.
            echo = data.find(b"\n") + 1
            if not echo:
                return b"", 0
            self.mark += echo
            data = data[echo:]
        return data[:CHUNK_BYTES], lost

    def _advance(self, size: int, lost: int) -> None:
        if self.record is not None:
            self.mark += size + lost
            return
        for start, piece in self.pane.shown_since(self.mark):
            if size <= len(piece):
                self.mark = start + size
                return
            size -= len(piece)
            self.mark = start + len(piece)


_STRING = re.compile(rb"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_RETURNS = re.compile(rb"(\A|\n)(?:\x1b\[[0-9;?]*[hlm]|\x1b\(B)*\r+(?=[^\r\n])")


def _text(data: bytes, begins_line: bool) -> str:
    """As the text that went by; a return where a line begins (fish sends one before each output) goes nowhere."""
    if b"\r" not in data:
        return to_stream(data)
    plain = _RETURNS.sub(rb"\1", (b"" if begins_line else b".") + _STRING.sub(b"", data))
    return to_stream(plain if begins_line else plain[1:])


async def _within(news: asyncio.Event, deadline: float) -> bool:
    try:
        async with asyncio.timeout_at(deadline):
            await news.wait()
    except TimeoutError:
        return False
    news.clear()
    return True
