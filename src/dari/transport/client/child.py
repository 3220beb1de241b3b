"""A server that is a child process: its stdin and stdout are the channel."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from dari.mcp.client.channel import Inbox
from dari.mcp.client.lines import MAX_LINE_BYTES
from dari.transport.client.pipes import LAST_WORDS_S, PipeChannel
from dari.transport.client.process import ServerProcess


class ChildChannel(PipeChannel):
    """Starts the command when it is opened, and ends it, with its whole process group, when it is closed.

    Of our environment the child sees only HOME, LANG, LOGNAME, PATH, SHELL, TERM and USER, and what is given.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        most_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        super().__init__(most_bytes)
        self._command = tuple(command)
        self._env = dict(env or {})
        self._cwd = cwd
        self._process: ServerProcess | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def last_words(self) -> str:
        """The last of what the child wrote to stderr."""
        return "" if self._process is None else self._process.tail.text()

    async def open(self, inbox: Inbox) -> None:
        self._reset()
        self.inbox = inbox
        process = self._process = ServerProcess(self._command, self._env, self._cwd, self._over.set)
        stdin, stdout, stderr = process.pipes
        try:
            await self._attach(stdin, stdout)
            self._errors, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: process.tail, stderr)
        except BaseException:
            process.kill()
            for pipe in process.pipes:
                pipe.close()
            self._process = self.inbox = None
            raise
        self._watching = asyncio.get_running_loop().create_task(self._watch(process, inbox))

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        self._watching.cancel()
        self.inbox = None
        try:
            await self._detach(process.end())
        finally:
            self._errors.close()
        await asyncio.gather(self._watching, return_exceptions=True)
        await self._detached()
        await process.tail.ended.wait()

    async def _watch(self, process: ServerProcess, inbox: Inbox) -> None:
        await self._over.wait()
        closed = await self._last_words(process.exited(LAST_WORDS_S), process.tail.ended)
        if process.has_exited:
            process.kill()
            inbox.lost(process.explain(f"ended ({process.status})"))
        else:
            inbox.lost(process.explain(f"closed its {closed}"))
