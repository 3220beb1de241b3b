"""A server that is a child process: its stdin and stdout are the channel."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from dari.mcp.client.channel import Inbox
from dari.mcp.client.lines import MOST_BYTES
from dari.transport.channels.lines import LineChannel
from dari.transport.channels.process import Process
from dari.transport.channels.sockets import read_small

# How long what a dead child has written may take to arrive.
LAST_WORDS_S = 0.3


class ChildChannel(LineChannel):
    """Starts the command when it is opened, and ends it, with its whole process group, when it is closed.

    Of our environment the child sees only HOME, LANG, LOGNAME, PATH, SHELL, TERM and USER, and what is given.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        super().__init__(most_bytes)
        self._command = tuple(command)
        self._env = dict(env or {})
        self._cwd = cwd
        self._process: Process | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def last_words(self) -> str:
        """The last of what the child wrote to stderr."""
        return "" if self._process is None else self._process.tail.text()

    async def open(self, inbox: Inbox) -> None:
        self._reset()
        self.inbox = inbox
        self._over = asyncio.Event()
        self._output_ended = asyncio.Event()
        self._input_end = _InputEnd(self)
        process = self._process = Process(self._command, self._env, self._cwd, self._over.set)
        loop = asyncio.get_running_loop()
        stdin, stdout, stderr = process.pipes
        try:
            writer, _ = await loop.connect_write_pipe(lambda: self._input_end, stdin)
            self._writer = self._input = writer
            self._output, _ = await loop.connect_read_pipe(lambda: self, stdout)
            read_small(self._output)
            self._errors, _ = await loop.connect_read_pipe(lambda: process.tail, stderr)
        except BaseException:
            process.kill()
            for pipe in process.pipes:
                pipe.close()
            self._process = self.inbox = None
            raise
        self._watching = loop.create_task(self._watch(process, inbox))

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        self._watching.cancel()
        self.inbox = None
        self._flush()
        self._input.close()
        try:
            await process.end()
        finally:
            if not self._input_end.lost.is_set():
                self._input.abort()
            self._output.close()
            self._errors.close()
            self._writer = None
        await asyncio.gather(self._watching, return_exceptions=True)
        for end in (self._input_end.lost, self._output_ended, process.tail.ended):
            await end.wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """stdout ended."""
        self._output_ended.set()
        self._over.set()

    def input_lost(self) -> None:
        """The child does not read its stdin any more."""
        self.resume_writing()
        self._over.set()

    async def _watch(self, process: Process, inbox: Inbox) -> None:
        """The end of the process, of its stdout or of its stdin: each is the end of the channel."""
        await self._over.wait()
        await process.exited(LAST_WORDS_S)
        for stream in (self._output_ended, process.tail.ended):
            try:
                async with asyncio.timeout(LAST_WORDS_S):
                    await stream.wait()
            except TimeoutError:
                pass  # something that the child started holds it open
        if process.has_exited:
            process.kill()
            inbox.lost(process.explain(f"ended ({process.status})"))
        else:
            inbox.lost(process.explain("closed its " + ("stdout" if self._output_ended.is_set() else "stdin")))


class _InputEnd(asyncio.BaseProtocol):
    """Flow control of the pipe to the child."""

    def __init__(self, channel: ChildChannel) -> None:
        self._channel = channel
        self.lost = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()
        self._channel.input_lost()

    def pause_writing(self) -> None:
        self._channel.pause_writing()

    def resume_writing(self) -> None:
        self._channel.resume_writing()
