"""A pseudo-terminal: bytes out of it in large pieces, bytes into it in order, never more than its share of time."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios
import time
from collections import deque
from collections.abc import Callable
from weakref import WeakKeyDictionary

from dari.errors import Conflict, TimedOut

TURN_S = 0.004
PIECE_BYTES = 64 * 1024
LEAST_BYTES = 4 * 1024
MOST_QUEUED = 1 << 20
WRITE_S = 10.0


class Pump:
    """Serves the terminals that have more to say than fits in one piece, in turns that are short for all of them.

    Twenty panes that print at full speed then delay one that a person types in by no more than one of them does:
    each turn of the loop gives 4 ms to all of the loud ones together, the next in line first.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._loud: deque[Pty] = deque()
        self._is_scheduled = False

    def add(self, pty: Pty) -> None:
        self._loud.append(pty)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._turn)

    def remove(self, pty: Pty) -> None:
        if pty in self._loud:
            self._loud.remove(pty)

    def _turn(self) -> None:
        self._is_scheduled = False
        until = time.perf_counter() + TURN_S
        while self._loud:
            pty = self._loud.popleft()
            if pty.read_piece():
                self._loud.append(pty)
            else:
                pty.listen()
            if time.perf_counter() >= until:
                break
        if self._loud:
            self._is_scheduled = True
            self._loop.call_soon(self._turn)


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
        self._is_loud = False  # the pump reads, not the loop's selector

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
            if self._is_loud:
                self._is_loud = False
                self._pump.remove(self)
            else:
                self._loop.remove_reader(self.master)

    def resume(self) -> None:
        if self.is_open and not self._is_reading:
            self._is_reading = True
            self._is_loud = True
            self.listen()

    def listen(self) -> None:
        """Nothing more to read: let the selector tell when there is."""
        if self._is_reading and self._is_loud and self._loop is not None:
            self._is_loud = False
            self._loop.add_reader(self.master, self._readable)

    def _readable(self) -> None:
        if self.read_piece() and self._is_reading and self._loop is not None and self._pump is not None:
            self._loop.remove_reader(self.master)
            self._is_loud = True
            self._pump.add(self)

    def read_piece(self) -> bool:
        """Take up to one piece of output; whether there may be more."""
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
            if size >= self._piece_bytes:
                has_more = True
                break
        if parts:
            began = time.perf_counter()
            self.on_data(parts[0] if len(parts) == 1 else b"".join(parts))
            if has_more:
                self._adapt(time.perf_counter() - began)
        if has_ended:
            self.pause()
            self.on_end()
        return has_more and self._is_reading

    def _adapt(self, took_s: float) -> None:
        """An engine that needs long for a piece gets smaller ones: the fallback parses a few MB/s."""
        if took_s > TURN_S:
            self._piece_bytes = max(LEAST_BYTES, self._piece_bytes // 2)
        elif took_s < TURN_S / 4:
            self._piece_bytes = min(PIECE_BYTES, self._piece_bytes * 2)

    def finish(self) -> None:
        """Take what is still there after the program ended; what its children print later is not waited for."""
        pieces = 256
        while self._is_reading and pieces and self.read_piece():
            pieces -= 1

    def send(self, data: bytes) -> None:
        """Put bytes into the program's input now or as soon as it reads; Conflict when far too much waits."""
        if not self.is_open:
            raise Conflict("the program of this pane has ended", "open a new pane")
        if self._queued + len(data) > MOST_QUEUED:
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
