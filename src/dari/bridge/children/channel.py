"""A supervised child that speaks MCP: its channel for our client, and `ChildSession`, opened and watched."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Unpack

from dari.bridge.children.supervisor import SessionEnd
from dari.errors import DariError, Failed, TimedOut
from dari.mcp.client.channel import Inbox
from dari.mcp.client.client import Client
from dari.mcp.client.lines import MAX_LINE_BYTES
from dari.process.child import LAST_WORDS_S, Child, ChildSpec, StopTimeouts
from dari.process.children import Children
from dari.text.sanitize import strip_hidden
from dari.transport.client.lines import ENDLESS
from dari.transport.client.pipes import PipeChannel
from dari.transport.connect import ClientOptions

WRITE_S = 30.0
MAX_UNREAD_BYTES = 64 * 1024 * 1024
MAX_NOISE_LINES = 20
# One that never said hello has nothing to tidy up; its error should not wait for it.
QUICK_STOP = StopTimeouts(after_eof_s=0.2, after_term_s=0.5)
_NOISE_BYTES = 500
_MESSAGE = (b"{", b"[")


class SupervisedChannel(PipeChannel):
    """Starts a child when it is opened and stops it when it is closed.

    A line of any length up to `most_bytes` is one message. A child that does not read what it is sent for
    `write_s` seconds, or has more than 64 MiB to read, is given up: no call waits for it longer than that.
    """

    def __init__(
        self, start: Callable[[], Awaitable[Child]], *, most_bytes: int = MAX_LINE_BYTES, write_s: float = WRITE_S
    ) -> None:
        super().__init__(most_bytes)
        self.child: Child | None = None
        self.noise: deque[str] = deque(maxlen=MAX_NOISE_LINES)
        """The last lines of stdout that are not messages, safe to print."""
        self.noise_lines = 0
        self._start = start
        self._write_s = write_s
        self._deadline: asyncio.TimerHandle | None = None

    def last_words(self) -> str:
        return "" if self.child is None else self.child.tail.text()

    async def open(self, inbox: Inbox) -> None:
        self._reset()
        self.noise.clear()
        self.noise_lines = 0
        self._verdict: DariError | None = None
        self._has_agreed = False
        child = await self._start()
        stdin, stdout = child.take_pipes()
        try:
            await self._attach(stdin, stdout)
        except BaseException:
            child.kill()
            stdin.close()
            stdout.close()
            raise
        self.child, self.inbox = child, inbox
        child.on_exit(self._over.set)
        if child.has_ended:
            self._over.set()
        self._watching = asyncio.get_running_loop().create_task(self._watch(child, inbox))

    async def close(self) -> None:
        child, self.child = self.child, None
        if child is None:
            return
        self._watching.cancel()
        self.inbox = None
        self._allow()
        await self._detach(child.stop(None if self._has_agreed else QUICK_STOP))
        await asyncio.gather(self._watching, return_exceptions=True)
        await self._detached()

    def agreed(self, version: str, *, is_stateless: bool) -> None:
        self._has_agreed = self._has_agreed or bool(version)

    # Called by the event loop.

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().call_later(self._write_s, self._stuck)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._allow()

    def _flush(self) -> None:
        super()._flush()
        if self.is_full and self._input.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self._stuck()

    def _allow(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def give_up(self, why: str, kind: type[DariError] = TimedOut) -> None:
        """End the child at once; a caller that waits for it gets an error with `why` and its last words."""
        self._allow()
        child = self.child
        if child is not None and self._verdict is None:
            self._verdict = child.explain(why, kind)
            child.kill()
            self._input.abort()

    def _stuck(self) -> None:
        self.give_up(f"has not read its stdin for {self._write_s:g} s")

    def _give_up_endless(self, inbox: Inbox) -> None:
        self.give_up(ENDLESS, Failed)

    def _received(self, inbox: Inbox, line: bytes) -> None:
        if not line.startswith(_MESSAGE) and not line.lstrip().startswith(_MESSAGE):
            self._note(line)
        inbox.receive(line)

    def _note(self, line: bytes) -> None:
        self.noise_lines += 1
        self.noise.append(strip_hidden(line[:_NOISE_BYTES].decode("utf-8", "replace")).strip())

    async def _watch(self, child: Child, inbox: Inbox) -> None:
        """The end of the process, of its stdout or of its stdin: each is the end of the channel."""
        await self._over.wait()
        closed = await self._last_words(child.ended(LAST_WORDS_S), child.tail.ended)
        if self._verdict is not None:
            inbox.lost(self._verdict)
        elif child.has_ended:
            inbox.lost(child.explain(f"ended ({child.status})"))
        else:
            inbox.lost(child.explain(f"closed its {closed}"))


class ChildSession:
    """What `Supervisor(name, lambda init_s: ChildSession.open(children, spec, open_timeout_s=init_s))` keeps alive."""

    def __init__(self, client: Client, child: Child) -> None:
        self.client = client
        self.child = child

    @classmethod
    async def open(cls, children: Children, spec: ChildSpec, **options: Unpack[ClientOptions]) -> ChildSession:
        """Raises what the server's start came to, with its exit status and the end of its stderr."""
        channel = SupervisedChannel(lambda: children.start(spec))
        client = Client(channel, **options)
        await client.open()
        assert channel.child is not None
        return cls(client, channel.child)

    @property
    def is_open(self) -> bool:
        return self.client.is_open

    async def ended(self) -> SessionEnd:
        error = await self.client.ended()
        return SessionEnd(error, is_fault=self.child.returncode != 0)

    async def close(self) -> None:
        await self.client.close()
