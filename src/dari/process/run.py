"""Run a program to its end, within bounds: its time, its output, and everything that it started."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from dari.process.child import REAP_S, Child, ChildSpec
from dari.process.children import Children

RunEnd = Literal["exited", "timed_out", "output_limit", "stopped"]
"""`stopped`: the reader had enough."""


class ProgramRun(Struct, frozen=True):
    """What came of it. `returncode` is as subprocess has it: negative for a signal."""

    returncode: int
    stdout: bytes
    stderr: str
    """Its end, sanitised."""
    end: RunEnd = "exited"


async def run_program(
    children: Children,
    spec: ChildSpec,
    *,
    stdin: bytes = b"",
    timeout_s: float,
    max_output_bytes: int,
    on_output: Callable[[bytes], bool | None] | None = None,
    is_single: bool = False,
) -> ProgramRun:
    """Start it, feed it, read it. Cancelling ends it and all that it started, and waits until they are gone.

    `on_output` gets stdout as it comes, instead of `ProgramRun.stdout`; it returns True when it has read enough. What
    passes `max_output_bytes` ends the program too: a program that prints for ever is not read for ever.
    `is_single`: it is known to start no other program, so nobody looks for strays, and its result does not wait for its
    end once its reader had enough and it was killed: `children` owns what is left.
    """
    child = await children.start(replace(spec, is_single=True) if is_single else spec)
    is_killed = False
    try:
        run = await _follow(child, stdin, timeout_s, max_output_bytes, on_output, is_single)
        is_killed = run.end == "stopped"
        return run
    finally:
        child.kill()
        if not (is_single and (is_killed or child.has_ended)):
            await child.gone()


async def _follow(
    child: Child,
    stdin: bytes,
    timeout_s: float,
    max_output_bytes: int,
    on_output: Callable[[bytes], bool | None] | None,
    is_single: bool,
) -> ProgramRun:
    loop = asyncio.get_running_loop()
    reader = _OutputReader(max_output_bytes, on_output)
    inbox, outbox = child.take_pipes()
    reading: asyncio.ReadTransport | None = None
    writing: asyncio.WriteTransport | None = None
    feeding = _InputFeed()
    try:
        reading, _ = await loop.connect_read_pipe(lambda: reader, outbox)
        if stdin:
            writing, _ = await loop.connect_write_pipe(lambda: feeding, inbox)
            writing.write(stdin)
            writing.write_eof()
        else:
            inbox.close()
        end: RunEnd = "exited"
        try:
            async with asyncio.timeout(timeout_s):
                end = await reader.done
                if end == "exited":
                    await child.ended(timeout_s)
        except TimeoutError:
            end = "timed_out"
        if end != "exited":
            child.kill()
        if end == "stopped" and is_single:
            return ProgramRun(0, b"", child.tail.text(), end)
        if end != "exited":
            await child.ended(REAP_S)
    finally:
        (outbox if reading is None else reading).close()
        if writing is None:
            inbox.close()
        elif not feeding.is_lost:
            writing.abort()
    return ProgramRun(child.returncode or 0, bytes(reader.data), await child.last_words(), end)


class _InputFeed(asyncio.BaseProtocol):
    """Whether its pipe is closed: to abort a closed one is an error in asyncio."""

    is_lost = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True


class _OutputReader(asyncio.Protocol):
    def __init__(self, max_bytes: int, on_output: Callable[[bytes], bool | None] | None) -> None:
        self.data = bytearray()
        self.done: asyncio.Future[RunEnd] = asyncio.get_running_loop().create_future()
        self._left = max_bytes
        self._on_output = on_output

    def data_received(self, data: bytes) -> None:
        if self.done.done():
            return
        self._left -= len(data)
        if self._on_output is None:
            self.data += data if self._left >= 0 else data[: self._left]
        else:
            try:
                if self._on_output(data):
                    self.done.set_result("stopped")
                    return
            except Exception as error:
                self.done.set_exception(error)
                return
        if self._left < 0:
            self.done.set_result("output_limit")

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result("exited")
