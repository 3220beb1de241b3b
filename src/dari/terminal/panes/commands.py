"""Commands of a shell: from what it tells about them to records with exit codes and their own output."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from dari.errors import NotFound
from dari.terminal.panes.output import to_text

HEAD_BYTES = 1 << 19
TAIL_BYTES = 3 << 19
MOST_RECORDS = 200
KEPT_BYTES = 16 << 20

Zone = Literal["unknown", "prompt", "input", "running"]
Status = Literal["done", "running"]


class Capture:
    """The bytes of one command's output: the beginning and the end of them when there are very many."""

    __slots__ = ("_head", "_head_size", "_tail", "_tail_size", "is_truncated", "total_bytes")

    def __init__(self) -> None:
        self._head: list[bytes] = []
        self._head_size = 0
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.is_truncated = False
        self.total_bytes = 0

    def add(self, data: bytes) -> None:
        self.total_bytes += len(data)
        if self._head_size < HEAD_BYTES:
            self._head.append(data)
            self._head_size += len(data)
            return
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail_size - len(self._tail[0]) > TAIL_BYTES:
            self._tail_size -= len(self._tail.popleft())
            self.is_truncated = True

    @property
    def size_bytes(self) -> int:
        return self._head_size + self._tail_size

    @property
    def data(self) -> bytes:
        gap = b"\r\n[... output left out here ...]\r\n" if self.is_truncated else b""
        return b"".join(self._head) + gap + b"".join(self._tail)

    def since(self, offset: int) -> tuple[bytes, int]:
        """Bytes that follow the first `offset` ones, and how many were left out before them as not kept any more."""
        if offset < self._head_size:
            return b"".join(self._head)[offset:], 0
        tail_start = self.total_bytes - self._tail_size
        start = max(offset, tail_start)
        return b"".join(self._tail)[start - tail_start :], start - offset

    def clear(self) -> None:
        self._head.clear()
        self._tail.clear()
        self.is_truncated = self.is_truncated or self.size_bytes > 0
        self._head_size = self._tail_size = self.total_bytes = 0


@dataclass(slots=True)
class CommandRecord:
    """One command that was run in a pane; `ended` (of `time.time()`) and `exit_code` are None while it runs."""

    id: str
    command: str
    cwd: str
    started: float
    size: tuple[int, int]
    ended: float | None = None
    exit_code: int | None = None
    capture: Capture = field(default_factory=Capture)
    done: asyncio.Event = field(default_factory=asyncio.Event)
    has_begun: bool = False
    begun_at: float = 0.0
    duration_s: float = 0.0
    _text: str | None = None

    @property
    def output(self) -> str:
        """What it has printed so far, as text."""
        if self._text is not None:
            return self._text
        data = self.capture.data
        if not self.has_begun:  # the shell does not tell where output begins: it is after the echo of the line
            data = data.partition(b"\n")[2]
        text = to_text(data, *self.size)
        if self.ended is not None:
            self._text = text
        return text

    @property
    def is_truncated(self) -> bool:
        return self.capture.is_truncated


@dataclass(frozen=True, slots=True)
class CommandResult:
    status: Status
    command_id: str
    exit_code: int | None
    output: str
    is_truncated: bool
    duration_s: float
    cwd: str


class CommandLog:
    """Follows a shell through its prompts. Only words with the pane's secret count, and each number only once."""

    def __init__(self, nonce: str, begins_by_itself: bool = True) -> None:
        self._nonce = nonce.encode()
        self._begins_by_itself = begins_by_itself
        self.zone: Zone = "unknown"
        self.records: deque[CommandRecord] = deque(maxlen=MOST_RECORDS)
        self.current: CommandRecord | None = None
        self.cwd = ""
        self.on_start: Callable[[CommandRecord], None] = lambda record: None
        self.on_end: Callable[[CommandRecord], None] = lambda record: None
        self.typed: Callable[[], str] = str
        self._number = 0
        self._code: int | None = None
        self._count = 0
        self._kept = 0  # bytes of output in finished records
        self._ready = asyncio.Event()
        self._entered = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()
        self._has_spoken = True
        self._expiry: asyncio.TimerHandle | None = None

    @property
    def has_shell(self) -> bool:
        """Whether somebody can speak the words that are listened for."""
        return bool(self._nonce)

    @property
    def is_ready(self) -> bool:
        """The shell waits for a command at its prompt."""
        return self.zone == "input" and self.current is None and self._expiry is None

    async def ready(self, timeout_s: float) -> bool:
        if self.is_ready:
            return True
        try:
            async with asyncio.timeout(timeout_s):
                await self._ready.wait()
        except TimeoutError:
            return False
        return True

    def expect(self, patience_s: float) -> None:
        """Somebody pressed Enter or ^C at the prompt: nobody knows whether it is one until the shell has spoken."""
        if self._expiry is not None:
            self._expiry.cancel()
        self._expiry = asyncio.get_running_loop().call_later(patience_s, self._settle, False)
        self._ready.clear()
        self._settled.clear()

    async def settled(self) -> bool:
        """Wait for the shell to say what became of a line that somebody entered; False when it says nothing."""
        await self._settled.wait()
        has_spoken, self._has_spoken = self._has_spoken, True
        return has_spoken

    def _settle(self, has_spoken: bool = True) -> None:
        self._has_spoken = has_spoken
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        self._settled.set()
        if self.is_ready:
            self._ready.set()

    @property
    def is_entering(self) -> bool:
        """A command was typed, and the shell has not yet said that it runs it."""
        return self._begins_by_itself and self.zone == "input" and self.current is not None

    async def entered(self, timeout_s: float) -> None:
        """Wait until the shell has begun the command that was typed, or had nothing to run."""
        if self.is_entering:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._entered.wait()
            except TimeoutError:
                pass

    def send(self, command: str, cwd: str, size: tuple[int, int]) -> CommandRecord:
        """A record for a command that is about to be typed at the prompt."""
        record = self._new(command, cwd, size)
        self._code = None
        self._ready.clear()
        self._entered.clear()
        return record

    def _new(self, command: str, cwd: str, size: tuple[int, int]) -> CommandRecord:
        self._count += 1
        record = CommandRecord(f"cmd-{self._count}", command, cwd, time.time(), size)
        record.begun_at = time.perf_counter()
        self.current = record
        if len(self.records) == MOST_RECORDS:
            self._kept -= self.records[0].capture.size_bytes
        self.records.append(record)
        return record

    def hear(self, payload: bytes, size: tuple[int, int]) -> None:
        """A word of the shell: `<secret>;<letter>[;<number>[;<exit code>;<directory>]]`."""
        words = payload.split(b";", 4)
        if not self._nonce or words[0] != self._nonce or len(words) < 2:
            return
        letter = words[1]
        if letter == b"B":
            self._prompted()
        elif letter == b"C" and len(words) > 2 and words[2] == b"%d" % self._number:
            self._began(size)
        elif letter == b"D" and len(words) > 4 and words[2].isdigit() and int(words[2]) > self._number:
            self._number = int(words[2])
            self._code = _number(words[3])
            self.cwd = words[4].decode(errors="replace")
            self.zone = "prompt"

    def _began(self, size: tuple[int, int]) -> None:
        self.zone = "running"
        self._settle()
        self._ready.clear()
        self._entered.set()
        record = self.current
        if record is None:
            record = self._new(self.typed(), self.cwd, size)
        if not record.has_begun:  # a pasted text of several lines begins with each of them
            record.has_begun = True
            record.capture.clear()
            record.capture.is_truncated = False
            record.begun_at = time.perf_counter()
            self.on_start(record)

    def _prompted(self) -> None:
        if self.zone == "input" and (self.current is None or self._code is None):
            return  # the prompt was drawn again
        if self.zone == "running":
            return  # a prompt without a word about the command before it: drawn by something else
        self.zone = "input"
        self._settle()
        if self.current is not None and self._code is not None:
            self.finish(self._code)
        self._ready.set()

    def finish(self, code: int | None) -> None:
        """The current command ended; also when its shell did."""
        self._settle()
        record, self.current = self.current, None
        if record is None:
            return
        if not record.has_begun and self._begins_by_itself:
            record.capture.clear()  # nothing was run: a comment or an empty line
            record.capture.is_truncated = False
        record.exit_code = code
        record.ended = time.time()
        record.duration_s = time.perf_counter() - record.begun_at
        self._forget_old(record.capture.size_bytes)
        self.on_end(record)
        record.done.set()
        self._entered.set()

    def find(self, command_id: str) -> CommandRecord:
        for record in self.records:
            if record.id == command_id:
                return record
        raise NotFound(f"there is no command {command_id} in this pane", "use the command_id that execute returned")

    def result(self, record: CommandRecord) -> CommandResult:
        is_done = record.done.is_set()
        return CommandResult(
            status="done" if is_done else "running",
            command_id=record.id,
            exit_code=record.exit_code,
            output=record.output,
            is_truncated=record.is_truncated,
            duration_s=record.duration_s if is_done else time.perf_counter() - record.begun_at,
            cwd=(self.cwd or record.cwd) if is_done else record.cwd,
        )

    def _forget_old(self, added: int) -> None:
        self._kept += added
        for record in self.records if self._kept > KEPT_BYTES else ():
            if record.done.is_set() and record.capture.size_bytes:
                self._kept -= record.capture.size_bytes
                record.capture.clear()
                record._text = ""
            if self._kept <= KEPT_BYTES:
                break


def _number(word: bytes) -> int | None:
    try:
        return int(word)
    except ValueError:
        return None
