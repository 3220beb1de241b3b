"""A command that is run and followed: its output line by line as it comes, all of it, then its exit code.

A reader that keeps asking loses nothing: while it is far behind the program waits. One that stays away for a while is
no reader any more, and the program goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct

from dari.daemon.stub import expose
from dari.errors import NotFound
from dari.terminal.api.approvals import approvable, approved_message
from dari.terminal.api.commands import start_command
from dari.terminal.limits import DEFAULT_WAIT_S, MAX_POLL_S, check_wait
from dari.terminal.multiplexer import Multiplexer
from dari.terminal.panes import events
from dari.terminal.panes.commands import TAIL_BYTES, CommandRecord
from dari.terminal.panes.execution import BUSY_S
from dari.terminal.panes.output_text import to_text
from dari.terminal.panes.pane import Pane

PIECE_BYTES = 256 * 1024
"""Of one answer."""
BEHIND_BYTES = TAIL_BYTES // 2
"""A reader so far behind makes the program wait; less than what a record keeps."""
GATHER_S = 0.02
QUIET_S = 0.25
"""A line without its end (a prompt, a progress bar) is sent after this time."""
AWAY_S = 3.0


class StartedCommand(Struct, frozen=True):
    """A command that was started."""

    command_id: str
    pane_id: str


class CommandOutput(Struct, frozen=True, kw_only=True):
    """Whole lines up to `mark`, and the line that was begun up to `seen`; `lost_bytes` before them were not kept."""

    mark: int
    seen: int
    text: str = ""
    unfinished: str = ""
    lost_bytes: int = 0
    is_running: bool = True
    exit_code: int | None = None


class FollowApi:
    def __init__(self, multiplexer: Multiplexer) -> None:
        self._all = multiplexer
        self._readers: dict[str, _Reader] = {}

    @expose("crux:command/start", "control", ends_with_caller=True)
    @approvable
    async def start(self, command: str, pane_id: str = "") -> StartedCommand:
        """Run a command at the prompt of a shell, and return at once; follow it, wait for it or interrupt it."""
        pane = await self._all.find_or_open(pane_id)
        if pane.kind is not None and pane.commands.zone == "running":
            await pane.commands.ready(BUSY_S)  # another short command
        record = await start_command(self._all, pane, command, approved_message())
        command_id = f"{pane.id}:{record.id}"
        self._reader(pane, record, command_id)
        return StartedCommand(command_id=command_id, pane_id=pane.id)

    @expose("crux:command/follow", "read", ends_with_caller=True)
    async def follow(
        self, command_id: str, mark: int = 0, seen: int = 0, timeout_s: float = DEFAULT_WAIT_S
    ) -> CommandOutput:
        """Lines that the command printed after the mark; a line without its end when there is more than was `seen`.

        At once when there is something, else as soon as there is; nothing after the time.
        """
        check_wait(timeout_s, MAX_POLL_S)
        pane_id, colon, own_id = command_id.partition(":")
        if not colon or pane_id not in self._all.panes:
            raise NotFound(f"no command has the id {command_id!r}", "use the command_id that crux_execute_command gave")
        pane = self._all.panes[pane_id]
        reader = self._reader(pane, pane.commands.find(own_id), command_id)
        return await reader.next(mark, max(mark, seen), timeout_s)

    def _reader(self, pane: Pane, record: CommandRecord, command_id: str) -> _Reader:
        found = self._readers.get(command_id)
        if found is None:
            found = self._readers[command_id] = _Reader(pane, record, lambda: self._readers.pop(command_id, None))
        return found


class _Reader:
    """Holds the program back while what it printed has not been read."""

    def __init__(self, pane: Pane, record: CommandRecord, forget: Callable[[], object]) -> None:
        self._pane, self._record = pane, record
        self._forget = forget
        self._read = 0
        self._is_held = False
        self._news = asyncio.Event()
        self._stop = pane.events.subscribe(self._hear)
        self._leaving = asyncio.get_running_loop().call_later(AWAY_S, self._leave)

    async def next(self, mark: int, seen: int, timeout_s: float) -> CommandOutput:
        self._leaving.cancel()
        try:
            return await self._next(mark, seen, timeout_s)
        finally:
            self._leaving = asyncio.get_running_loop().call_later(AWAY_S, self._leave)

    async def _next(self, mark: int, seen: int, timeout_s: float) -> CommandOutput:
        deadline = asyncio.get_running_loop().time() + timeout_s
        while not self._is_over and not self._has_more(seen):
            self._release()
            if not await self._within(deadline):
                return CommandOutput(mark=mark, seen=seen)
        if self._record.capture.total_bytes - mark < PIECE_BYTES:
            await self._until_over(GATHER_S)
        mark = mark or self._echo_bytes()
        data, lost = self._since(mark)
        if b"\n" not in data:
            await self._until_over(QUIET_S)
            data, lost = self._since(mark)
        begin, total = mark + lost, self._record.capture.total_bytes
        is_last = self._is_over and begin + len(data) >= total
        is_full = len(data) == PIECE_BYTES or begin + len(data) < total
        whole = len(data) if is_last else data.rfind(b"\n") + 1 or (len(data) if is_full else 0)
        self._read = begin + whole
        self._release()
        return CommandOutput(
            mark=self._read,
            seen=begin + len(data),
            text=self._rendered(data[:whole]),
            unfinished=self._rendered(data[whole:]).rpartition("\n")[2],
            lost_bytes=lost,
            is_running=not is_last,
            exit_code=self._record.exit_code if is_last else None,
        )

    def _since(self, mark: int) -> tuple[bytes, int]:
        """A piece of what is kept after the mark, and how much is not kept before it."""
        capture = self._record.capture
        data, lost = capture.since(mark)
        if len(data) < PIECE_BYTES and mark + lost + len(data) < capture.total_bytes:  # the beginning is kept apart
            more, gap = capture.since(mark + lost + len(data))
            data += b"" if gap else more
        return data[:PIECE_BYTES], lost

    @property
    def _is_over(self) -> bool:
        return self._record.done.is_set()

    def _has_more(self, seen: int) -> bool:
        if not self._record.has_begun and self._pane.kind != "sh":
            return False
        return self._record.capture.total_bytes > max(seen, self._echo_bytes())

    def _echo_bytes(self) -> int:
        """Of a shell that does not tell where output begins: it is after the echo of the line."""
        if self._pane.kind != "sh" or self._record.has_begun:
            return 0
        capture = self._record.capture
        return capture.since(0)[0].find(b"\n") + 1 or capture.total_bytes

    def _rendered(self, data: bytes) -> str:
        """As it looks on a terminal, a progress bar as it was at last; line ends at the end are kept."""
        cols, rows = self._record.size
        if not data.endswith(b"\n"):
            return to_text(data, cols, rows)
        text = to_text(data + b".", cols, rows)
        return text[:-1] if text.endswith(".") else to_text(data, cols, rows) + "\n"

    def _hear(self, event: events.PaneEvent) -> None:
        if isinstance(event, events.OutputShown | events.CommandStarted | events.CommandEnded | events.Exited):
            self._news.set()
        is_behind = self._record.capture.total_bytes - self._read > BEHIND_BYTES
        if is_behind and not self._is_held and not self._is_over:
            self._is_held = True
            self._pane.pause()

    def _release(self) -> None:
        if self._is_held and self._record.capture.total_bytes - self._read <= BEHIND_BYTES // 2:
            self._is_held = False
            self._pane.resume()

    def _leave(self) -> None:
        self._stop()
        self._forget()
        if self._is_held:
            self._is_held = False
            self._pane.resume()

    async def _within(self, deadline: float) -> bool:
        self._news.clear()
        try:
            async with asyncio.timeout_at(deadline):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    async def _until_over(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._record.done.wait()
        except TimeoutError:
            pass
