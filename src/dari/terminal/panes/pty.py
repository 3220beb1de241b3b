"""A pseudo-terminal: bytes out of it in large pieces, bytes into it in order, never more than its share of time;
and what runs in it, asked of the kernel."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import shlex
import struct
import subprocess
import sys
import termios
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal
from weakref import WeakKeyDictionary

from dari.errors import Conflict, TimedOut

logger = logging.getLogger("dari.terminal")
TURN_S = 0.004
CROWD_TURN_S = 0.002
CROWD_PIECE_BYTES = 16 * 1024
PAUSE_S = 0.0003  # for each but one
MAX_PAUSE_S = 0.006
BUSY_S = 0.1
BUSY_BYTES = 64 * 1024  # printed within half of that time: it will go on
PIECE_BYTES = 64 * 1024
MIN_PIECE_BYTES = 4 * 1024
SMALL_BYTES = 1024
MAX_QUEUED_BYTES = 1 << 20
WRITE_S = 10.0


class Pump:
    """Serves the terminals that have much to say, in turns that are short for all of them together.

    One of them alone is read as fast as it prints. Several get turns of 2 ms with a pause after each, in which their
    programs fill the kernel's buffers and then wait: twenty panes that print at full speed would else take both the
    processors and the loop from one that a person types in (a command there took 50 ms, with pauses 5 to 13).
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._loud: deque[Pty] = deque()
        self._busy: dict[Pty, float] = {}  # until when each counts as one that prints much
        self._is_scheduled = False

    def add(self, pty: Pty) -> None:
        self._loud.append(pty)
        self._schedule()

    def remove(self, pty: Pty) -> None:
        self._busy.pop(pty, None)
        if pty in self._loud:
            self._loud.remove(pty)

    def note_busy(self, pty: Pty) -> bool:
        """It has just printed much; whether it is not the only one."""
        now = time.perf_counter()
        self._busy[pty] = now + BUSY_S
        if len(self._busy) > 1:
            self._busy = {each: until for each, until in self._busy.items() if until > now}
        return len(self._busy) > 1

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            if others := len(self._loud) - 1:
                self._loop.call_later(min(others * PAUSE_S, MAX_PAUSE_S), self._turn)
            else:
                self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._is_scheduled = False
        began = time.perf_counter()
        is_crowd = len(self._loud) > 1
        turn_s, piece_bytes = (CROWD_TURN_S, CROWD_PIECE_BYTES) if is_crowd else (TURN_S, PIECE_BYTES)
        drained: list[Pty] = []
        while self._loud:
            pty = self._loud.popleft()
            has_more = pty.read_piece(piece_bytes)
            if not pty.is_loud:
                pass  # the receiver has paused it, or it has ended
            elif has_more:
                self._loud.append(pty)
            elif is_crowd and self._busy.get(pty, 0.0) > began:
                drained.append(pty)  # it goes on printing: looked at in the next turn, without the selector
            else:
                pty.listen()
            if time.perf_counter() - began >= turn_s:
                break
        self._loud.extend(pty for pty in drained if pty.is_loud)
        if self._loud:
            self._schedule()


_pumps: WeakKeyDictionary[asyncio.AbstractEventLoop, Pump] = WeakKeyDictionary()


class Pty:
    """Owns the master side. `on_data` gets output in pieces, `on_end` is called once after the last one."""

    def __init__(self, cols: int, rows: int) -> None:
        self.master, self.slave = os.openpty()
        self.tty = os.ttyname(self.slave)
        os.set_blocking(self.master, False)
        os.set_inheritable(self.master, False)
        self.resize(cols, rows)
        self._set_erase()
        self.on_data: Callable[[bytes], None] = lambda data: None
        self.on_end: Callable[[], None] = lambda: None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: deque[memoryview] = deque()
        self._queued = 0
        self._drained: asyncio.Future[None] | None = None
        self._pump: Pump | None = None
        self._piece_bytes = PIECE_BYTES
        self.is_open = True
        self._is_reading = False
        self.is_loud = False
        """The pump reads, not the loop's selector."""
        self._is_crowded = False  # it printed much a moment ago, and so did others
        self._counted_since = 0.0
        self._counted = 0
        self._has_failed = False

    def _set_erase(self) -> None:
        """The kernel's line editor then understands what terminals send for Backspace, and UTF-8."""
        modes = termios.tcgetattr(self.slave)
        modes[6][termios.VERASE] = b"\x7f"
        modes[0] |= getattr(termios, "IUTF8", 0)
        termios.tcsetattr(self.slave, termios.TCSANOW, modes)

    def attach(self) -> None:
        """Begin to read, on the running loop. The program holds the slave side now, so ours is closed."""
        self._loop = asyncio.get_running_loop()
        self._pump = _pumps.setdefault(self._loop, Pump(self._loop))
        os.close(self.slave)
        self.resume()

    def pause(self) -> None:
        """Stop reading: the kernel's buffer fills and the program waits."""
        if self._is_reading and self._loop is not None and self._pump is not None:
            self._is_reading = False
            self._pump.remove(self)
            if self.is_loud:
                self.is_loud = False
            else:
                self._loop.remove_reader(self.master)

    def resume(self) -> None:
        if self.is_open and not self._is_reading:
            self._is_reading = True
            self.is_loud = True
            self.listen()

    def listen(self) -> None:
        """Nothing more to read: let the selector tell when there is."""
        if self._is_reading and self.is_loud and self._loop is not None:
            self.is_loud = False
            self._loop.add_reader(self.master, self._readable)

    def _readable(self) -> None:
        has_more = self.read_piece(is_patient=False)
        if self._pump is None or self._loop is None or not self._is_reading:
            return
        if has_more or self._is_crowded:
            self._loop.remove_reader(self.master)
            self.is_loud = True
            self._pump.add(self)

    def read_piece(self, most_bytes: int = PIECE_BYTES, *, is_patient: bool = True) -> bool:
        """Take up to one piece of output; whether there may be more. Where the loop tells of the rest, there is no need
        to look for it after little was read."""
        most_bytes = min(most_bytes, self._piece_bytes)
        parts: list[bytes] = []
        size = 0
        has_ended = has_more = False
        while True:
            try:
                part = os.read(self.master, PIECE_BYTES)
            except BlockingIOError:
                break
            except OSError:  # EIO: no program has the terminal open any more
                has_ended = True
                break
            if not part:
                has_ended = True
                break
            parts.append(part)
            size += len(part)
            if size >= most_bytes:
                has_more = True
                break
            if not is_patient and len(part) < SMALL_BYTES:
                break
        if parts:
            began = time.perf_counter()
            self._hand_on(parts[0] if len(parts) == 1 else b"".join(parts))
            if has_more:
                self._adapt(time.perf_counter() - began)
            self._count(began, size)
        if has_ended:
            self.pause()
            self.on_end()
        return has_more and self._is_reading

    def _hand_on(self, data: bytes) -> None:
        """A fault of the receiver costs this piece, and no turn of the pump, which other panes wait for."""
        try:
            self.on_data(data)
        except Exception:
            if not self._has_failed:  # once: the next thousand pieces may fail alike
                self._has_failed = True
                logger.exception("output of %s could not be taken in", self.tty)

    def _count(self, now: float, size: int) -> None:
        if now - self._counted_since > BUSY_S / 2:
            self._counted_since, self._counted = now, 0
        self._counted += size
        self._is_crowded = self._counted >= BUSY_BYTES and self._pump is not None and self._pump.note_busy(self)

    def _adapt(self, took_s: float) -> None:
        """An engine that needs long for a piece gets smaller ones: the fallback parses a few MB/s."""
        if took_s > TURN_S:
            self._piece_bytes = max(MIN_PIECE_BYTES, self._piece_bytes // 2)
        elif took_s < TURN_S / 4:
            self._piece_bytes = min(PIECE_BYTES, self._piece_bytes * 2)

    def read_now(self) -> None:
        """Read available output without waiting for the loop's turn; nothing while paused."""
        if self._is_reading:
            self.read_piece()

    def finish(self) -> None:
        """Read the remaining output after the program ended; later output of its children is not waited for."""
        pieces = 256
        while self._is_reading and pieces and self.read_piece():
            pieces -= 1

    def send(self, data: bytes) -> None:
        """Put bytes into the program's input now or as soon as it reads; Conflict when far too much waits."""
        if not self.is_open:
            raise Conflict("the program of this pane has ended", "open a new pane")
        if self._queued + len(data) > MAX_QUEUED_BYTES:
            raise Conflict(
                f"{self._queued} bytes wait for a program that does not read its input",
                "wait for it, interrupt it, or send less at a time",
            )
        if not self._queue:
            data = data[self._write(data) :]
        if data:
            if not self._queue and self._loop is not None:
                self._loop.add_writer(self.master, self._flush)
            self._queue.append(memoryview(data))
            self._queued += len(data)

    async def drain(self) -> None:
        """Wait until the kernel has taken everything."""
        if not self._queue:
            return
        if self._drained is None or self._drained.done():
            self._drained = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait_for(asyncio.shield(self._drained), WRITE_S)
        except TimeoutError:
            raise TimedOut(
                f"the program did not read its input for {WRITE_S:.0f} s", "wait for it, or interrupt it"
            ) from None

    @property
    def queued(self) -> int:
        return self._queued

    def _write(self, data: bytes | memoryview) -> int:
        try:
            return os.write(self.master, data)
        except BlockingIOError:
            return 0
        except OSError:
            return len(data)  # nobody is there to read it

    def _flush(self) -> None:
        while self._queue:
            first = self._queue[0]
            sent = self._write(first)
            self._queued -= sent
            if sent < len(first):
                self._queue[0] = first[sent:]
                return
            self._queue.popleft()
        if self._loop is not None:
            self._loop.remove_writer(self.master)
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def resize(self, cols: int, rows: int) -> None:
        """Tell the kernel, which tells the foreground program (SIGWINCH)."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, cols * 8, rows * 16))

    @property
    def foreground_group(self) -> int | None:
        try:
            return os.tcgetpgrp(self.master)
        except OSError:
            return None

    @property
    def has_echo(self) -> bool:
        """Whether the kernel shows what is typed; a prompt for a password turns it off, an editor does too."""
        return bool(self._flags() & termios.ECHO)

    @property
    def has_signals(self) -> bool:
        """Whether ^C interrupts rather than being a key."""
        return bool(self._flags() & termios.ISIG)

    @property
    def is_canonical(self) -> bool:
        """Whether the kernel edits lines, as for programs without a line editor of their own."""
        return bool(self._flags() & termios.ICANON)

    @property
    def has_unread_input(self) -> bool:
        """Whether something was typed that no program has read yet. Only the program's side of the terminal says it."""
        if self._queue:
            return True
        try:
            slave = os.open(self.tty, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            return any(fcntl.ioctl(slave, termios.FIONREAD, bytes(4)))
        except OSError:
            return False
        finally:
            os.close(slave)

    @property
    def echo_teller(self) -> Literal["kernel", "editor"] | None:
        """What echoes the typing now: the kernel, a program that reads keys itself, or nothing (a password)."""
        flags = self._flags()  # once: a shell that turns both off between two looks would seem to ask for a password
        return "kernel" if flags & termios.ECHO else None if flags & termios.ICANON else "editor"

    async def become_canonical(self, timeout_s: float) -> None:
        """Wait a little for the kernel to collect lines again. Nothing tells of it, so it is looked at."""
        for _ in range(round(timeout_s * 1000)):
            if self.is_canonical:
                return
            await asyncio.sleep(0.001)

    def _flags(self) -> int:
        try:
            return int(termios.tcgetattr(self.master)[3])
        except termios.error:
            return 0

    def close(self) -> None:
        if not self.is_open:
            return
        self.pause()
        self.is_open = False
        if self._loop is not None and self._queue:
            self._loop.remove_writer(self.master)
        elif self._loop is None:
            os.close(self.slave)
        self._queue.clear()
        self._queued = 0
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        os.close(self.master)


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    name: str
    pid: int
    command_line: str


def describe(pid: int) -> ProcessInfo | None:
    """None when there is no such process (any more)."""
    if sys.platform != "linux":
        return _describe_by_ps(pid)
    try:
        with open(f"/proc/{pid}/comm") as file:
            name = file.read().rstrip("\n")
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().rstrip(b"\0").split(b"\0")
    except OSError:
        return None
    line = shlex.join(word.decode(errors="replace") for word in words) if words != [b""] else name
    return ProcessInfo(name, pid, line)


def directory_of(pid: int) -> str:
    """The working directory of a process; empty when the kernel does not tell."""
    try:
        return os.readlink(f"/proc/{pid}/cwd").removesuffix(" (deleted)")
    except OSError:
        return ""


def _describe_by_ps(pid: int) -> ProcessInfo | None:
    shown = subprocess.run(["ps", "-o", "comm=", "-p", str(pid)], capture_output=True, text=True, timeout=5)
    line = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, timeout=5)
    name = shown.stdout.strip()
    return ProcessInfo(os.path.basename(name), pid, line.stdout.strip()) if name else None
