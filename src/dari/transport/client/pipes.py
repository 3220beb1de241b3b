"""The stdin and stdout of a process as a channel. The caller starts the process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import IO

from dari.transport.client.lines import LineChannel, read_small

# How long what a dead process has written may take to arrive.
LAST_WORDS_S = 0.3


class PipeChannel(LineChannel):
    """The end of stdin, of stdout or of the process: each is the end of the channel, and sets `_over`."""

    def _reset(self) -> None:
        super()._reset()
        self._over = asyncio.Event()
        self._output_ended = asyncio.Event()
        self._input_end = _InputEnd(self)

    async def _attach(self, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        """Take the pipes over. What fails leaves them to the caller."""
        loop = asyncio.get_running_loop()
        self._input, _ = await loop.connect_write_pipe(lambda: self._input_end, stdin)
        self._writer = self._input
        try:
            self._output, _ = await loop.connect_read_pipe(lambda: self, stdout)
        except BaseException:
            self._input.abort()
            raise
        self._reader = self._output
        read_small(self._output)

    async def _detach(self, end: Awaitable[object]) -> None:
        """Say goodbye by closing stdin, wait for the `end` of the process, let go of the pipes."""
        self._flush()
        self._input.close()
        try:
            await end
        finally:
            if not self._input_end.lost.is_set():
                self._input.abort()
            self._output.close()
            self._writer = None

    async def _detached(self) -> None:
        await self._input_end.lost.wait()
        await self._output_ended.wait()

    async def _last_words(self, exited: Awaitable[object], errors_ended: asyncio.Event) -> str:
        """After `_over`: wait a little for what is still on its way; which end was closed, if the process lives."""
        await exited
        for stream in (self._output_ended, errors_ended):
            try:
                async with asyncio.timeout(LAST_WORDS_S):
                    await stream.wait()
            except TimeoutError:
                pass  # something that the process started holds it open
        return "stdout" if self._output_ended.is_set() else "stdin"

    # Called by the event loop.

    def connection_lost(self, exc: Exception | None) -> None:
        """stdout ended; what it brought last may still wait for its turn."""
        if self._sliced:
            self._sliced.then(lambda: self.connection_lost(exc))
            return
        self._output_ended.set()
        self._over.set()

    def input_lost(self) -> None:
        """The process does not read its stdin any more."""
        self.resume_writing()
        self._over.set()


class _InputEnd(asyncio.BaseProtocol):
    """Flow control of the pipe to the process."""

    def __init__(self, channel: PipeChannel) -> None:
        self._channel = channel
        self.lost = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()
        self._channel.input_lost()

    def pause_writing(self) -> None:
        self._channel.pause_writing()

    def resume_writing(self) -> None:
        self._channel.resume_writing()
